"""Shows the results of `labrys check` as text, as JSON, and as knossos' result maps in EDN.

Several files make a table with a total. An invalid history decides the total; errors come next, then unknown.

The verdict is always shown. A format may be unable to represent all of a result; EDN, for example, cannot represent half a
character. Then the output has the reason instead of the details. Other results do not change.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from checker import elle
from checker.checking import Checked, Refused
from checker.edn.values import EdnMap, Keyword
from checker.edn.writer import dumps, keywordized
from checker.explain.weakening import sentences
from checker.identity import same
from checker.judging.judged import Judged
from checker.knossos import completion, result_map
from checker.result import Analysis
from checker.words import value_text
from harness.console.plain import message, name, one_line, plain
from harness.errors import ExitCode, InputError, sentence, worst_code
from harness.op import OpType
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Operation, Value

Result: TypeAlias = Checked | Judged | Refused
Show: TypeAlias = Callable[[Sequence[Result]], str]
_SHOWN_OPERATIONS: Final = 30  # of a counterexample; JSON has all
_SHOWN_CHARACTERS: Final = 60


def exit_code(results: Sequence[Result]) -> ExitCode:
    """Returns the exit code of the results."""
    return worst_code(
        result.error.exit_code if isinstance(result, Refused) else result.verdict.exit_code for result in results
    )


def as_json(results: Sequence[Result], *, defaults: Mapping[str, Value] | None = None) -> str:
    """Returns one JSON object: the result of the only history, or those of all histories with a total.

    Args:
        results: The results.
        defaults: The file of defaults and the options that it set, from `harness.console.sources.from_file`.
    """
    if len(results) == 1:
        return _dump({**_document(results[0]), "defaults": defaults})
    return _dump({**_total(results), "defaults": defaults, "histories": [_document(result) for result in results]})


def _dump(document: Mapping[str, Any]) -> str:
    return json.dumps(document, default=str)


def _document(result: Result) -> dict[str, Any]:
    if isinstance(result, Refused):
        return {"file": result.name, "valid": "unknown", "error": str(result.error)}
    history = result.history
    read = {
        "format": history.format,
        "events": history.events,
        "timed": history.timed,
        "read_seconds": result.read_s,
    }
    if isinstance(result, Judged):
        return {"file": history.name, **result.to_json(), **read, "warnings": list(history.warnings)}
    analysis = result.analysis
    of_one = analysis.worst if not history.keyed else None
    document = {
        "file": history.name,
        **(analysis if of_one is None else of_one).to_json(),
        "seconds": analysis.seconds,
        **read,
        "conventions": dict(result.conventions),
        "weakened": dict(result.weakened),
        "warnings": list(history.warnings),
    }
    certificates = {
        "" if key is None else key: [operation.invoke_index for operation in of_key.certificate]
        for key, of_key in analysis.keys.items()
        if of_key.certificate is not None
    }
    if certificates:
        document["certificate"] = certificates
    if analysis.search is not None:
        document["search"] = analysis.search.to_json()
    return document


def _total(results: Sequence[Result]) -> dict[str, Any]:
    checked = [result for result in results if not isinstance(result, Refused)]
    verdicts = Counter(str(result.verdict) for result in checked)
    refused = len(results) - len(checked)
    verdict = worst(result.verdict for result in checked)
    if refused and verdict is Verdict.VALID:
        verdict = Verdict.UNKNOWN
    weakened: Counter[str] = Counter()
    for result in checked:
        weakened.update(result.weakened)
    return {
        "valid": verdict.as_json,
        "analyzer": ", ".join(sorted({analyzer for result in checked for analyzer in result.analyzers})),
        "operations": sum(result.operations for result in checked),
        "seconds": sum(result.seconds for result in checked),
        "read_seconds": sum(result.read_s for result in checked),
        "weakened": dict(weakened),
        "total": {"histories": len(results), **{str(v): verdicts[str(v)] for v in Verdict}, "errors": refused},
    }


def as_edn(results: Sequence[Result]) -> str:
    """Returns knossos' result map of each history on its line; for a keyed history, that of Jepsen's independent checker."""
    return "\n".join(dumps(_edn(result, alone=len(results) == 1)) for result in results)


def _edn(result: Result, *, alone: bool) -> EdnMap:
    unknown = Keyword("unknown")
    entries: list[tuple[Any, Any]] = []
    if isinstance(result, Refused):
        return EdnMap(
            [(Keyword("file"), result.name), (Keyword("valid?"), unknown), (Keyword("error"), str(result.error))]
        )
    if not alone:
        entries.append((Keyword("file"), result.history.name))
    if isinstance(result, Judged):
        entries += _judged_map(result)
        return EdnMap(entries)
    analysis = result.analysis
    search = [] if analysis.search is None else [(Keyword("search"), keywordized(analysis.search.to_json()))]
    if not result.history.keyed and analysis.worst is not None:
        entries += [*result_map(analysis.worst).items(), *search]
        return EdnMap(entries)
    verdict = unknown if analysis.valid is Verdict.UNKNOWN else analysis.valid is Verdict.VALID
    entries += [
        (Keyword("valid?"), verdict),
        (Keyword("results"), EdnMap((key, result_map(of_key)) for key, of_key in analysis.keys.items())),
        (Keyword("failures"), tuple(key for key, of_key in analysis.keys.items() if of_key.valid is Verdict.INVALID)),
        *search,
    ]
    return EdnMap(entries)


def _judged_map(result: Judged) -> list[tuple[Any, Any]]:
    """Returns the result of a judge, with the names of knossos' result maps."""
    fields = result.to_json()
    valid = Keyword("unknown") if result.verdict is Verdict.UNKNOWN else result.verdict is Verdict.VALID
    entries: list[tuple[Any, Any]] = [(Keyword("valid?"), valid), (Keyword("analyzer"), Keyword(result.part.name))]
    entries += [
        (Keyword(name), fields[name]) for name in ("explanation", "kind", "cause", "failures") if name in fields
    ]
    entries.append((Keyword("counts"), keywordized(fields["counts"])))
    of_transactions = elle.members(result)
    entries += of_transactions
    if result.part.counterexamples:
        example = result.part.counterexamples[0]
        shown = elle.transaction if of_transactions else completion
        entries.append((Keyword("op"), None if example.culprit is None else shown(example.culprit)))
        entries.append((Keyword("counterexample"), tuple(map(shown, example.operations))))
    return entries


def as_text(results: Sequence[Result]) -> str:
    """Returns the verdict with its explanation, and a table if there are several histories.

    The text goes to a terminal and has values from hostile input, so control characters are escaped, and no name breaks a line.
    """
    return plain(_text(results))


def _text(results: Sequence[Result]) -> str:
    if len(results) == 1 and not isinstance(results[0], Refused):
        return "\n".join(_lines(results[0]))
    rows = [("verdict", "operations", "analyzer", "seconds", "history")]
    for result in results:
        if isinstance(result, Refused):
            rows.append(("error", "", "", "", one_line(str(result.error))))
            continue
        rows.append(
            (
                str(result.verdict),
                str(result.operations),
                "+".join(result.analyzers) or "none",
                f"{result.seconds:.3f}",
                name(result.history.name),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]) for row in rows
    ]
    for result in results:
        has_search = isinstance(result, Checked) and result.analysis.search is not None
        if not isinstance(result, Refused) and (has_search or result.verdict is not Verdict.VALID):
            lines += ["", *_lines(result)]
    return "\n".join([*lines, "", *sentences(_total(results)["weakened"]), _sum(results)])


def _sum(results: Sequence[Result]) -> str:
    total = _total(results)
    counts = ", ".join(f"{count} {kind}" for kind, count in total["total"].items() if kind != "histories")
    return (
        f"{total['total']['histories']} histories: {counts}; "
        f"{total['operations']} operations in {total['seconds']:.3f} s, read in {total['read_seconds']:.3f} s"
    )


def _lines(result: Checked | Judged) -> list[str]:
    return _lines_of_judge(result) if isinstance(result, Judged) else _lines_of_model(result)


def _lines_of_judge(result: Judged) -> list[str]:
    history, part = result.history, result.part
    facts = f"{part.name}, {result.operations} operations, {result.seconds:.3f} s"
    lines = [f"{name(history.name)}: {part.verdict} ({facts})", message(part.reason)]
    if result.shown:
        lines.append("These operations show it:")
        lines += _table(result.shown, timed=history.timed)
    return lines


def _lines_of_model(result: Checked) -> list[str]:
    history, analysis = result.history, result.analysis
    deciding = analysis.worst
    decided_by = "nothing to decide" if deciding is None else f"by {deciding.analyzer}"
    facts = f"{analysis.model}, {analysis.operations} operations, {decided_by}, {analysis.seconds:.3f} s"
    of_one = deciding if not history.keyed else None
    lines = [f"{name(history.name)}: {analysis.valid} ({facts})", message((of_one or analysis).explanation)]
    if analysis.order_agrees is not None:
        lines.append(message(analysis.order_reason))
    lines += sentences(result.weakened)
    if deciding is not None and deciding.counterexample:
        shown = deciding.counterexample[-_SHOWN_OPERATIONS:]
        all_of = f"; the last {len(shown):,} of {len(deciding.counterexample):,}"
        lines.append(
            f"These operations alone have no legal order{all_of if len(shown) < len(deciding.counterexample) else ''}:"
        )
        lines += _table(shown, timed=history.timed)
    if deciding is not None and deciding.certificate is not None:
        lines.append("One legal order, by the indexes of the invokes:")
        for key, of_key in analysis.keys.items():
            order = " ".join(str(operation.invoke_index) for operation in of_key.certificate or ())
            lines.append(f"  {order}" if key is None else f"  {name(key)}: {order}")
    if analysis.search is not None:
        lines += map(one_line, analysis.search.lines())
    return lines


def _table(operations: Sequence[Operation], *, timed: bool) -> list[str]:
    rows = [
        (f"process {op.process}", name(op.f, _SHOWN_CHARACTERS), _value(op), _span(op, timed=timed))
        for op in operations
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]


def _value(operation: Operation) -> str:
    if operation.type is not OpType.OK or same(operation.result, operation.value):
        return value_text(operation.value)
    if operation.value is None:
        return value_text(operation.result)
    return f"{value_text(operation.value)} -> {value_text(operation.result)}"


def _span(operation: Operation, *, timed: bool) -> str:
    begin, end = operation.invoke_index, operation.complete_index
    events = f"event {begin}" if begin == end else f"events {begin}-{'' if end is None else end}"
    if operation.type is not OpType.OK:
        events += f", {operation.type}"
    if not timed or operation.end_ns is None:
        return events
    return f"{operation.start_ns / NS_PER_S:.6f} s to {operation.end_ns / NS_PER_S:.6f} s ({events})"


def sayable(results: Sequence[Result], show: Show) -> str:
    """Returns the text of results; if the format cannot represent one, without its details."""
    try:
        return show(results)
    except Exception:  # noqa: BLE001 - after any error, the verdicts are shown
        return show([_without_details(result, show) for result in results])


def _without_details(result: Result, show: Show) -> Result:
    try:
        show([result])
    except Exception as error:  # noqa: BLE001 - shown in place of the details
        reason = _in_unicode(f"the details are left out, because they cannot be written: {sentence(error)}")
    else:
        return result
    if isinstance(result, Refused):
        return Refused(name=_in_unicode(result.name), error=InputError(_in_unicode(sentence(result.error))))
    history = replace(
        result.history, name=_in_unicode(result.history.name), warnings=[*map(_in_unicode, result.history.warnings)]
    )
    if isinstance(result, Judged):
        return replace(result, history=history, part=_bare_part(result.part, reason))
    names: dict[str | None, str | None] = {}
    for key in result.analysis.keys:
        name = None if key is None else _in_unicode(key)
        while name is not None and name in names.values():
            name += "'"
        names[key] = name
    keys = {names[key]: _bare_analysis(analysis, reason) for key, analysis in result.analysis.keys.items()}
    analysis = replace(result.analysis, keys=keys, worst_key=names.get(result.analysis.worst_key))
    return replace(result, history=history, analysis=analysis)


def _bare_analysis(analysis: Analysis, reason: str) -> Analysis:
    return Analysis(
        valid=analysis.valid,
        model=analysis.model,
        analyzer=analysis.analyzer,
        operations=analysis.operations,
        seconds=analysis.seconds,
        steps=analysis.steps,
        cause=analysis.cause,
        kind=analysis.kind,
        explanation=f"The history is {analysis.valid}; {reason}.",
    )


def _bare_part(part: Part, reason: str) -> Part:
    kept = {name: part.details[name] for name in ("keys", "verdicts")}
    return Part(
        name=part.name,
        verdict=part.verdict,
        reason=f"The history is {part.verdict}; {reason}.",
        details={**kept, "counts": {}, "figures": {}},
    )


def _in_unicode(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
