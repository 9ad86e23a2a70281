"""The nodes at the first violation of a run: their roles and terms relative to each other, who was behind, hit or cut off.

Labrys asks the nodes about once a second. A node is described by its last poll before the moment, if that is at most two
seconds old, and by the proven faults that were on then or had ended up to two seconds before.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness.about import read_about
from harness.leaders import LEADER, rivals
from harness.verdict import Verdict
from results.circumstances.faults import POLL_NS
from results.circumstances.grudges import grudge_of, hears
from results.record.signatures import MAX_CLASS, MAX_LISTED, SILENT, NodeThen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.watch import Sighting
    from results.record.record import RunRecord

MAX_NODES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The moment of a violation.

    Attributes:
        time_ns: The time, on the run's clock.
        nodes: The nodes that it is about.
    """

    time_ns: int
    nodes: frozenset[str] = frozenset()


def first_violation(record: RunRecord, examples: Sequence[Counterexample]) -> Moment | None:
    """Returns the moment of the first violation that a run shows; None if no part tells when it happened.

    Args:
        record: The run.
        examples: The counterexamples of its first invalid part that has any.
    """
    moments = [_of_example(example) for example in examples if example.operations]
    for part in record.parts:
        about = read_about(part.details) if part.verdict is Verdict.INVALID else None
        if about is not None:
            moments.append(Moment(time_ns=about.to_ns, nodes=frozenset(about.nodes)))
    if not moments and (rival := rivals(record.sightings)):
        claims = rival[0].claims
        moments.append(
            Moment(time_ns=max(claim.time_ns for claim in claims), nodes=frozenset(claim.node for claim in claims))
        )
    return min(moments, key=lambda moment: moment.time_ns, default=None)


def _of_example(example: Counterexample) -> Moment:
    decisive = example.culprit or max(example.operations, key=lambda operation: operation.last_ns)
    contact = decisive.contact
    return Moment(time_ns=decisive.last_ns, nodes=frozenset() if contact is None else frozenset({contact.node}))


def leaders_at(record: RunRecord, moment: Moment) -> int | None:
    """Returns the number of nodes that reported that they led, in the polls around a moment; None if nobody asked then."""
    near = [
        seen
        for seen in record.sightings
        if seen.time_ns <= moment.time_ns + POLL_NS and seen.last_ns >= moment.time_ns - POLL_NS
    ]
    return len({seen.node for seen in near if seen.role == LEADER}) if near else None


def nodes_at(record: RunRecord, moment: Moment) -> list[NodeThen]:
    """Returns the different states of the nodes at a moment, sorted."""
    names = record.test.nodes[:MAX_NODES]
    polled = {node: _last(record.sightings, node, moment.time_ns) for node in names}
    terms = [seen.term for seen in polled.values() if seen is not None and seen.term is not None]
    applied = _applied(record, moment.time_ns)
    furthest = max(applied.values(), default=0)
    near = [
        fault
        for fault in record.faults
        if fault.is_proven and fault.start_ns <= moment.time_ns <= fault.end_ns + POLL_NS
    ]
    on = [fault for fault in near if fault.end_ns >= moment.time_ns]
    states: list[NodeThen] = []
    for node in names:
        seen = polled[node]
        state = NodeThen(
            answered=node in moment.nodes,
            role="" if seen is None else (seen.role or SILENT)[:MAX_CLASS],
            term="" if seen is None or seen.term is None else "newest" if seen.term == max(terms) else "older",
            log="" if node not in applied else "level" if applied[node] == furthest else "behind",
            hit=sorted({fault.planned.called[:MAX_CLASS] for fault in near if node in fault.targets})[:MAX_LISTED],
            cut=_cut(node, names, on),
        )
        if state not in states:
            states.append(state)
    return sorted(states)


def _last(sightings: Sequence[Sighting], node: str, time_ns: int) -> Sighting | None:
    """Returns what a node reported in its last poll before a time; None if that is too old, or if nobody asked."""
    own = [seen for seen in sightings if seen.node == node and seen.time_ns <= time_ns]
    newest = max(own, key=lambda seen: seen.time_ns, default=None)
    return None if newest is None or newest.last_ns < time_ns - POLL_NS else newest


def _applied(record: RunRecord, time_ns: int) -> Mapping[str, int]:
    """Returns the applied index of each node in the last poll before a time; none if that is too old."""
    times = record.positions.time_ns
    index = bisect_right(times, time_ns) - 1
    if index < 0 or times[index] < time_ns - POLL_NS:
        return {}
    known = {node: indexes[index] for node, indexes in record.positions.applied.items()}
    return {node: index for node, index in known.items() if index is not None}


def _cut(node: str, names: Sequence[str], on: Sequence[FaultRecord]) -> Literal["", "partly", "off"]:
    """Returns whether cuts that were on kept a node from hearing a majority, or some nodes."""
    grudges = [grudge for grudge in map(grudge_of, on) if grudge is not None]
    heard = [other for other in names if all(hears(grudge, node, other) for grudge in grudges) or other == node]
    if len(heard) == len(names):
        return ""
    return "partly" if 2 * len(heard) > len(names) else "off"
