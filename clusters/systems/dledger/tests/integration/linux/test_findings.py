"""Findings about losses of power and full disks, met again by the released programs in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit.routing import Routing
from clusters.sim.linux.cluster import LinuxCluster
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.system import DLedgerSystem
from clusters.systems.dledger.tests.simulated import ELECTED
from harness.op import Invocation, Ok
from tests.artifacts import built
from tests.simulated_group import CUT, READY_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from harness.node import Node

pytestmark = [pytest.mark.integration, pytest.mark.night]
TRIES = 50
SEEDS = (4, 5, 6)


class Group:
    """Three nodes of DLedger as a program, and a client that follows the leader."""

    def __init__(self, seed: int, mend: str) -> None:
        self.cluster = LinuxCluster(("n1", "n2", "n3"), seed)
        self.world = self.cluster.world
        self.world.prepare_loss()
        options = DLedgerOptions(routing=Routing.LEADER, mend=mend)
        self.system: Any = built(DLedgerSystem(self.cluster, options, "register"))

    def run(self, form: Callable[[Group], Awaitable[bool]]) -> bool:
        """Starts the nodes, and returns what a form finds."""

        async def live() -> bool:
            for node in self.cluster.nodes:
                self.system.install(node)
                self.system.start(node)
            await self.system.until_ready(self.cluster.nodes, READY_S)
            self.client = self.system.client(0, self.cluster.nodes[0])
            formed = await form(self)
            await self.client.close()
            return formed

        try:
            with self.cluster.entered():
                return self.world.run(live())
        finally:
            self.cluster.close()

    def others(self, *without: Node) -> Sequence[Node]:
        """Returns all nodes but these."""
        return [node for node in self.cluster.nodes if node not in without]

    async def leader(self) -> Node:
        """Returns the node that leads."""
        for _ in range(TRIES):
            statuses = await self.system.statuses_of(self.cluster.nodes)
            leaders = [name for name, status in statuses.items() if status is not None and status.role == "leader"]
            if len(leaders) == 1:
                return next(node for node in self.cluster.nodes if node.name == leaders[0])
            await asyncio.sleep(0.2)
        raise AssertionError("no node leads")

    async def write(self, value: int) -> None:
        """Writes a value until it is acknowledged."""
        for _ in range(TRIES):
            if isinstance(await self.client.invoke(Invocation(f="write", value=value, key="k0")), Ok):
                return
            await asyncio.sleep(0.2)
        raise AssertionError(f"the write of {value} was not acknowledged")

    def cut_off(self, node: Node) -> None:
        """Cuts a node off the others, in both directions."""
        others = frozenset(other.name for other in self.others(node))
        self.world.cut(CUT, {node.name: others, **dict.fromkeys(others, frozenset({node.name}))})

    def lose_power(self, node: Node) -> None:
        """Takes the power of a node, and starts it again."""
        self.world.power_off(node.name)
        self.system.kill(node)
        self.world.lose_power(node.name)
        self.system.start(node)

    def elections(self, term: int) -> int:
        """Returns how often a log says that a node leads a term."""
        paths = [
            self.world.controller.path_of(node.name, log)
            for node in self.cluster.nodes
            for log in self.system.daemon(node).log_files
        ]
        logs = [path.read_text(errors="replace") for path in paths if path.exists()]
        return sum(log.count(f"{ELECTED} in term {term}") for log in logs)


async def has_two_leaders_of_a_term(group: Group) -> bool:
    """Finding 18 of DLedger: the only voter of a leader loses its power, and with it the vote."""
    await group.write(1)
    first = await group.leader()
    group.system.kill(first)
    await asyncio.sleep(5.0)
    second = await group.leader()
    (voter,) = group.others(first, second)
    await group.write(2)
    term = (await group.system.statuses(second, 1.0))[0].term
    group.cut_off(second)
    group.lose_power(voter)
    group.system.start(first)
    await asyncio.sleep(20.0)
    return group.elections(term) > 1


@pytest.mark.parametrize(("mend", "is_there"), [("", True), ("18", False)])
def test_a_vote_is_not_on_the_disk(mend: str, is_there: bool) -> None:
    """With the released library, each of these seeds has two leaders of a term, and with the mend of the finding none."""
    formed = [Group(seed, mend).run(has_two_leaders_of_a_term) for seed in SEEDS]
    assert formed == [is_there] * len(SEEDS)
