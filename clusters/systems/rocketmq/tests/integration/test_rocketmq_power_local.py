"""Controllers without power, space, or a target of a transfer, on real nodes: findings with their mends and without."""

from __future__ import annotations

import asyncio
import os
import shlex
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from clusters.kit.routing import Routing
from clusters.local import LocalCluster
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.tests.broker_group import BrokerGroup, applying
from harness.op import Ok
from nemesis import volume
from tests.artifacts import built
from tests.real_group import PAUSE_S, READY_S, SECOND_CUT, RealGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node

pytestmark = [pytest.mark.integration, pytest.mark.night]

LOSSES = 5  # of power, unless one takes a change
SILENT_S = 20.0  # without a success for this time, a group does not serve
FIRST_FILE = "0" * 20  # of a log
UNTIL_ACKNOWLEDGED_S = 0.002  # from the write of an entry until its acknowledgement is sent


class Controllers(BrokerGroup, RealGroup[RocketMQController]):
    """Three real controllers with a client that follows the leader."""

    def __init__(self, mend: str, *, faults: Sequence[str] = ("power-loss",)) -> None:
        """Makes the nodes; no controller runs yet."""
        cluster = LocalCluster.up(f"rocketmq-power-{os.getpid()}", nodes=3)
        options = ControllerOptions(routing=Routing.LEADER, mend=mend)
        super().__init__(cluster, built(RocketMQController(cluster, options, "broker-id")), faults=faults)


# Kills a process as soon as an entry follows the last one in a file. An entry begins with a number that is not 0, and its size.
KILLER = """
import os, struct, sys, time
pid, path, wait_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
file, end = os.open(path, os.O_RDONLY), 0
while size := struct.unpack(">ii", os.pread(file, 8, end))[1]:
    end += size
print("ready", flush=True)
while not any(os.pread(file, 4, end)):
    time.sleep(0.0001)
time.sleep(wait_s)
os.kill(pid, 9)
print("killed", flush=True)
"""


class Plug:
    """The power of a controller, which goes off right after the controller has written one more entry.

    A fault of a plan comes later: it uses a shell.
    """

    def __init__(self, group: Controllers, node: Node) -> None:
        """Prepares the loss."""
        self._group, self._node, self._remote = group, node, group.cluster.remote(node)
        ((self._role, state),) = group.system.process_states(node).items()
        assert state is not None
        self._data = group.system.data_dir(node, self._role)
        volume.write_unsynced(self._remote, self._data)
        (log,) = group.shell(node, f"find {self._data} -path '*/data/{FIRST_FILE}'").split()
        killer = f"chrt --fifo 50 python3 -c {shlex.quote(KILLER)} {state[0]} {log} {UNTIL_ACKNOWLEDGED_S}"
        group.shell(
            node, f"setsid {killer} > killer 2>&1 < /dev/null & until grep ready killer; do sleep {PAUSE_S}; done"
        )

    def lose(self) -> None:
        """Drops what is not synced, with a proof, and turns the power on."""
        assert "killed" in self._group.shell(self._node, "cat killer")
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


async def votes_without_storing(group: Controllers) -> bool:
    """Finding 13: a controller with a full disk votes twice in a term."""
    await group.apply(1)
    return await group.votes_without_storing()


async def changes_are_lost(group: Controllers) -> list[bool]:
    """Finding 11: the only other controller with a change loses its power as it acknowledges it, and the leader is cut off.

    Returns whether each change that was answered with success is lost. The first one that is ends the tries.
    """
    lost: list[bool] = []
    for broker in range(1, 1 + LOSSES):
        leader = await group.leader()
        voter, old = group.others(leader)
        async with AsyncExitStack() as away:
            async with group.cut_off(old):
                await group.next()  # the client knows the leader then
                plug = Plug(group, voter)
                outcome = await group.client.invoke(applying(broker))
                plug.lose()
                await away.enter_async_context(group.cut_off(leader, number=SECOND_CUT))
            group.system.start(voter)
            await group.elected(voter, old)
        await group.system.until_ready(group.cluster.nodes, READY_S)
        if isinstance(outcome, Ok):
            lost.append(await group.next() == broker)
        if any(lost):
            break
        await group.apply(broker)
    return lost


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


def test_a_controller_votes_without_storing() -> None:
    """With the released jars, two controllers lead in one term. With the mend of finding 13, nobody votes on a full disk."""
    assert Controllers("", faults=("disk-full",)).run(votes_without_storing)
    assert not Controllers("13", faults=("disk-full",)).run(votes_without_storing)


def test_a_change_is_answered_before_it_is_on_a_disk() -> None:
    """With the released jars, one of some losses of power takes a change that was answered with 0."""
    assert any(Controllers("").run(changes_are_lost))


def test_an_answered_change_is_on_a_disk_with_the_mend() -> None:
    """With the mend of finding 11, none of the losses takes a change."""
    lost = Controllers("11").run(changes_are_lost)
    assert lost
    assert not any(lost)


def test_a_transfer_to_a_dead_controller_ends_the_service() -> None:
    """With the released jars, the leader refuses all changes afterwards. With the mend of finding 12, it goes on."""
    assert Controllers("", faults=()).run(refuses_changes)
    assert not Controllers("12", faults=()).run(refuses_changes)
