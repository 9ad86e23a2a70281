"""The reads of every key after healing: their nodes, and their results.

They go through as many nodes as the system allows, because nodes may hold different data. If a node answers reads only
while it leads, Labrys reads the leader first, and then moves the leadership to each other node in turn. If the leadership
cannot move, Labrys reads only the leader. If nodes answer from their own states, Labrys reads none that stays out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.leaders import leader_of
from harness.phases import FINAL_READS
from harness.service import first_status
from harness.slowness import slowed
from harness.tasks import answers

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from harness.node import Node
    from harness.phases import Phases
    from harness.service import Service

STATUS_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReads:
    """The results of the final reads of a test.

    Attributes:
        through: The nodes that were read, in order.
        left_out: Each other node, with the reason as a clause about the node, e.g. `did not become leader in 15 s`.
        missing: Why there were no final reads, as a sentence; None if there were some.
    """

    through: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    missing: str | None = None


async def read_nodes(
    service: Service,
    *,
    read: Callable[[Node], Awaitable[str | None]],
    stop: asyncio.Event,
    lead_timeout_s: float,
    phases: Phases,
    out: Mapping[str, str] | None = None,
    moves: bool = True,
) -> AsyncIterator[FinalReads]:
    """Reads every node that the service allows to be read, one after the other.

    Args:
        service: The service that clients use.
        read: Reads every key through a node; returns why the node is left out, or None.
        stop: Set when the run is interrupted; then no other node is read.
        lead_timeout_s: The time limit for a node to become the leader, if this is necessary.
        phases: Measures the time for each node.
        out: Nodes that stay out, each with the reason; they are not made the leader, nor read if they answer from their own
            state.
        moves: Whether the leadership may be moved; it cannot in a system that does not work.

    Yields:
        After each node, the results so far.
    """
    through: list[str] = []
    left_out: dict[str, str] = {}
    leader = await leading(service) if service.reads_need_leader else None
    moves = moves and service.moves_leadership
    allowed = _allowed(service, leader, out or {}, moves=moves)
    # A change of the leader may take too long, so the present leader is read first.
    for node in sorted(service.nodes, key=lambda node: node != leader):
        why = "was not reached before the run was interrupted" if stop.is_set() else allowed[node.name]
        if why is None:
            with phases.during(FINAL_READS, node.name):
                if service.reads_need_leader and moves:
                    called = f"lead_promptly of the system {service.system.name}"
                    [leads] = await answers(called, [service.lead_promptly(node, lead_timeout_s)], lead_timeout_s)
                    why = None if leads else f"did not become leader in {lead_timeout_s:g} s"
                if why is None:
                    why = await read(node)
        if why is None:
            through.append(node.name)
        else:
            left_out[node.name] = why
        missing = None if through else f"No node was read: {'; '.join(map(' '.join, left_out.items()))}."
        yield FinalReads(through=tuple(through), left_out=dict(left_out), missing=missing)


def _allowed(service: Service, leader: Node | None, out: Mapping[str, str], *, moves: bool) -> dict[str, str | None]:
    """Returns None for each node that may be read, and for others the reason as a clause about the node."""
    stayed_out = {
        node.name: f"stayed out: it {out[node.name]}" if node.name in out and node != leader else None
        for node in service.nodes
    }
    if not service.reads_need_leader:
        return stayed_out if service.reads_own_state else dict.fromkeys(stayed_out)
    if moves:
        return stayed_out
    does = "did not work again" if service.moves_leadership else "does not move the leadership"
    immovable = f"and {service.system.name} {does}"
    if leader is None:
        return {node.name: f"does not lead, nor does any other node, {immovable}" for node in service.nodes}
    why = f"does not lead; {leader.name} does, {immovable}"
    return {node.name: None if node == leader else why for node in service.nodes}


async def leading(service: Service) -> Node | None:
    """Asks all nodes once, and returns the node that reports to lead in the highest term; None if there is none."""
    limit_s = slowed(STATUS_TIMEOUT_S)
    statuses = await answers(
        f"statuses of the system {service.system.name}",
        [first_status(service, node, limit_s) for node in service.nodes],
        limit_s,
    )
    leader = leader_of(status for status in statuses if status is not None)
    return None if leader is None else service.nodes[statuses.index(leader)]
