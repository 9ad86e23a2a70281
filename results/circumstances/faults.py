"""The circumstances of a violation: the active faults, the leader, and the role of the node that answered.

Each sentence states what polls saw, and when. Labrys polls nodes about once a second, so the state of a node between two polls
is not known. A sentence about the node that answered needs a poll before the operation and one after it; without them, there is
no sentence. One poll alone can say the opposite of what happened a moment later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from harness.leaders import LEADER, in_polls
from harness.op import OpType
from harness.units import NS_PER_S
from results.words.formatting import in_term, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Operation
    from harness.watch import Positions, Sighting
    from results.record.record import RunRecord

POLL_NS = 2 * NS_PER_S  # the longest time between an operation and a poll that applies to it
MAX_CLAIMS = 12
MAX_REPORTS = 4


def circumstances(example: Counterexample, record: RunRecord) -> list[str]:
    """Returns the circumstances of a counterexample, as sentences.

    Args:
        example: The counterexample.
        record: The run's record.
    """
    first_ns = min(operation.start_ns for operation in example.operations)
    last_ns = max(operation.last_ns for operation in example.operations)
    sentences = [*_faults(record.faults, first_ns, last_ns), *_leaders(record.sightings, first_ns, last_ns)]
    culprit = example.culprit
    if culprit is not None and culprit.type is OpType.OK:
        sentences += _answered_by(culprit, record.sightings, record.positions)
    return sentences


def on_during(faults: Sequence[FaultRecord], first_ns: int, last_ns: int) -> list[FaultRecord]:
    """Returns the faults that were on at some time between two times; a fault that never began has no length."""
    began = (fault for fault in faults if fault.end_ns > fault.start_ns)
    return [fault for fault in began if fault.start_ns < last_ns and fault.end_ns > first_ns]


def _faults(faults: Sequence[FaultRecord], first_ns: int, last_ns: int) -> Iterator[str]:
    began = [fault for fault in faults if fault.end_ns > fault.start_ns]
    on = on_during(faults, first_ns, last_ns)
    for fault in on:
        yield f"{named(fault)} was active from {at(fault.start_ns)} to {at(fault.end_ns)}."
    if on:
        return
    if not began:
        yield "The run had no fault."
        return
    yield "No fault was active."
    before = max((fault for fault in began if fault.end_ns <= first_ns), key=lambda fault: fault.end_ns, default=None)
    if before is not None:
        yield f"{named(before)} had ended {seconds((first_ns - before.end_ns) / NS_PER_S)} before."
    else:
        first = min(began, key=lambda fault: fault.start_ns)
        yield f"The first fault, {named(first)}, began {seconds((first.start_ns - last_ns) / NS_PER_S)} later."


def _leaders(sightings: Sequence[Sighting], first_ns: int, last_ns: int) -> Iterator[str]:
    """Yields the nodes that reported that they led, in the polls around the operations."""
    claims = [
        seen
        for seen in sorted(sightings, key=lambda seen: seen.time_ns)
        if seen.role == LEADER and seen.time_ns <= last_ns + POLL_NS and seen.last_ns >= first_ns - POLL_NS
    ]
    for seen in claims[:MAX_CLAIMS]:
        yield f"{seen.node} reported that it led{in_term(seen.term)}, {in_polls(seen)}."
    if len(claims) > MAX_CLAIMS:
        yield f"Nodes reported {len(claims) - MAX_CLAIMS} more times that they led."
    polled = any(seen.time_ns <= first_ns for seen in sightings) and any(seen.last_ns >= last_ns for seen in sightings)
    if not claims and polled:
        yield "No node reported that it led."


def _answered_by(operation: Operation, sightings: Sequence[Sighting], positions: Positions) -> Iterator[str]:
    """Yields the node that answered an operation, its role, and how far it was behind."""
    contact = operation.contact
    if contact is None:
        return
    what = f"process {operation.process}'s {operation.f}"
    yield " ".join(
        [
            f"{contact.node} answered {what}."
            if contact.answered
            else f"{what[0].upper()}{what[1:]} was sent to {contact.node}.",
            *_polled(contact.node, operation, sightings),
        ]
    )
    yield from _behind(contact.node, operation, positions)


def _polled(node: str, operation: Operation, sightings: Sequence[Sighting]) -> Iterator[str]:
    """Yields what a node reported about itself in the polls from before an operation until after it."""
    start_ns, end_ns = operation.start_ns, operation.last_ns
    own = sorted((seen for seen in sightings if seen.node == node), key=lambda seen: seen.time_ns)
    first = bisect_right(own, start_ns, key=lambda seen: seen.time_ns) - 1
    last = bisect_left(own, end_ns, key=lambda seen: seen.last_ns)
    if first < 0 or last == len(own):
        return
    if own[first].last_ns < start_ns - POLL_NS or own[last].time_ns > end_ns + POLL_NS:
        return
    seen = own[first : last + 1]
    if len(seen) == 1:
        yield f"It {reported(seen[0])}, {in_polls(seen[0])}."
        return
    reports = [f"until {at(seen[0].last_ns)} it {reported(seen[0])}"]
    reports += [f"{in_polls(sighting)} it {reported(sighting)}" for sighting in seen[1:-1][:MAX_REPORTS]]
    if len(seen) - 2 > MAX_REPORTS:
        reports.append(f"there are {len(seen) - 2 - MAX_REPORTS} more reports")
    text = "; ".join([*reports, f"since {at(seen[-1].time_ns)} it {reported(seen[-1])}"])
    yield f"{text[0].upper()}{text[1:]}."


def reported(seen: Sighting) -> str:
    """Returns what a node reported about itself in a poll, as a clause."""
    if seen.role is None:
        return "did not answer"
    role = f"{'an' if seen.role[:1] in 'aeiou' else 'a'} {seen.role}" if seen.role != LEADER else "the leader"
    of = f" of {seen.leader}" if seen.leader is not None and seen.role == "follower" else ""
    return f"reported that it was {role}{of}{in_term(seen.term)}"


def _behind(node: str, operation: Operation, positions: Positions) -> Iterator[str]:
    """Yields how far a node was behind in the last poll before an operation and in the first one after it."""
    start_ns, end_ns = operation.start_ns, operation.last_ns
    before = bisect_right(positions.time_ns, start_ns) - 1
    after = bisect_left(positions.time_ns, end_ns)
    if before < 0 or after == len(positions.time_ns):
        return
    if positions.time_ns[before] < start_ns - POLL_NS or positions.time_ns[after] > end_ns + POLL_NS:
        return
    seen = [_position(node, index, positions) for index in (before, after)]
    if None not in seen:
        text = f"{seen[0]}; {seen[1]}."
        yield f"{text[0].upper()}{text[1:]}"


def _position(node: str, instant: int, positions: Positions) -> str | None:
    """Returns how far a node was behind in a poll, as a clause; None if the poll does not tell."""
    known = {name: index for name, applied in positions.applied.items() if (index := applied[instant]) is not None}
    if node not in known or len(known) < 2:
        return None
    furthest = max(known, key=lambda name: known[name])
    when, behind = at(positions.time_ns[instant]), known[furthest] - known[node]
    if not behind:
        return f"at {when} no node had applied more entries than {node} ({known[node]:,})"
    entries = "entry" if behind == 1 else "entries"
    indexes = f"it had applied {known[node]:,}, and {furthest} {known[furthest]:,}"
    return f"at {when} {node} was {behind:,} {entries} behind ({indexes})"


def named(fault: FaultRecord) -> str:
    """Returns a fault with its targets and its number: `kill of n1 (fault 0)`."""
    what = fault.planned.called
    return f"{what} of {', '.join(fault.targets) or 'no node'} (fault {fault.planned.id})"


def at(time_ns: int) -> str:
    """Returns a time of the run in seconds: `5.924 s`."""
    return f"{time_ns / NS_PER_S:.3f} s"
