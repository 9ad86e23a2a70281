"""A controller that loses its power, on real nodes: the form of finding 10, with its mend and without."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.outcomes import SUCCESS
from clusters.systems.routing import Routing
from harness.cluster import on_all
from harness.faults import PlannedFault
from harness.op import Invocation, Ok
from nemesis.conductor import Conductor
from tests.artifacts import built

if TYPE_CHECKING:
    from harness.node import Node
    from harness.service import NodeStatus

pytestmark = [pytest.mark.integration, pytest.mark.night]

READY_S = 60.0
ELECTED_S = 60.0
PAUSE_S = 0.1
GROUP = "b1"
CUT, POWER = 0, 1  # the numbers of faults


class Controllers:
    """Three real controllers, each with its data on a volume of its own, and a client that follows the leader."""

    def __init__(self, mend: str) -> None:
        """Makes the nodes; no controller runs yet."""
        self.cluster = LocalCluster.up(f"rocketmq-power-{os.getpid()}", nodes=3)
        self.system = built(
            RocketMQController(self.cluster, ControllerOptions(routing=Routing.LEADER, mend=mend), "broker-id")
        )
        self.conductor = Conductor(cluster=self.cluster, system=self.system)
        self.client = self.system.client(0, self.cluster.nodes[0])

    def terms(self) -> tuple[NodeStatus, NodeStatus]:
        """Carries out the steps. Returns the status of a leader, and of the one after its only voter has lost its power."""

        async def live() -> tuple[NodeStatus, NodeStatus]:
            await self.conductor.prepare([_planned(POWER, "power-loss", *self.cluster.nodes)])
            on_all(self.cluster.nodes, self.system.start)
            await self.system.until_ready(self.cluster.nodes, READY_S)
            try:
                return await self._forget()
            finally:
                await self.client.close()
                on_all(self.cluster.nodes, self.system.stop)
                await self.conductor.release()

        with self.cluster, self.cluster.entered():
            on_all(self.cluster.nodes, self.system.install)
            return asyncio.run(live())

    async def _forget(self) -> tuple[NodeStatus, NodeStatus]:
        await self._apply(1)
        first = self.system.node((await self._elected(*self.cluster.nodes)).node)
        self.system.kill(first)
        rest = [node for node in self.cluster.nodes if node != first]
        old = await self._elected(*rest)
        (voter,) = [node for node in rest if node.name != old.node]
        await self._apply(2)
        cut = _planned(CUT, "partition-random-halves", self.system.node(old.node))
        await self.conductor.begin(cut)
        loss = _planned(POWER, "power-loss", voter)
        await self.conductor.begin(loss)
        assert (await self.conductor.prove(loss)).effective
        await self.conductor.end(loss)
        self.system.start(first)
        new = await self._elected(first, voter)
        assert (await self.conductor.prove(cut)).effective
        await self.conductor.end(cut)
        return old, new

    async def _apply(self, broker: int) -> None:
        invocation = Invocation(f="apply", value={"id": broker, "check": broker}, key=GROUP)
        for _ in range(int(ELECTED_S / PAUSE_S)):
            outcome = await self.client.invoke(invocation)
            if isinstance(outcome, Ok):
                assert outcome.value["code"] == SUCCESS
                return
            await asyncio.sleep(PAUSE_S)
        raise TimeoutError(f"expected an answer in {ELECTED_S:g} s, got {outcome}")

    async def _elected(self, *among: Node) -> NodeStatus:
        for _ in range(int(ELECTED_S / PAUSE_S)):
            for status in (await self.system.statuses_of(among)).values():
                if status is not None and status.role == "leader":
                    return status
            await asyncio.sleep(PAUSE_S)
        raise TimeoutError(f"expected a leader in {ELECTED_S:g} s")


def _planned(number: int, kind: str, *nodes: Node) -> PlannedFault:
    return PlannedFault(id=number, kind=kind, target=[node.name for node in nodes], start_s=0.0, end_s=10.0)


def test_a_controller_forgets_its_vote() -> None:
    """With the released jars, two controllers lead in one term. With the mend of finding 10, the second has a later term."""
    old, new = Controllers("").terms()
    assert new.term == old.term
    assert new.node != old.node
    old, new = Controllers("10").terms()
    assert (new.term or 0) > (old.term or 0)
