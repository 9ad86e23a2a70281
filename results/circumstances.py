"""The circumstances of a violation: the active faults, the leader, and the role of the node that answered.

Each sentence states what a poll saw, and when. Labrys polls nodes about once a second, so the role of a node between two polls
is not known.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from harness.faults import called
from harness.op import OpType
from harness.units import NS_PER_S
from results.formatting import seconds
from results.leadership import leaders
from results.timeline import end_ns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Operation
    from harness.watch import Positions, Sighting
    from results.record import RunRecord

POLL_NS = 2 * NS_PER_S  # the maximum age of a poll that applies to an operation


def circumstances(example: Counterexample, record: RunRecord) -> list[str]:
    """Returns the circumstances of a counterexample, as sentences.

    Args:
        example: The counterexample.
        record: The run's record.
    """
    first_ns = min(operation.start_ns for operation in example.operations)
    last_ns = max(end_ns_of(operation) for operation in example.operations)
    sentences = [*_faults(record.faults, first_ns, last_ns), *_leaders(record.sightings, first_ns, last_ns)]
    culprit = example.culprit
    if culprit is not None and culprit.type is OpType.OK:
        sentences += _answered_by(culprit, record.sightings, record.positions)
    return sentences


def _faults(faults: Sequence[FaultRecord], first_ns: int, last_ns: int) -> Iterator[str]:
    began = [fault for fault in faults if fault.end_ns > fault.start_ns]
    on = [fault for fault in began if fault.start_ns < last_ns and fault.end_ns > first_ns]
    for fault in on:
        yield f"{_named(fault)} was active from {_at(fault.start_ns)} to {_at(fault.end_ns)}."
    if on:
        return
    if not began:
        yield "The run had no fault."
        return
    yield "No fault was active."
    before = max((fault for fault in began if fault.end_ns <= first_ns), key=lambda fault: fault.end_ns, default=None)
    if before is not None:
        yield f"{_named(before)} had ended {seconds((first_ns - before.end_ns) / NS_PER_S)} before."
    else:
        first = min(began, key=lambda fault: fault.start_ns)
        yield f"The first fault, {_named(first)}, began {seconds((first.start_ns - last_ns) / NS_PER_S)} later."


def _leaders(sightings: Sequence[Sighting], first_ns: int, last_ns: int) -> Iterator[str]:
    changes = leaders(sightings)
    seen = [change for change in changes if change[0] <= first_ns][-1:]
    seen += [change for change in changes if first_ns < change[0] <= last_ns + NS_PER_S]
    for time_ns, name, term in seen:
        who = "No node reported that it led" if name is None else f"{name} led" + (f" in term {term}" if term else "")
        yield f"{who} (poll at {_at(time_ns)})."


def _answered_by(operation: Operation, sightings: Sequence[Sighting], positions: Positions) -> Iterator[str]:
    """Yields the role of the node that answered an operation, and how far it was behind."""
    node = operation.via or operation.node
    if node is None:
        return
    yield f"{node} answered process {operation.process}'s {operation.f}. {_role(node, operation, sightings)}"
    behind = _behind(node, operation, positions)
    if behind is not None:
        yield behind


def _role(node: str, operation: Operation, sightings: Sequence[Sighting]) -> str:
    own = [seen for seen in sightings if seen.node == node and seen.time_ns <= end_ns_of(operation)]
    if not own:
        return "No poll had asked for its role yet."
    seen = own[-1]
    if seen.role is None:
        return f"It had not answered polls since {_at(seen.time_ns)}."
    role = f"{'an' if seen.role[:1] in 'aeiou' else 'a'} {seen.role}" if seen.role != "leader" else "the leader"
    of = f" of {seen.leader}" if seen.leader is not None and seen.role == "follower" else ""
    term = f" in term {seen.term}" if seen.term is not None else ""
    until = f" until {_at(seen.last_ns)}" if seen.last_ns < operation.start_ns - POLL_NS else ""
    return f"It reported that it was {role}{of}{term} since {_at(seen.time_ns)}{until}."


def _behind(node: str, operation: Operation, positions: Positions) -> str | None:
    """Returns how far a node was behind in the last poll before an operation ended; None if it is not known."""
    place = bisect_right(positions.time_ns, end_ns_of(operation)) - 1
    if place < 0 or positions.time_ns[place] < operation.start_ns - POLL_NS:
        return None
    indexes = {name: applied[place] for name, applied in positions.applied.items()}
    known = {name: index for name, index in indexes.items() if index is not None}
    if node not in known or len(known) < 2:
        return None
    furthest = max(known, key=lambda name: known[name])
    at = _at(positions.time_ns[place])
    if known[node] == known[furthest]:
        return f"At {at} no node had applied more entries than {node}."
    behind = known[furthest] - known[node]
    return (
        f"At {at} {node} had applied entry {known[node]:,} and {furthest} entry {known[furthest]:,}: "
        f"{node} was {behind:,} {'entry' if behind == 1 else 'entries'} behind."
    )


def _named(fault: FaultRecord) -> str:
    what = called(fault.planned.kind, fault.planned.options)
    return f"{what} of {', '.join(fault.targets) or 'no node'} (fault {fault.planned.id})"


def _at(time_ns: int) -> str:
    return f"{time_ns / NS_PER_S:.3f} s"
