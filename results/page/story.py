"""A violation in the order of time: its operations, the faults around them, the leaders, and the states of the nodes.

It is made from the run's record, and from the states of the nodes if the run was simulated. Each sentence states only recorded
facts. Polls see the leaders of real nodes about once a second; in the simulator the states are exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.console.plain import listed
from harness.leaders import LEADER as LEADING
from harness.node_states import DEAD, RUNNING
from harness.op import OpType
from harness.units import NS_PER_S
from results.circumstances.faults import POLL_NS, reported
from results.measure.leadership import leaders
from results.record.counterexample import operation_text
from results.words.bounds import label
from results.words.formatting import fired, in_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.node_states import ClusterState, NodeState
    from harness.op import Operation
    from results.logs.lines import LogLine
    from results.record.record import RunRecord

FAULT: Final = "fault"
LEADER: Final = "leader"
OPERATION: Final = "operation"
OMISSION: Final = "omission"
LOG: Final = "log"
POLL: Final = "poll"
MAX_MOMENTS: Final = 80
MAX_LOST: Final = 3
_EXACT_NS: Final = 1000  # the rounding error of times in the history; a nearer state belongs to an event


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An event of the story.

    Attributes:
        time_ns: Its time on the run's clock.
        kind: `FAULT`, `LEADER`, `POLL`, `OPERATION`, `LOG` or `OMISSION`.
        text: A sentence without the time.
        nodes: The nodes that it is about.
        culprit: Whether it is the end of the operation that could not have happened.
        state: The states of the nodes at this time; None if they are unknown.
    """

    time_ns: int
    kind: str
    text: str
    nodes: tuple[str, ...] = ()
    culprit: bool = False
    state: ClusterState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a story is about: a counterexample, or a violation that no operations show.

    Attributes:
        from_ns: The start of its time.
        to_ns: The end of its time.
        operations: Its operations.
        culprit: The operation that could not have happened; None if there is none.
        nodes: The nodes whose polls the story has; empty if only the leader matters.
    """

    from_ns: int
    to_ns: int
    operations: Sequence[Operation] = ()
    culprit: Operation | None = None
    nodes: Sequence[str] = ()

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Returns the times near which lines of logs matter: those of the operations, else the whole."""
        return [(operation.start_ns, operation.last_ns) for operation in self.operations] or [
            (self.from_ns, self.to_ns)
        ]


def scene_of(example: Counterexample) -> Scene:
    """Returns the scene of a counterexample."""
    times = _own_times(example.operations)
    return Scene(from_ns=times[0], to_ns=times[-1], operations=example.operations, culprit=example.culprit)


def times_of(scene: Scene, record: RunRecord, lines: Sequence[LogLine] = ()) -> list[int]:
    """Returns the times for the states of the nodes: first those of the operations, then those of the events around them."""
    own, beside = _own_times(scene.operations), [moment.time_ns for moment in story(scene, record, (), lines)]
    return [*dict.fromkeys([*own, *beside])]


def story(
    scene: Scene,
    record: RunRecord,
    states: Sequence[ClusterState] = (),
    lines: Sequence[LogLine] = (),
) -> list[Moment]:
    """Returns the events of a scene, in the order of time.

    Besides the operations these are faults, leaders and polls, at most `MAX_MOMENTS` together. A last event has the number of
    the others.

    Args:
        scene: The scene.
        record: The run's record.
        states: The states of the nodes at some times.
        lines: Lines of the nodes' logs.
    """
    operations = list(_operations(scene))
    logged = [Moment(time_ns=line.time_ns, kind=LOG, text=f"{line.shown}.", nodes=(line.node,)) for line in lines]
    polled = [*_polls(scene, record)] if scene.nodes else [*_leaders(record, scene.from_ns, scene.to_ns)]
    beside = [*_faults(record.faults, scene.from_ns, scene.to_ns), *polled]
    room = max(0, MAX_MOMENTS - len(operations) - len(logged))
    beside.sort(key=lambda moment: moment.time_ns)
    kept = beside[:room]
    if left := len(beside) - len(kept):
        text = f"{left:,} later faults and changes of the leader are left out."
        kept.append(Moment(time_ns=scene.to_ns, kind=OMISSION, text=text))
    ordered = sorted([*operations, *kept, *logged], key=lambda moment: moment.time_ns)
    return [_with_state(moment, states) for moment in ordered]


def _own_times(operations: Sequence[Operation]) -> list[int]:
    """Returns the times of the starts and ends of the operations, in order."""
    return sorted({time_ns for operation in operations for time_ns in (operation.start_ns, operation.last_ns)})


def _operations(scene: Scene) -> Iterator[Moment]:
    for operation in scene.operations:
        who, contact = f"Process {operation.process}", operation.contact
        node = None if contact is None else label(contact.node)
        where = () if node is None else (node,)
        asks = operation_text(replace(operation, type=OpType.INFO, result=None))
        yield Moment(time_ns=operation.start_ns, kind=OPERATION, text=f"{who} begins: {asks}.", nodes=where)
        if operation.end_ns is None:
            continue
        at = "" if contact is None else f" at {node}" if contact.answered else f", which asked {node},"
        ends = {
            OpType.OK: f"ends ok: {operation_text(operation)}",
            OpType.FAIL: "fails",
            OpType.INFO: "ends without an answer",
        }
        yield Moment(
            time_ns=operation.end_ns,
            kind=OPERATION,
            text=f"{who}{at} {ends.get(operation.type, str(operation.type))}.",
            nodes=where,
            culprit=scene.culprit is not None and operation.invoke_index == scene.culprit.invoke_index,
        )


def _faults(faults: Sequence[FaultRecord], first_ns: int, last_ns: int) -> Iterator[Moment]:
    """Yields the start and the end of each fault that was on meanwhile; without one, those of the last fault before."""
    began = [fault for fault in faults if fault.end_ns > fault.start_ns]
    around = [fault for fault in began if fault.start_ns < last_ns and fault.end_ns > first_ns]
    before = [fault for fault in began if fault.end_ns <= first_ns]
    for fault in around or before[-1:]:
        what = f"{label(fault.planned.called)} (fault {fault.planned.id})"
        nodes = tuple(label(target) for target in fault.targets)
        on = f" on {', '.join(nodes)}" if nodes else ""
        why = f", {fired(fault)}" if fault.fired else ""
        yield Moment(time_ns=fault.start_ns, kind=FAULT, text=f"{what} begins{on}{why}.", nodes=nodes)
        yield Moment(time_ns=fault.end_ns, kind=FAULT, text=f"{what} ends{on}.", nodes=nodes)


def _leaders(record: RunRecord, first_ns: int, last_ns: int) -> Iterator[Moment]:
    """Yields the leader at the start, and each change until the end."""
    changes = leaders(record.sightings)
    seen = [change for change in changes if change[0] <= first_ns][-1:]
    seen += [change for change in changes if first_ns < change[0] <= last_ns]
    for time_ns, name, term in seen:
        text = "No node reports that it leads" if name is None else f"{label(name)} leads{in_term(term)}"
        yield Moment(
            time_ns=time_ns,
            kind=LEADER,
            text=f"{text} (polled once a second).",
            nodes=() if name is None else (label(name),),
        )


def _polls(scene: Scene, record: RunRecord) -> Iterator[Moment]:
    """Yields what the nodes of a scene, and each leader, reported: the last report before it, and each change until its end."""
    for node in record.test.nodes:
        own = [seen for seen in record.sightings if seen.node == node]
        first = max(0, bisect_right(own, scene.from_ns, key=lambda seen: seen.time_ns) - 1)
        for seen in own[first:]:
            if seen.time_ns > scene.to_ns + POLL_NS:
                break
            if node in scene.nodes or seen.role == LEADING:
                until = f" until {at(seen.last_ns)}" if seen.last_ns > seen.time_ns else ""
                text = f"{label(node)} {reported(seen)} (in polls{until})."
                yield Moment(time_ns=seen.time_ns, kind=POLL, text=text, nodes=(label(node),))


def _with_state(moment: Moment, states: Sequence[ClusterState]) -> Moment:
    state = next((candidate for candidate in states if abs(candidate.time_ns - moment.time_ns) <= _EXACT_NS), None)
    return moment if state is None else replace(moment, state=state)


def held(node: NodeState) -> tuple[str, ...]:
    """Returns the row of a node: name, state, term, last entry, committed, value, and the last entries on the key."""
    state = node.process if node.process != RUNNING else node.role or RUNNING
    last = (
        ""
        if node.last is None
        else f"{node.last}" + (f" (term {node.last_term})" if node.last_term is not None else "")
    )
    entries = "; ".join(f"{entry.index}: {label(entry.text)}" for entry in node.entries[-3:])
    dead = node.process == DEAD
    return (
        label(node.node),
        label(state),
        "" if node.term is None or dead else str(node.term),
        last,
        "" if node.committed is None else str(node.committed),
        "" if node.value is None else label(node.value),
        entries,
    )


HEADS: Final = ("node", "is", "term", "last entry", "committed", "value", "last entries on the key")


def differences(before: ClusterState | None, after: ClusterState) -> list[str]:
    """Returns what changed since an earlier time, as sentences: roles, terms, ends of logs, lost entries, and diverging ones.

    Args:
        before: The earlier state; None if there is none, and then the list has only entries that diverge.
        after: The later state.
    """
    changes: list[str] = []
    known = {} if before is None else {node.node: node for node in before.nodes}
    for node in after.nodes:
        was = known.get(node.node)
        if was is None:
            continue
        name = label(node.node)
        if node.process != was.process:
            changes.append(f"{name} runs again" if node.process == RUNNING else f"{name} is {label(node.process)}")
        if node.role != was.role and node.role is not None:
            changes.append(f"{name} is {label(node.role)}{in_term(node.term)}")
        if node.last is not None and was.last is not None and node.last < was.last:
            changes.append(f"the log of {name} ends at {node.last}, and ended at {was.last} before")
        lost = [
            entry
            for entry in was.entries
            if entry not in node.entries and node.last is not None and entry.index > node.last
        ]
        changes += [f"{name} has lost entry {entry.index}, {label(entry.text)}" for entry in lost[:MAX_LOST]]
        if len(lost) > MAX_LOST:
            changes.append(f"{name} has lost {len(lost) - MAX_LOST} more entries on the key")
    earlier = [] if before is None else diverging(before)
    fresh = [sentence for sentence in diverging(after) if sentence not in earlier]
    if len(fresh) > MAX_LOST:
        fresh[MAX_LOST:] = [f"{len(fresh) - MAX_LOST} more entries diverge"]
    return changes + fresh


def diverging(state: ClusterState) -> list[str]:
    """Returns which nodes have which entries where the same index and term have different ones, by index."""
    by_entry: defaultdict[tuple[int, int], defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in state.nodes:
        for entry in node.entries:
            by_entry[entry.index, entry.term][label(entry.text)].append(label(node.node))
    sentences = []
    for (index, _), holders in sorted(by_entry.items()):
        if len(holders) > 1:
            parts = [
                f"{listed(names, 'and')} {'has' if len(names) == 1 else 'have'} {text}"
                for text, names in holders.items()
            ]
            sentences.append(f"entry {index} diverges: {', and '.join(parts)}")
    return sentences


def at(time_ns: int) -> str:
    """Returns a time of the run in seconds, with microseconds."""
    return f"{time_ns / NS_PER_S:.6f} s"
