"""Simulated nodes that a test leads step by step."""

from __future__ import annotations

import abc
import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Self

    from clusters.sim.cluster import SimCluster
    from clusters.sim.system import SimNodes
    from harness.node import Node

S = TypeVar("S", bound="SimNodes")

READY_S = 30.0
ELECTED = "has been elected to be the leader"  # of DLedger
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
            found = await form(self)
            await self.client.close()
            return found

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


class DLedgerGroup(SimulatedGroup[S]):
    """Simulated nodes with DLedger."""

    @abc.abstractmethod
    async def leader(self) -> Node:
        """Returns the node that leads."""

    async def votes_without_storing(self) -> bool:
        """Fills the disks of the followers. They elect one of them, and the other one starts again and can vote a second time.

        Returns:
            Whether a term has two leaders. Nodes that refuse to vote on a full disk have one leader again afterwards.
        """
        first = await self.leader()
        others = self.others(first)
        before = self.lines(ELECTED)
        for node in others:
            self.world.fill_disk(node.name, full=True)
        self.system.kill(first)
        await asyncio.sleep(15.0)
        started: list[Node] = []
        term = 0
        if self.lines(ELECTED) > before:
            second = await self.leader()
            term = (await self.system.statuses(second, 1.0))[0].term or 0
            (voter,) = self.others(first, second)
            self.cut_off(second)
            self.system.kill(voter)
            started = [voter, first]
        for node in others:
            self.world.fill_disk(node.name, full=False)
        for node in started:
            self.system.start(node)
        await asyncio.sleep(30.0)
        assert self.lines(ELECTED) > before
        return self.lines(f"{ELECTED} in term {term}") > 1
