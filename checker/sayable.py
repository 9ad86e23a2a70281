"""Limits results to what a format can represent; EDN, for example, cannot represent half a character.

The verdict is always shown. If a format cannot represent all of a result, the output has the reason instead of the details.
Other results do not change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from checker.checking import Checked, Refused
from checker.judging.judged import Judged
from checker.result import Analysis
from harness.errors import InputError, sentence
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Result = Checked | Judged | Refused
    Show = Callable[[Sequence[Result]], str]


def sayable(results: Sequence[Result], show: Show) -> str:
    """Returns the text of results; if the format cannot represent one, without its details."""
    try:
        return show(results)
    except Exception:  # noqa: BLE001 - after any error, the verdicts are shown
        return show([_sayable(result, show) for result in results])


def _sayable(result: Result, show: Show) -> Result:
    try:
        show([result])
    except Exception as error:  # noqa: BLE001 - shown in place of the details
        reason = _plain(f"the details are left out, because they cannot be written: {sentence(error)}")
    else:
        return result
    if isinstance(result, Refused):
        return Refused(name=_plain(result.name), error=InputError(_plain(sentence(result.error))))
    history = replace(
        result.history, name=_plain(result.history.name), warnings=[*map(_plain, result.history.warnings)]
    )
    if isinstance(result, Judged):
        return replace(result, history=history, part=_bare_part(result.part, reason))
    names: dict[str | None, str | None] = {}
    for key in result.analysis.keys:
        name = None if key is None else _plain(key)
        while name is not None and name in names.values():
            name += "'"
        names[key] = name
    keys = {names[key]: _bare(analysis, reason) for key, analysis in result.analysis.keys.items()}
    analysis = replace(result.analysis, keys=keys, worst_key=names.get(result.analysis.worst_key))
    return replace(result, history=history, analysis=analysis)


def _bare(analysis: Analysis, reason: str) -> Analysis:
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


def _plain(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
