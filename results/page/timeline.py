"""The data of the timeline of a report: every operation in few bytes, with faults and leaders.

Operations become columns of small integers: starts are differences, and texts are indices into tables. Ten thousand operations
take some 400 kB of the page. Long names are cut, with their length. Above `MAX_OPERATIONS`, the timeline has only an interval
around the counterexample or the first fault, and at most `MAX_LANES` lanes. The page shows this, since a silent omission would
be wrong.

The reported state of a node is drawn from the first poll that saw it to the last. Between two states is a gap of one poll. The
watch continues after the last operation, and so does the axis.

An operation is in a lane of the node that answered it; if the history names none, of the node that it was sent to. A process
stays in a lane while its operations reach one node. Another process may use the lane later, never at the same time. So a long
run with many time-outs does not have a large number of empty lanes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from harness.op import OpType
from harness.switch import Happened
from results.measure.leadership import leaders
from results.measure.op_outcomes import OUTCOMES, Codes, outcome
from results.page.leading import crowded
from results.words.bounds import MAX_LANES, label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.op import Operation, Process, Value
    from harness.switch import ConnectionNote
    from harness.watch import Sighting
    from results.logs.lines import LogLine

MAX_OPERATIONS = 40_000
MAX_TEXT = 80
MAX_SUBJECTS = 40
MAX_LINES = 1_000
MAX_LEADERS = 8
MAX_NOTES = 4_000
_US = 1_000


@dataclass(slots=True)
class _Table:
    """Texts by their order of appearance."""

    places: dict[str | None, int]

    def place(self, text: str | None) -> int:
        return self.places.setdefault(text, len(self.places))

    def texts(self) -> list[str | None]:
        return list(self.places)


def timeline(
    *,
    operations: Sequence[Operation],
    faults: Sequence[FaultRecord],
    sightings: Sequence[Sighting],
    other_sightings: Mapping[str, Sequence[Sighting]] | None = None,
    nodes: Sequence[str],
    marked: Sequence[int] = (),
    culprit: int | None = None,
    codes: Codes,
    subjects: Sequence[Value] = (),
    lines: Sequence[LogLine] = (),
    connections: Sequence[ConnectionNote] | None = None,
) -> dict[str, Value]:
    """Returns the timeline's data as JSON values, with times in microseconds since the start of the workload.

    Args:
        operations: All operations of the run, in the order of their invokes.
        faults: The faults.
        sightings: The reported states of the nodes.
        other_sightings: The same of other services and groups; each that had a leader gets a row, of many groups each that
            had several.
        nodes: The nodes' names, in order.
        marked: Invoke indices of the operations of the counterexample.
        culprit: The invoke index of the operation among them that could not have happened.
        codes: The meaning of error codes; refusals are drawn apart from failures.
        subjects: The elements, offsets or tokens that the verdict is about; each gets the list of its operations.
        lines: Lines of the nodes' logs.
        connections: What happened to the connections between nodes; None: nobody saw it, and there is no row.
    """
    shown = _stretch(operations, marked, faults)
    end_ns = max([*(operation.last_ns for operation in shown), *(fault.end_ns for fault in faults), 1])
    if len(shown) == len(operations):
        end_ns = max([end_ns, *(seen.last_ns for seen in sightings)])
    reached = {contact.node for op in shown if (contact := op.contact) is not None}
    known = [*nodes, *sorted(reached - set(nodes))]
    lanes, lane_of = _lanes(shown, known)
    lanes_left_out = max(0, len(lanes) - MAX_LANES)
    lanes, shown = lanes[:MAX_LANES], [op for op in shown if lane_of[op.invoke_index] < MAX_LANES]
    functions, keys, errors = _Table({}), _Table({}), _Table({None: 0})
    rows = {operation.invoke_index: row for row, operation in enumerate(shown)}
    starts = [operation.start_ns // _US for operation in shown]
    index_of = {name: index for index, name in enumerate(known)}
    kinds = list(dict.fromkeys(fault.planned.kind for fault in sorted(faults, key=lambda fault: fault.start_ns)))
    return {
        "total": len(operations),
        "end": -(-end_ns // _US),
        "nodes": [label(node) for node in known],
        "lanes": lanes,
        "lanes_left_out": lanes_left_out,
        "s": [later - earlier for earlier, later in zip([0, *starts], starts, strict=False)],
        "d": [-1 if op.end_ns is None else (op.end_ns - op.start_ns) // _US for op in shown],
        "w": [0 if op.scheduled_ns is None else max(0, (op.start_ns - op.scheduled_ns) // _US) for op in shown],
        "l": [lane_of[op.invoke_index] for op in shown],
        "c": [int(contact is not None and contact.answered) for contact in (op.contact for op in shown)],
        "p": [label(op.process) if isinstance(op.process, str) else op.process for op in shown],
        "f": [functions.place(op.f) for op in shown],
        "t": [OUTCOMES.index(outcome(op.type, op.error, codes)) for op in shown],
        "k": [keys.place(op.key) for op in shown],
        "v": [_text(_shown_value(op)) for op in shown],
        "a": [_text(op.value) if _answers(op) else None for op in shown],
        "subjects": _subjects(shown, subjects),
        "e": [errors.place(op.error if op.error is None else op.error[:MAX_TEXT]) for op in shown],
        "i": [op.invoke_index for op in shown],
        "functions": [None if text is None else label(text) for text in functions.texts()],
        "keys": [None if text is None else label(text) for text in keys.texts()],
        "errors": errors.texts(),
        "marked": [rows[index] for index in marked if index in rows],
        "culprit": None if culprit is None else rows.get(culprit),
        "kinds": [label(kind) for kind in kinds],
        "faults": [
            {
                "id": fault.planned.id,
                "kind": kinds.index(fault.planned.kind),
                "start": fault.start_ns // _US,
                "end": fault.end_ns // _US,
                "targets": [index_of[name] for name in fault.targets if name in index_of],
                "effective": fault.proof is not None and fault.proof.effective,
            }
            for fault in faults
        ],
        "roles": [
            [seen.time_ns // _US, seen.last_ns // _US, index_of[seen.node], seen.role, seen.term]
            for seen in sightings
            if seen.node in index_of
        ],
        "logs": [
            [
                line.time_ns // _US,
                index_of[line.node],
                f"{line.text}{f' (and {line.more:,} more)' if line.more else ''}",
            ]
            for line in lines[:MAX_LINES]
            if line.node in index_of and 0 <= line.time_ns // _US <= end_ns // _US
        ],
        "connections": None if connections is None else _connections(connections, index_of, end_ns),
        "leaders": [
            {
                "of": label(of),
                "led": [
                    [start_ns // _US, last_ns // _US, None if name is None else index_of.get(name), term]
                    for start_ns, last_ns, name, term in _led(seen)
                ],
            }
            for of, seen in {"leader": sightings, **_with_leaders(other_sightings or {})}.items()
            if seen
        ][:MAX_LEADERS],
    }


def _connections(notes: Sequence[ConnectionNote], index_of: Mapping[str, int], end_ns: int) -> list[Value]:
    """Returns the time, the places of both nodes, what happened and how often, up to the end of the timeline.

    Of too many, those stay that tell of trouble.
    """
    shown = [note for note in notes if note.time_ns <= end_ns and {note.source, note.target} <= set(index_of)]
    if len(shown) > MAX_NOTES:
        shown = [note for note in shown if note.what is not Happened.OPENED]
    return [
        [note.time_ns // _US, index_of[note.source], index_of[note.target], str(note.what), note.count]
        for note in shown[:MAX_NOTES]
    ]


def embedded(data: Mapping[str, Value]) -> str:
    """Returns `data` as JSON for a script element; nothing in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _stretch(
    operations: Sequence[Operation], marked: Sequence[int], faults: Sequence[FaultRecord]
) -> Sequence[Operation]:
    """Returns all operations, or the maximum that may be shown: around the counterexample, the first fault, or the start."""
    if len(operations) <= MAX_OPERATIONS:
        return operations
    middle = 0
    if marked:
        wanted = set(marked)
        places = [index for index, operation in enumerate(operations) if operation.invoke_index in wanted]
        middle = places[len(places) // 2] if places else 0
    elif faults:
        start_ns = min(fault.start_ns for fault in faults)
        middle = next((index for index, op in enumerate(operations) if op.start_ns >= start_ns), 0)
    first = min(max(0, middle - MAX_OPERATIONS // 2), len(operations) - MAX_OPERATIONS)
    return operations[first : first + MAX_OPERATIONS]


@dataclass(slots=True)
class _Stay:
    """Successive operations of a process that reached one node."""

    node: str | None
    start_ns: int
    end_ns: int
    indexes: list[int]


def _lanes(operations: Sequence[Operation], nodes: Sequence[str]) -> tuple[list[int | None], dict[int, int]]:
    """Gives each operation a lane among those of the node that it reached.

    Returns:
        For each lane, from the top, the place of its node (None: none); and the lane of each operation, by its invoke index.
    """
    stays = _stays(operations)
    owners: list[int | None] = []
    lane_of: dict[int, int] = {}
    for name in [*nodes, None]:
        own = sorted((stay for stay in stays if stay.node == name), key=lambda stay: (stay.start_ns, stay.end_ns))
        first, used = len(owners), 0
        free: list[int] = []
        busy: list[tuple[int, int]] = []
        for stay in own:
            while busy and busy[0][0] < stay.start_ns:
                heappush(free, heappop(busy)[1])
            if free:
                lane = heappop(free)
            else:
                lane, used = used, used + 1
            lane_of.update(dict.fromkeys(stay.indexes, first + lane))
            heappush(busy, (stay.end_ns, lane))
        owners += [nodes.index(name) if name is not None else None] * used
    return owners, lane_of


def _stays(operations: Sequence[Operation]) -> list[_Stay]:
    """Returns the stays of all processes, in the order of their first operations."""
    stays: list[_Stay] = []
    latest: dict[Process, _Stay] = {}
    for operation in operations:
        contact = operation.contact
        node = None if contact is None else contact.node
        stay = latest.get(operation.process)
        if stay is None or stay.node != node:
            stay = latest[operation.process] = _Stay(node, operation.start_ns, operation.start_ns, [])
            stays.append(stay)
        stay.end_ns = max(stay.end_ns, operation.last_ns)
        stay.indexes.append(operation.invoke_index)
    return stays


def _with_leaders(others: Mapping[str, Sequence[Sighting]]) -> dict[str, Sequence[Sighting]]:
    """Returns the services and groups that had a leader; of many groups, those with several."""
    names = {of: {name for _, name, _ in leaders(seen) if name is not None} for of, seen in others.items()}
    many = {of for members in crowded(of for of, led in names.items() if led).values() for of in members}
    return {of: seen for of, seen in others.items() if len(names[of]) > (1 if of in many else 0)}


def _led(sightings: Sequence[Sighting]) -> list[tuple[int, int, str | None, int | None]]:
    """Returns each leader with the first and the last poll that saw it."""
    # At a change of the leader, a node reports a new state. The poll before is the last one that saw the old leader.
    before_ns: dict[int, int] = {}
    newest: dict[str, Sighting] = {}
    for seen in sorted(sightings, key=lambda sighting: sighting.time_ns):
        if seen.node in newest:
            last_ns = newest[seen.node].last_ns
            before_ns[seen.time_ns] = max(last_ns, before_ns.get(seen.time_ns, last_ns))
        newest[seen.node] = seen
    end_ns = max((seen.last_ns for seen in newest.values()), default=0)
    changes = leaders(sightings)
    lasts_ns = [before_ns.get(change[0], change[0]) for change in changes[1:]]
    return [
        (start_ns, max(start_ns, last_ns), name, term)
        for (start_ns, name, term), last_ns in zip(changes, [*lasts_ns, end_ns], strict=False)
    ]


def _answers(operation: Operation) -> bool:
    """Returns whether an operation has an argument, and another value as its answer."""
    return operation.value is not None and operation.result is not None and operation.result != operation.value


def _subjects(shown: Sequence[Operation], subjects: Sequence[Value]) -> list[Value]:
    """Returns each subject with the places of the operations that have it in their argument or result."""
    places: dict[str, list[int]] = {_json(subject): [] for subject in subjects[:MAX_SUBJECTS]}
    if places:
        for index, operation in enumerate(shown):
            for text in _members(operation.value) | _members(operation.result):
                if text in places:
                    places[text].append(index)
    return [[label(text.strip('"')), indexes] for text, indexes in places.items()]


def _json(value: Value) -> str:
    return str(value) if type(value) is int else json.dumps(value, sort_keys=True, default=str)


def _members(value: Value) -> set[str]:
    """Returns a value as JSON, and the members of a list at any depth."""
    texts: set[str] = set()
    due = [value]
    while due:
        one = due.pop()
        if one is None:
            continue
        texts.add(_json(one))
        if isinstance(one, list | tuple):
            due += one
    return texts


def _shown_value(operation: Operation) -> Value:
    return operation.result if operation.type is OpType.OK and operation.result is not None else operation.value


def _text(value: Value) -> Value:
    """Returns a small value as it is, else the beginning of its JSON."""
    if value is None or isinstance(value, bool | int):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
