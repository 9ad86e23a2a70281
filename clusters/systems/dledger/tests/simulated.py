"""Simulated nodes with the library DLedger that a test leads step by step."""

from __future__ import annotations

import abc
import asyncio
from typing import TYPE_CHECKING, TypeVar

from tests.simulated_group import SimulatedGroup

if TYPE_CHECKING:
    from clusters.sim.system import SimNodes
    from harness.node import Node

S = TypeVar("S", bound="SimNodes")

ELECTED = "has been elected to be the leader"


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
