"""What a run shows about its parts without a counterexample: tables and sentences for `labrys explain` and the report.

A part such as `recovered` is about the whole system, and no single operation shows the violation. Its evidence is what Labrys
recorded: how far each node had applied the log at each poll, who led, and which faults were on. A part that compares nodes has
a scene: what happened at its time (`harness.about`). Besides, each part has the data behind its sentence, and a run that is
unknown the codes of its errors and the last reports of the nodes. Everything is bounded, and says what it leaves out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.about import MEMBER, About, read_about
from harness.console.plain import counted
from harness.leaders import LEADER, rivals
from harness.op import OpType
from harness.parts import LOG_PATTERNS
from harness.reached import RECOVERED
from harness.states import ONE_LEADER, REPLICAS_EQUAL
from harness.units import NS_PER_S
from harness.verdict import Verdict, verdict_of
from results.circumstances.faults import POLL_NS
from results.logs.lines import NO_LOGS, read_logs, spans_of
from results.logs.since_start import since_start
from results.page.evidence_tables import Table, bounded, first_lines, tables_of, texts_of
from results.page.said_tables import at, failed_since, said_tables
from results.page.story import Scene
from results.record.counterexample import by_index, counterexamples_of
from results.stored.document import workload_end_ns
from results.words.bounds import MAX_NODES, label
from results.words.formatting import fired, in_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.op import Operation, Value
    from harness.verdict import Part
    from harness.watch import Positions, Sighting
    from results.logs.lines import LogLine, Logs
    from results.logs.since_start import SinceStart
    from results.record.record import RunRecord
    from results.store.store import Run

MAX_POLLS: Final = 24
MAX_EXAMPLES: Final = 10
MAX_LOG_LINES: Final = 40
MAX_WRITERS: Final = 6
MAX_S: Final = 1e9
WHOLE_RUN: Final = "run"  # the evidence about no part
BEFORE_NS: Final = 10 * NS_PER_S


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
        lines: Lines of the nodes' logs in this time; with a scene, its story has them.
        scene: What its story is about; None if there is none.
        since: What the nodes logged since their last start.
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
    scene: Scene | None = None
    since: Sequence[SinceStart] = ()


def logs_of(run: Run, record: RunRecord, pieces: Sequence[Evidence]) -> Logs:
    """Reads the lines of a run's logs around its counterexamples, and in the times that its evidence is about.

    Args:
        run: The folder of the run.
        record: Its record.
        pieces: Its evidence, without logs.
    """
    examples = counterexamples_of(record, "")[:MAX_EXAMPLES]
    spans = [span for example in examples for span in spans_of(example)]
    return read_logs(run, record, [*spans, *times_of(pieces)])


def times_of(pieces: Sequence[Evidence]) -> list[tuple[int, int]]:
    """Returns the times that some evidence is about."""
    return [(piece.from_ns, piece.to_ns) for piece in pieces if piece.from_ns is not None and piece.to_ns is not None]


def evidence(record: RunRecord, logs: Logs = NO_LOGS, shown: Sequence[SinceStart] = ()) -> list[Evidence]:
    """Returns the evidence of each part that is not valid and has no counterexample, those that are invalid first.

    Args:
        record: The record of the run.
        logs: The lines of its logs.
        shown: What a reader has seen already of the logs since the last starts. No evidence repeats it, or what another has.
    """
    parts = [
        part for part in record.parts if part.verdict is not Verdict.VALID and not part.details.get("counterexample")
    ]
    parts.sort(key=lambda part: (part.verdict is not Verdict.INVALID, not part.decides))
    pieces = [_of(part, record) if part.name != LOG_PATTERNS else _fatal(part, record, logs) for part in parts]
    if verdict_of(record.parts) is Verdict.UNKNOWN and pieces:
        pieces.append(_run(record))
    end_ns = _end_ns(record)
    told, seen = [], [*shown]
    for piece in pieces:
        untils_ns = *_restart(piece, record), end_ns if piece.to_ns is None else piece.to_ns
        since = [line for until_ns in untils_ns for line in since_start(record, logs.since, until_ns)]
        lines = () if piece.scene is not None else logs.near(times_of([piece]), MAX_LOG_LINES)
        told.append(replace(piece, lines=lines, since=[line for line in since if line not in seen]))
        seen += since
    return told


def _restart(piece: Evidence, record: RunRecord) -> list[int]:
    """Returns the time just before Labrys restarted all nodes, if some evidence is about the wait before and after it."""
    parts = [part for part in record.parts if part.name == piece.part == RECOVERED]
    restarts_ns = [_time(part.details, "restarted_s") for part in parts]
    return [time_ns - 1 for time_ns in restarts_ns if time_ns is not None]


def _end_ns(record: RunRecord) -> int:
    """Returns the time of the last thing that the run recorded."""
    ends_ns = [operation.last_ns for operation in record.operations[-1000:]]
    ends_ns += [*(fault.end_ns for fault in record.faults), *(seen.last_ns for seen in record.sightings[-100:])]
    return max([*ends_ns, *record.positions.time_ns[-1:]], default=0)


def _of(part: Part, record: RunRecord) -> Evidence:
    if part.name == RECOVERED:
        return _recovered(part, record)
    own = {key: value for key, value in part.details.items() if key != MEMBER}
    piece = Evidence(
        part=part.name, verdict=part.verdict, reason=part.reason, tables=[*tables_of(own)], texts=[*texts_of(own)]
    )
    about = read_about(part.details)
    if part.name == ONE_LEADER and part.verdict is Verdict.INVALID:
        claims = [claim for rival in rivals(record.sightings) for claim in rival.claims]
        rows = [(str(claim.term), label(claim.node), at(claim.time_ns), at(claim.last_ns)) for claim in claims]
        piece = replace(
            piece, tables=bounded("The nodes that reported that they led", ("term", "node", "from", "to"), rows)
        )
    if about is None or part.verdict is not Verdict.INVALID:
        return piece
    scene = _scene(part, about, record)
    times_ns = record.positions.time_ns
    near_ns = scene.from_ns - BEFORE_NS, scene.to_ns + POLL_NS
    places = [index for index in range(len(times_ns)) if near_ns[0] <= times_ns[index] <= near_ns[1]]
    polls = _progress(record, places, None, None)
    return replace(piece, tables=[*piece.tables, *polls], scene=scene, from_ns=scene.from_ns, to_ns=scene.to_ns)


def _fatal(part: Part, record: RunRecord, logs: Logs) -> Evidence:
    """Returns the evidence of fatal lines: what happened around the first of them whose time is known."""
    piece, matches = _of(part, record), part.details.get("matches")
    fatal = [(match.get("node"), str(match.get("text"))) for match in matches or () if isinstance(match, dict)]
    for line in logs.since:
        if any(line.node == node and line.text in text for node, text in fatal):
            around = About(from_ns=max(0, line.time_ns), to_ns=max(0, line.time_ns), nodes=(line.node,))
            scene = _scene(part, around, record)
            return replace(piece, scene=scene, from_ns=scene.from_ns, to_ns=scene.to_ns)
    return piece


def _scene(part: Part, about: About, record: RunRecord) -> Scene:
    """Returns the scene of a part: its operations, or those on the keys that differ, and the polls of its nodes."""
    by_number = by_index(record.operations)
    operations = list({event: by_number[event] for event in about.events if event in by_number}.values())
    if part.name == REPLICAS_EQUAL and not operations:
        operations = _writers(part.details, record.operations)
    before_ns = 0 if operations else POLL_NS  # what led to a report lies between it and the poll before
    return Scene(
        from_ns=max(0, min([about.from_ns - before_ns, *(operation.start_ns for operation in operations)])),
        to_ns=max([about.to_ns, *(operation.last_ns for operation in operations)]),
        operations=sorted(operations, key=lambda operation: operation.start_ns),
        nodes=about.nodes,
    )


def _writers(details: Mapping[str, Value], operations: Sequence[Operation]) -> list[Operation]:
    """Returns the operations that wrote the values in which replicas differ, on the first of these keys."""
    differing = details.get("differing")
    first = differing[0] if isinstance(differing, list) and differing else None
    if not isinstance(first, dict) or not isinstance(first.get("values"), dict):
        return []
    values = [_plainly(value) for value in first["values"].values()]
    writers = [
        operation
        for operation in operations
        if operation.type is not OpType.FAIL
        and operation.key == first.get("key")
        and _plainly(_wrote(operation)) in values
    ]
    return writers[-MAX_WRITERS:]


def _wrote(operation: Operation) -> Value:
    """Returns the value that an operation leaves: the new one of a compare-and-set, else its argument."""
    is_cas = operation.f == "cas" and isinstance(operation.value, list | tuple) and len(operation.value) == 2
    return operation.value[1] if is_cas else operation.value


def _plainly(value: Value) -> str | None:
    return None if value is None else str(value)


def _run(record: RunRecord) -> Evidence:
    """Returns what clients and nodes said in a run that is unknown: the codes of the errors, and the last reports."""
    asked = counted(len(record.operations), "operation")
    said = f"{asked}; {counted(len(failed_since(record)), 'error')} of the clients."
    return Evidence(part=WHOLE_RUN, verdict=Verdict.UNKNOWN, reason=said, tables=said_tables(record))


# -- recovered -----------------------------------------------------------------------------------------------------------------


def _recovered(part: Part, record: RunRecord) -> Evidence:
    """Returns how far the nodes were from the last faults until the end of the watch, and the errors of the waits."""
    restarted = part.details.get("restarted") is True
    began_ns, restarted_ns = _time(part.details, "from_s"), _time(part.details, "restarted_s")
    if began_ns is None:
        began_ns = workload_end_ns(record.timings)
    times_ns = record.positions.time_ns
    first_ns = max(0, (began_ns or 0) - BEFORE_NS)
    places = [index for index in range(len(times_ns)) if times_ns[index] >= first_ns]
    last = bisect_left(times_ns, restarted_ns) - 1 if restarted_ns is not None else len(times_ns) - 1
    standing = _standing(record.positions, last, restarted=restarted)
    errors = [("The first wait" if restarted else "The wait", part.details.get("first_error"))]
    errors += [("After the restart", part.details.get("error"))] if restarted else []
    return Evidence(
        part=part.name,
        verdict=part.verdict,
        reason=part.reason,
        sentences=[*_faults(record), *standing],
        tables=[*_progress(record, places, began_ns, restarted_ns), *said_tables(record, first_ns)],
        texts=[(title, first_lines(error)) for title, error in errors if isinstance(error, str)],
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
        yield f"{label(fault.planned.kind)} of {nodes} was active from {at(fault.start_ns)} to {at(fault.end_ns)}{why}."
    if len(began) > 3:
        yield f"{counted(len(began) - 3, 'earlier fault')} had ended before."


def _standing(positions: Positions, last: int, *, restarted: bool) -> Iterator[str]:
    """Yields how far each node was in a poll, and since when it had stood there."""
    if last < 0:
        return
    known = {node: index for node, applied in positions.applied.items() if (index := applied[last]) is not None}
    when = f"At {at(positions.time_ns[last])}, the last poll{' before Labrys restarted the nodes' if restarted else ''}"
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
                f"; polls had seen it at {known[node]:,} since {at(positions.time_ns[first])}" if first < last else ""
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
    for index in chosen:
        now_ns = times_ns[index]
        seen = {node: _seen(own[node], now_ns) for node in nodes}
        leading = [
            f"{label(node)}{in_term(sighting.term)}"
            for node, sighting in seen.items()
            if sighting is not None and sighting.role == LEADER
        ]
        cells = [_cell(record.positions.applied[node][index], seen[node]) for node in nodes]
        meanwhile = [text for at_ns, text in events if since_ns < at_ns <= now_ns]
        rows.append((at(now_ns), *cells, ", ".join(leading) or "none", "; ".join(meanwhile[:4])))
        since_ns = now_ns
    title = "Entries that each node had applied, by polls"
    left = len(places) - len(chosen)
    return [
        Table(
            title=title, heads=("time", *map(label, nodes), "leads", "since the row before"), rows=rows, left_out=left
        )
    ]


def _seen(own: Sequence[Sighting], time_ns: int) -> Sighting | None:
    index = bisect_right(own, time_ns, key=lambda seen: seen.time_ns) - 1
    return own[index] if index >= 0 else None


def _cell(applied: int | None, seen: Sighting | None) -> str:
    if applied is not None:
        odd = seen is not None and seen.role not in {LEADER, "follower", None}
        return f"{applied:,} {label(seen.role or '')}" if odd and seen is not None else f"{applied:,}"
    return "no answer" if seen is None or seen.role is None else label(seen.role)
