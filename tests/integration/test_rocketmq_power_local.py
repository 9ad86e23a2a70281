"""Controllers that lose their power or their target of a transfer, on real nodes: findings with their mends and without."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.routing import Routing
from harness.op import Ok
from nemesis import volume
from tests.artifacts import built
from tests.broker_group import BrokerGroup, applying
from tests.real_group import PAUSE_S, READY_S, RealGroup

if TYPE_CHECKING:
    from harness.node import Node

pytestmark = [pytest.mark.integration, pytest.mark.night]

LOSSES = 6  # of power, until one takes a change
SILENT_S = 20.0  # without a success for this time, a group does not serve
KILLER_PORT = 20_000


class Controllers(BrokerGroup, RealGroup[RocketMQController]):
    """Three real controllers with a client that follows the leader."""

    def __init__(self, mend: str, *, on_volumes: bool = True) -> None:
        """Makes the nodes; no controller runs yet."""
        cluster = LocalCluster.up(f"rocketmq-power-{os.getpid()}", nodes=3)
        options = ControllerOptions(routing=Routing.LEADER, mend=mend)
        super().__init__(cluster, built(RocketMQController(cluster, options, "broker-id")), on_volumes=on_volumes)


class Plug:
    """The power of a controller, which goes off within a millisecond. A fault of a plan takes longer: it uses a shell."""

    def __init__(self, group: Controllers, node: Node) -> None:
        """Prepares the loss."""
        self._remote = group.cluster.remote(node)
        ((self._role, state),) = group.system.process_states(node).items()
        assert state is not None
        self._data = group.system.data_dir(node, self._role)
        volume.write_unsynced(self._remote, self._data)
        wait = (
            f"import os, socket; s = socket.create_server(('', {KILLER_PORT})); c = s.accept()[0]; "
            f"c.send(b'r'); c.recv(1); os.kill({state[0]}, 9)"
        )
        group.shell(node, f'setsid python3 -c "{wait}" > killer 2>&1 < /dev/null &')
        self._killer = self._connected(node)

    def _connected(self, node: Node) -> socket.socket:
        for _ in range(100):
            try:
                connection = socket.create_connection((node.address, KILLER_PORT), 1.0)
            except ConnectionRefusedError:
                time.sleep(PAUSE_S)
            else:
                assert connection.recv(1)
                return connection
        raise TimeoutError(f"expected a process that listens on {node.name}")

    def pull(self) -> None:
        """Kills the process. What it wrote and did not sync is only in the memory of the kernel from now on."""
        self._killer.send(b"k")

    def lose(self) -> None:
        """Drops what is not synced, with a proof, and turns the power on."""
        self._killer.close()
        volume.cut_power(self._remote, self._data, self._role)
        loss = volume.restore_power(self._remote, self._data, self._role)
        assert loss.synced_kept, loss
        assert loss.unsynced_lost, loss


async def has_two_leaders_of_a_term(group: Controllers) -> bool:
    """Finding 10: the only voter of a leader loses its power, and with it the vote."""
    await group.apply(1)
    first = await group.leader()
    group.system.kill(first)
    second = group.system.node((await group.elected(*group.others(first))).node)
    (voter,) = group.others(first, second)
    await group.apply(2)
    term = (await group.status(second)).term
    async with group.cut_off(second):
        await group.lose_power(voter)
        group.system.start(first)
        return (await group.elected(first, voter)).term == term


async def loses_a_change(group: Controllers) -> bool:
    """Finding 11: the only other controller with a change loses its power right after the answer, and the leader is killed."""
    for broker in range(1, 1 + LOSSES):
        leader = await group.leader()
        voter, old = group.others(leader)
        plug = Plug(group, voter)
        async with group.cut_off(old):
            await group.apply(broker)
            plug.pull()
            group.system.kill(leader)
        plug.lose()
        group.system.start(voter)
        await group.elected(voter, old)
        group.system.start(leader)
        await group.system.until_ready(group.cluster.nodes, READY_S)
        if await group.next() == broker:
            return True
    return False


async def refuses_changes(group: Controllers) -> bool:
    """Finding 12: the leadership is to be moved to a controller that does not run. Changes get no success after its start."""
    await group.apply(1)
    leader = await group.leader()
    target = group.others(leader)[0]
    term = (await group.status(leader)).term
    group.system.kill(target)
    await asyncio.sleep(2.0)
    await group.system.transfer(leader, term, target, 5.0)
    group.system.start(target)
    await group.status(target)
    await asyncio.sleep(SILENT_S)
    outcome = await group.client.invoke(applying(2))
    return not isinstance(outcome, Ok) and group.lines(leader, "LEADER_TRANSFERRING") > 0


def test_a_controller_forgets_its_vote() -> None:
    """With the released jars, two controllers lead in one term. With the mend of finding 10, the second has a later term."""
    assert Controllers("").run(has_two_leaders_of_a_term)
    assert not Controllers("10").run(has_two_leaders_of_a_term)


def test_a_change_is_answered_before_it_is_on_a_disk() -> None:
    """With the released jars, one of some losses of power takes a change that was answered with 0."""
    assert Controllers("").run(loses_a_change)


def test_an_answered_change_is_on_a_disk_with_the_mend() -> None:
    """With the mend of finding 11, none of the losses takes a change."""
    assert not Controllers("11").run(loses_a_change)


def test_a_transfer_to_a_dead_controller_ends_the_service() -> None:
    """With the released jars, the leader refuses all changes afterwards. With the mend of finding 12, it goes on."""
    assert Controllers("", on_volumes=False).run(refuses_changes)
    assert not Controllers("12", on_volumes=False).run(refuses_changes)
