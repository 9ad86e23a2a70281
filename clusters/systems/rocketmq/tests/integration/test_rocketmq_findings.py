"""Findings in RocketMQ's controllers (`findings`) that need requests outside of the workloads, on real controllers."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit.answers import NoAnswer, NotSent
from clusters.local import LocalCluster
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from clusters.systems.rocketmq.requests import CLUSTER, REQUESTS
from harness.cluster import on_all
from harness.leaders import LEADER
from harness.service import first_status
from tests.artifacts import built

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.systems.dledger.remoting import Answer, Connection
    from harness.node import Node
    from harness.op import Value

pytestmark = [pytest.mark.integration, pytest.mark.night]

READY_S = 90.0
ANSWER_S = 6.0
SILENT_S = 25.0  # several times what the controllers need
ORPHANED_S = 11.0  # two scans of a controller
ALIVE_MS = 3000
LONG_MS = 600_000
REGISTER, HEARTBEAT = 1003, 904


@pytest.fixture(scope="module", params=[Consensus.DLEDGER, Consensus.JRAFT])
def system(request: pytest.FixtureRequest) -> Iterator[RocketMQController]:
    """Three controllers on one consensus, serving; the tests run where their addresses can be reached."""
    with LocalCluster.up(f"findings-{os.getpid()}", nodes=3) as cluster, cluster.entered():
        made = built(RocketMQController(cluster, ControllerOptions(consensus=request.param), "broker-id"))
        on_all(cluster.nodes, made.install)
        on_all(cluster.nodes, made.start)
        try:
            asyncio.run(made.until_ready(cluster.nodes, READY_S))
            yield made
        finally:
            on_all(cluster.nodes, made.stop)


async def leader_of(system: RocketMQController) -> Node:
    """The controller that reports that it leads."""
    statuses = [await first_status(system, node, ANSWER_S) for node in system.controllers.nodes]
    (leader,) = {status.node for status in statuses if status is not None and status.role == LEADER}
    return next(node for node in system.controllers.nodes if node.name == leader)


async def asked(connection: Connection, f: str, name: str, argument: Value = None) -> dict[str, Any]:
    """The answer of a controller."""
    return REQUESTS[f].value(name, await REQUESTS[f].ask(connection, name, argument))


class Brokers:
    """Brokers of one group, each with a connection of its own to every controller."""

    def __init__(self, system: RocketMQController, name: str) -> None:
        self._nodes, self._controllers, self._name = system.controllers.nodes, system.controllers, name
        self._connections: dict[tuple[int, str], Connection] = {}

    async def beat(self, broker: int, *, alive_ms: int) -> None:
        """Sends a heartbeat to each controller; it is good for `alive_ms`."""
        for node in self._nodes:
            connection_key = (broker, node.name)
            if connection_key not in self._connections:
                self._connections[connection_key] = await self._controllers.connect(node)
            argument = {"id": broker, "epoch": 0, "max_offset": 0, "priority": 0}
            fields = REQUESTS["heartbeat"].fields(self._name, argument)
            fields["heartbeatTimeoutMills"] = str(alive_ms)
            await self._connections[connection_key].call(HEARTBEAT, None, extension=fields)

    async def in_sync(self, leader: Connection, *, alive_ms: int) -> None:
        """Brings two brokers into the sync set; the first one is master."""
        for broker in (1, 2):
            await asked(leader, "apply", self._name, {"id": broker, "check": f"127.0.0.1:{broker};1"})
            await self.beat(broker, alive_ms=alive_ms)
        elected = await asked(leader, "elect", self._name, {"id": 1, "designate": False})
        await self.beat(1, alive_ms=alive_ms)
        argument = {"master": 1, "master_epoch": 1, "sync_set": [1, 2], "sync_epoch": 1}
        altered = await asked(leader, "alter", self._name, argument)
        assert (elected["code"], altered["code"]) == (0, 0)

    async def leave(self, *brokers: int) -> None:
        """Closes all connections of these brokers."""
        for connection_key in [connection_key for connection_key in self._connections if connection_key[0] in brokers]:
            await self._connections.pop(connection_key).close()


def lives(state: dict[str, Any]) -> dict[int, bool]:
    """Whether the controller regards each broker as alive."""
    return {broker: alive for broker, _, alive in (*state["in_sync"], *state["not_in_sync"])}


def test_a_master_that_falls_silent(system: RocketMQController) -> None:
    """A master with an open connection and no heartbeats: on jraft it stays master, although it is dead."""

    async def main() -> None:
        name, brokers = "silent", Brokers(system, "silent")
        leader = await system.controllers.connect(await leader_of(system))
        await brokers.in_sync(leader, alive_ms=ALIVE_MS)
        end_s, state = time.monotonic() + SILENT_S, await asked(leader, "state", name)
        while time.monotonic() < end_s and state.get("master") == 1:
            await brokers.beat(2, alive_ms=ALIVE_MS)
            await asyncio.sleep(1.0)
            state = await asked(leader, "state", name)
        await leader.close()
        await brokers.leave(1, 2)
        assert lives(state) == {1: False, 2: True}
        assert state["master"] == (1 if system.options.consensus is Consensus.JRAFT else 2)

    asyncio.run(main())


def test_a_master_that_dies_while_nobody_leads(system: RocketMQController) -> None:
    """A master whose connections close right after a kill of the leader: on jraft it stays alive and master."""
    name, brokers = "orphan", Brokers(system, "orphan")
    nodes = system.controllers.nodes

    async def begin() -> Node:
        led = await leader_of(system)
        connection = await system.controllers.connect(led)
        await brokers.in_sync(connection, alive_ms=LONG_MS)
        await connection.close()
        await asyncio.to_thread(system.kill, led)
        await brokers.leave(1)
        return led

    async def watch() -> dict[str, Any]:
        leader = await system.controllers.connect(await leader_of(system))
        end_s, state = time.monotonic() + ORPHANED_S, await asked(leader, "state", name)
        while time.monotonic() < end_s and state.get("master") == 1:
            await asyncio.sleep(1.0)
            state = await asked(leader, "state", name)
        await leader.close()
        await brokers.leave(2)
        return state

    async def main() -> tuple[Node, dict[str, Any]]:
        killed = await begin()
        await system.until_ready([node for node in nodes if node != killed], READY_S)
        return killed, await watch()

    killed, state = asyncio.run(main())
    system.start(killed)  # the others need not wait for it
    if system.options.consensus is Consensus.JRAFT:
        assert (state["master"], lives(state)) == (1, {1: True, 2: True})
    else:
        assert (state["master"], lives(state)[1]) == (2, False)


def test_a_request_that_lacks_a_field(system: RocketMQController) -> None:
    """After a register without an address, controllers on jraft answer no request, even after a restart."""

    async def answered(f: str, name: str, argument: Value) -> bool:
        try:
            async with asyncio.timeout(ANSWER_S):
                connection = await system.controllers.connect(await leader_of(system))
                try:
                    return bool((await asked(connection, f, name, argument))["code"] == 0)
                finally:
                    await connection.close()
        except (NotSent, NoAnswer, TimeoutError):
            return False

    async def poison() -> Answer | None:
        connection = await system.controllers.connect(await leader_of(system))
        try:
            fields = {"clusterName": CLUSTER, "brokerName": "poison", "brokerId": "1", "invokeTime": "0"}
            async with asyncio.timeout(2 * ANSWER_S):
                return await connection.call(REGISTER, None, extension=fields)
        finally:
            await connection.close()

    assert asyncio.run(answered("apply", "poison", {"id": 1, "check": "127.0.0.1:1;1"}))
    ended = asyncio.run(poison())
    assert ended is not None
    assert ended.status == 1
    is_jraft = system.options.consensus is Consensus.JRAFT
    assert asyncio.run(answered("next", "other", None)) is not is_jraft
    on_all(system.controllers.nodes, system.kill)
    on_all(system.controllers.nodes, system.start)
    if is_jraft:
        time.sleep(SILENT_S)
        assert not asyncio.run(answered("next", "other", None))
    else:
        asyncio.run(system.until_ready(system.controllers.nodes, READY_S))
