"""Simulated nodes that a test leads step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Self

    from clusters.sim.cluster import SimCluster
    from clusters.sim.system import SimNodes
    from harness.node import Node

S = TypeVar("S", bound="SimNodes")

READY_S = 30.0
CUT = 1  # the key of the fault


class SimulatedGroup(Generic[S]):
    """Simulated nodes with a client that follows the leader."""

    def __init__(self, cluster: SimCluster, system: S) -> None:
        """Makes the nodes; none runs yet."""
        self.cluster, self.world, self.system = cluster, cluster.world, system
        self.client = system.client(0, cluster.nodes[0])

    def run(self, form: Callable[[Self], Awaitable[bool]]) -> bool:
        """Starts the nodes, and returns what a form finds."""

        async def live() -> bool:
            for node in self.cluster.nodes:
                self.system.start(node)
            await self.system.until_ready(self.cluster.nodes, READY_S)
            formed = await form(self)
            await self.client.close()
            return formed

        try:
            return self.world.run(live())
        finally:
            self.cluster.close()

    def others(self, *without: Node) -> Sequence[Node]:
        """Returns all nodes but these."""
        return [node for node in self.cluster.nodes if node not in without]

    def cut_off(self, node: Node) -> None:
        """Cuts a node off the others, in both directions."""
        others = frozenset(other.name for other in self.others(node))
        self.world.cut(CUT, {node.name: others, **dict.fromkeys(others, frozenset({node.name}))})

    def lines(self, text: str) -> int:
        """Returns the number of lines in all logs that have a text."""
        return sum(text in line for machine in self.world.machines.values() for line in machine.lines)
