"""The reads of every key after healing: through which nodes they go, and what came of them.

They go through as many nodes as the system allows, because each may hold something else. Where a node answers reads only
while it leads, the node that leads is read first, and then the leadership is moved to each other node in turn; where it cannot
be moved, the node that leads is the only one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.leaders import leader_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from harness.node import Node
    from harness.system import System

STATUS_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReads:
    """What came of the final reads that a test asked for.

    Attributes:
        through: The nodes through which they were made, in order.
        left_out: Each other node, with the reason as a clause about the node, e.g. `did not become leader in 15 s`.
        missing: Why none were made at all, as a sentence; None if some were.
    """

    through: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    missing: str | None = None


async def read_nodes(
    system: System,
    nodes: Sequence[Node],
    *,
    read: Callable[[Node], Awaitable[None]],
    stop: asyncio.Event,
    lead_timeout_s: float,
) -> AsyncIterator[FinalReads]:
    """Reads every node that the system allows to be read, one after the other.

    Args:
        system: What runs on the nodes.
        nodes: All nodes, in order.
        read: Reads every key through a node.
        stop: Set when the run was interrupted; no other node is read then.
        lead_timeout_s: How long a node may take to become the leader, where it has to be.

    Yields:
        After each node, what came of the reads so far.
    """
    through: list[str] = []
    left_out: dict[str, str] = {}
    leader = await leading(system, nodes) if system.reads_need_leader else None
    allowed = _allowed(system, nodes, leader)
    # A change of leaders may take longer than there is time; what the present one has is read before.
    for node in sorted(nodes, key=lambda node: node != leader):
        why = "was not reached before the run was interrupted" if stop.is_set() else allowed[node.name]
        if why is None and system.reads_need_leader and system.moves_leadership:
            leads = await system.lead(node, lead_timeout_s)
            why = None if leads else f"did not become leader in {lead_timeout_s:g} s"
        if why is None:
            await read(node)
            through.append(node.name)
        else:
            left_out[node.name] = why
        missing = None if through else f"No node was read: {'; '.join(map(' '.join, left_out.items()))}."
        yield FinalReads(through=tuple(through), left_out=dict(left_out), missing=missing)


def _allowed(system: System, nodes: Sequence[Node], leader: Node | None) -> dict[str, str | None]:
    """Returns, for each node, None if it may be read, else why it is left out, as a clause about the node."""
    if not system.reads_need_leader or system.moves_leadership:
        return {node.name: None for node in nodes}
    immovable = f"and {system.name} does not move the leadership"
    if leader is None:
        return {node.name: f"does not lead, nor does any other node, {immovable}" for node in nodes}
    why = f"does not lead; {leader.name} does, {immovable}"
    return {node.name: None if node == leader else why for node in nodes}


async def leading(system: System, nodes: Sequence[Node]) -> Node | None:
    """Asks all nodes once, and returns the one that says it leads in the highest term; None if none does."""
    statuses = await asyncio.gather(*(system.status(node, STATUS_TIMEOUT_S) for node in nodes))
    leader = leader_of(status for status in statuses if status is not None)
    return None if leader is None else nodes[statuses.index(leader)]
