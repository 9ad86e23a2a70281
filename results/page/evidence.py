"""What a run shows about its parts without a counterexample: tables and sentences for `labrys explain` and the report.

A part such as `recovered` is about the whole system, and no single operation shows the violation. Its evidence is what Labrys
recorded: how far each node had applied the log at each poll, who led, and which faults were on. For other parts, the evidence
is the data behind their sentence. Everything is bounded, and says what it leaves out.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted, name
from harness.leaders import LEADER, rivals
from harness.parts import ONE_LEADER, RECOVERED
from harness.units import NS_PER_S
from harness.verdict import Verdict
from results.measure.log_lines import NO_LOGS, read_logs, spans_of
from results.page.bounds import MAX_NODES, label
from results.page.counterexample import counterexamples_of
from results.page.formatting import fired, in_term
from results.store.document import workload_end_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.op import Value
    from harness.verdict import Part
    from harness.watch import Positions, Sighting
    from results.measure.log_lines import LogLine, Logs
    from results.store.record import RunRecord
    from results.store.store import Run

MAX_POLLS: Final = 24
MAX_LINES: Final = 40
MAX_TABLES: Final = 8
MAX_COLUMNS: Final = 8
MAX_TABLE_ROWS: Final = 30
MAX_CELL: Final = 200
MAX_NAME: Final = 40
MAX_EXAMPLES: Final = 10
MAX_LOG_LINES: Final = 40
MAX_S: Final = 1e9
BEFORE_NS: Final = 10 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of texts.

    Attributes:
        title: What it shows.
        heads: The names of its columns.
        rows: Its rows, as long as `heads`.
        left_out: How many rows it does not show.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a run shows about one part.

    Attributes:
        part: The name of the part.
        verdict: Its verdict, which is not valid.
        reason: Its sentence.
        sentences: What the tables show, each with its time.
        tables: The tables.
        texts: Titles with longer texts, such as an error with the last lines of logs.
        from_ns: The start of the time that it is about; None if it is about no time.
        to_ns: The end of this time.
        lines: Lines of the nodes' logs in this time.
    """

    part: str
    verdict: Verdict
    reason: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    texts: Sequence[tuple[str, str]] = ()
    from_ns: int | None = None
    to_ns: int | None = None
    lines: Sequence[LogLine] = ()


def logs_of(run: Run, record: RunRecord) -> Logs:
    """Reads the lines of a run's logs around its counterexamples, and in the times that its evidence is about."""
    examples = counterexamples_of(record, "")[:MAX_EXAMPLES]
    spans = [span for example in examples for span in spans_of(example)]
    return read_logs(run, record, [*spans, *times_of(evidence(record))])


def times_of(found: Sequence[Evidence]) -> list[tuple[int, int]]:
    """Returns the times that some evidence is about."""
    return [(each.from_ns, each.to_ns) for each in found if each.from_ns is not None and each.to_ns is not None]


def evidence(record: RunRecord, logs: Logs = NO_LOGS) -> list[Evidence]:
    """Returns the evidence of each part that is not valid and has no counterexample, those that are invalid first."""
    parts = [
        part for part in record.parts if part.verdict is not Verdict.VALID and not part.details.get("counterexample")
    ]
    parts.sort(key=lambda part: (part.verdict is not Verdict.INVALID, not part.decides))
    found = [_of(part, record) for part in parts]
    return [replace(each, lines=logs.near(times_of([each]), MAX_LOG_LINES)) for each in found]


def _of(part: Part, record: RunRecord) -> Evidence:
    if part.name == RECOVERED and part.verdict is Verdict.INVALID:
        return _recovered(part, record)
    about = Evidence(part=part.name, verdict=part.verdict, reason=part.reason, tables=[*_tables(part.details)])
    if part.name != ONE_LEADER:
        return about
    claims = [claim for found in rivals(record.sightings) for claim in found.claims]
    rows = [(str(claim.term), label(claim.node), _at(claim.time_ns), _at(claim.last_ns)) for claim in claims]
    return Evidence(
        part=part.name,
        verdict=part.verdict,
        reason=part.reason,
        tables=_bounded("The nodes that reported that they led", ("term", "node", "from", "to"), rows),
        from_ns=min((claim.time_ns for claim in claims), default=None),
        to_ns=max((claim.last_ns for claim in claims), default=None),
    )


# -- recovered -----------------------------------------------------------------------------------------------------------------


def _recovered(part: Part, record: RunRecord) -> Evidence:
    """Returns how far the nodes were from the last faults until the end of the watch, and the errors of the waits."""
    began_ns, restarted_ns = _time(part.details, "from_s"), _time(part.details, "restarted_s")
    if began_ns is None:
        began_ns = workload_end_ns(record.timings)
    times_ns = record.positions.time_ns
    first_ns = max(0, (began_ns or 0) - BEFORE_NS)
    places = [place for place in range(len(times_ns)) if times_ns[place] >= first_ns]
    last = bisect_left(times_ns, restarted_ns) - 1 if restarted_ns is not None else len(times_ns) - 1
    # Earlier versions do not record the time of a restart. After it, the nodes stand elsewhere.
    known = restarted_ns is not None or part.details.get("restarted") is not True
    standing = _standing(record.positions, last, restarted=restarted_ns is not None) if known else ()
    errors = [
        (title, part.details.get(name))
        for title, name in (("The first wait", "first_error"), ("After the restart", "error"))
    ]
    return Evidence(
        part=part.name,
        verdict=part.verdict,
        reason=part.reason,
        sentences=[*_faults(record), *standing],
        tables=_progress(record, places, began_ns, restarted_ns),
        texts=[(title, _lines(error)) for title, error in errors if isinstance(error, str)],
        from_ns=first_ns,
        to_ns=times_ns[-1] if times_ns else None,
    )


def _time(details: Mapping[str, Value], member: str) -> int | None:
    value = details.get(member)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAX_S:
        return None
    return round(value * NS_PER_S)


def _faults(record: RunRecord) -> Iterator[str]:
    began = [fault for fault in record.faults if fault.end_ns > fault.start_ns]
    for fault in began[-3:]:
        nodes = ", ".join(label(node) for node in fault.targets[:MAX_NODES]) or "no node"
        why = f"; it began {fired(fault)}" if fault.fired else ""
        yield f"{label(fault.planned.kind)} of {nodes} was active from {_at(fault.start_ns)} to {_at(fault.end_ns)}{why}."
    if len(began) > 3:
        yield f"{counted(len(began) - 3, 'earlier fault')} had ended before."


def _standing(positions: Positions, last: int, *, restarted: bool) -> Iterator[str]:
    """Yields how far each node was in a poll, and since when it had stood there."""
    if last < 0:
        return
    known = {node: index for node, applied in positions.applied.items() if (index := applied[last]) is not None}
    when = (
        f"At {_at(positions.time_ns[last])}, the last poll{' before Labrys restarted the nodes' if restarted else ''}"
    )
    if not known:
        yield f"{when}, no node reported an applied index."
        return
    furthest = max(known, key=lambda node: known[node])
    if len(known) > 1 and len(set(known.values())) == 1:
        yield f"{when}, all {len(known)} nodes that answered had applied {known[furthest]:,} entries."
    elif len(known) > 1:
        yield f"{when}, {label(furthest)} had applied the most entries, {known[furthest]:,}."
    for node, applied in list(positions.applied.items())[:MAX_NODES]:
        if node not in known:
            yield f"{label(node)} did not report an applied index at that time."
        elif known[node] < known[furthest]:
            first = last
            while first and applied[first - 1] in {known[node], None}:
                first -= 1
            behind = known[furthest] - known[node]
            stood = (
                f"; polls had seen it at {known[node]:,} since {_at(positions.time_ns[first])}" if first < last else ""
            )
            yield f"{label(node)} was {behind:,} {'entry' if behind == 1 else 'entries'} behind{stood}."


def _progress(record: RunRecord, places: Sequence[int], began_ns: int | None, restarted_ns: int | None) -> list[Table]:
    """Returns the applied entries of each node, poll by poll, with the leaders and the events between two polls."""
    if not places:
        return []
    step = -(-len(places) // MAX_POLLS)
    chosen = [*places[:-1][::step], places[-1]]
    times_ns = record.positions.time_ns
    nodes = list(record.positions.applied)[:MAX_NODES]
    own = {node: [seen for seen in record.sightings if seen.node == node] for node in nodes}
    events = [(fault.start_ns, f"{label(fault.planned.kind)} begins") for fault in record.faults]
    events += [(fault.end_ns, f"{label(fault.planned.kind)} ends") for fault in record.faults]
    events += [(began_ns, "Labrys waits for recovery")] if began_ns is not None else []
    events += [(restarted_ns, "Labrys restarts all nodes")] if restarted_ns is not None else []
    events.sort()
    rows, since_ns = [], times_ns[chosen[0]] - 1
    for place in chosen:
        now_ns = times_ns[place]
        seen = {node: _seen(own[node], now_ns) for node in nodes}
        leading = [
            f"{label(node)}{in_term(each.term)}"
            for node, each in seen.items()
            if each is not None and each.role == LEADER
        ]
        cells = [_cell(record.positions.applied[node][place], seen[node]) for node in nodes]
        meanwhile = [text for at_ns, text in events if since_ns < at_ns <= now_ns]
        rows.append((_at(now_ns), *cells, ", ".join(leading) or "none", "; ".join(meanwhile[:4])))
        since_ns = now_ns
    title = "Entries that each node had applied, by polls"
    left = len(places) - len(chosen)
    return [
        Table(
            title=title, heads=("time", *map(label, nodes), "leads", "since the row before"), rows=rows, left_out=left
        )
    ]


def _seen(own: Sequence[Sighting], time_ns: int) -> Sighting | None:
    place = bisect_right(own, time_ns, key=lambda seen: seen.time_ns) - 1
    return own[place] if place >= 0 else None


def _cell(applied: int | None, seen: Sighting | None) -> str:
    if applied is not None:
        odd = seen is not None and seen.role not in {LEADER, "follower", None}
        return f"{applied:,} {label(seen.role or '')}" if odd and seen is not None else f"{applied:,}"
    return "no answer" if seen is None or seen.role is None else label(seen.role)


# -- other parts ---------------------------------------------------------------------------------------------------------------


def _tables(details: Mapping[str, Value]) -> Iterator[Table]:
    """Yields the data of a part as tables: one of all single values, and one for each list or object."""
    single = [(label(key), _text(value)) for key, value in details.items() if _is_single(value)]
    yield from _bounded("What was counted", ("figure", "value"), [row for row in single if row[1]])
    several = [(key, value) for key, value in details.items() if not _is_single(value) and value]
    for key, value in several[:MAX_TABLES]:
        yield from _bounded(label(key), *_layout(value))
    if len(several) > MAX_TABLES:
        rest = [(label(key), "") for key, _ in several[MAX_TABLES:]]
        yield from _bounded("Not shown here; results.json has it", ("member", ""), rest)


def _bounded(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Table]:
    left = max(0, len(rows) - MAX_TABLE_ROWS)
    return [Table(title=title, heads=heads, rows=rows[:MAX_TABLE_ROWS], left_out=left)] if rows else []


def _layout(value: Value) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Returns the heads and the rows of a list or an object."""
    if isinstance(value, dict):
        if all(isinstance(each, dict) for each in value.values()):
            heads = _members(value.values())
            return ("", *map(label, heads)), [
                (label(str(key)), *(_text(each.get(head)) for head in heads)) for key, each in value.items()
            ]
        return ("", "value"), [(label(str(key)), _text(each)) for key, each in value.items()]
    listed = value if isinstance(value, list | tuple) else [value]
    if all(isinstance(each, dict) for each in listed):
        heads = _members(listed)
        return tuple(map(label, heads)), [tuple(_text(each.get(head)) for head in heads) for each in listed]
    if all(map(_is_single, listed)) and not any(isinstance(each, str) and len(each) > MAX_NAME for each in listed):
        return ("values",), [(_text(listed),)]
    return ("value",), [(_text(each),) for each in listed]


def _members(rows: object) -> list[str]:
    found: dict[str, None] = {}
    for row in list(rows)[:MAX_TABLE_ROWS]:  # type: ignore[call-overload]  # of dicts, as the callers have checked
        found.update(dict.fromkeys(map(str, row)))
    return list(found)[:MAX_COLUMNS]


def _is_single(value: Value) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple) and all(map(_is_single, value)):
        shown = ", ".join(_text(each) for each in value[:MAX_TABLE_ROWS])
        return name(
            shown + (f", and {len(value) - MAX_TABLE_ROWS} more" if len(value) > MAX_TABLE_ROWS else ""), MAX_CELL
        )
    return name(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), MAX_CELL)


def _lines(text: str) -> str:
    """Returns the first lines of a text; each is cut."""
    lines = text.splitlines()
    left = [f"({counted(len(lines) - MAX_LINES, 'more line')}; results.json has all)"] if len(lines) > MAX_LINES else []
    return "\n".join([*(name(line, MAX_CELL) for line in lines[:MAX_LINES]), *left])


def _at(time_ns: int) -> str:
    return f"{time_ns / NS_PER_S:.1f} s"
