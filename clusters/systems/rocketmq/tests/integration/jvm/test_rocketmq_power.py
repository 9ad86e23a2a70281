"""Controllers that lose their power, their disks or their target of a transfer, in virtual time: what their group does then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from clusters.kit.routing import Routing
from clusters.sim.cluster import SimCluster
from clusters.systems.dledger.tests.simulated import ELECTED, DLedgerGroup
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.simulated import SimRocketMQController
from clusters.systems.rocketmq.tests.broker_group import NEXT, BrokerGroup, applying
from harness.op import Ok
from tests.artifacts import built
from tests.simulated_group import CUT

if TYPE_CHECKING:
    from harness.node import Node

pytestmark = pytest.mark.integration


class Controllers(BrokerGroup, DLedgerGroup[SimRocketMQController]):
    """Three simulated controllers with a client that follows the leader."""

    def __init__(self, seed: int, mend: str = "", *, process_read_event: bool = False) -> None:
        """Makes the controllers; none runs yet."""
        cluster = SimCluster(("n1", "n2", "n3"), seed)
        cluster.world.prepare_loss()
        options = ControllerOptions(routing=Routing.LEADER, mend=mend, process_read_event=process_read_event)
        super().__init__(cluster, built(SimRocketMQController(cluster, options, "broker-id")))

    async def leader(self) -> Node:
        """Returns the controller that leads."""
        statuses = await self.system.statuses_of(self.cluster.nodes)
        (name,) = [name for name, status in statuses.items() if status is not None and status.role == "leader"]
        return self.system.node(name)

    def lose_power(self, node: Node) -> None:
        """Takes the power of a controller, and starts it again."""
        self.system.kill(node)
        self.world.lose_power(node.name)
        self.system.start(node)


async def has_two_leaders_of_a_term(group: Controllers) -> bool:
    """The only voter of a leader loses its power, and with it the vote."""
    await group.apply(1)
    first = await group.leader()
    group.system.kill(first)
    name, _ = await group.world.log_line({node.name for node in group.others(first)}, ELECTED)
    second = group.system.node(name)
    (voter,) = group.others(first, second)
    await group.apply(2)
    status = (await group.system.statuses(second, 1.0))[0]
    group.cut_off(second)
    group.lose_power(voter)
    group.system.start(first)
    await asyncio.sleep(30.0)
    return group.lines(f"{ELECTED} in term {status.term}") > 1


async def loses_a_change(group: Controllers) -> bool:
    """The only other controller with a change loses its power right after the answer, and the leader is cut off."""
    await group.apply(1)
    leader = await group.leader()
    voter, old = group.others(leader)
    group.cut_off(old)
    await group.apply(2)
    group.world.mend(CUT)
    group.cut_off(leader)
    group.lose_power(voter)
    await asyncio.sleep(20.0)
    group.world.mend(CUT)
    await asyncio.sleep(20.0)
    return await group.next() == 2


async def forgets_its_term(group: Controllers) -> bool:
    """A candidate is killed while it stores its term."""
    await group.apply(1)
    leader = await group.leader()
    group.system.kill(leader)
    name, _ = await group.world.log_line({node.name for node in group.others(leader)}, r"\[INCREASE_TERM\]")
    await asyncio.sleep(0.03)
    node = group.system.node(name)
    group.system.kill(node)
    group.system.start(node)
    group.system.start(leader)
    await asyncio.sleep(9.0)
    return group.lines(f"{name}_[INCREASE_TERM] from 0 to") > 1


def test_a_killed_controller_forgets_its_term() -> None:
    """The second form of finding 10, which the mend removes too."""
    assert Controllers(1).run(forgets_its_term)
    assert not Controllers(1, mend="10").run(forgets_its_term)


def test_a_controller_forgets_its_vote() -> None:
    """The released controllers have finding 10: two of them lead in one term. Mended ones keep their votes."""
    assert Controllers(1).run(has_two_leaders_of_a_term)
    assert not Controllers(1, mend="10").run(has_two_leaders_of_a_term)


def test_a_change_is_answered_before_it_is_on_a_disk() -> None:
    """Finding 11: a change that was answered with success is gone after one loss of power. With the mend, it is kept."""
    assert Controllers(4).run(loses_a_change)
    assert not Controllers(4, mend="11").run(loses_a_change)


async def votes_without_storing(group: Controllers) -> bool:
    """A controller with a full disk votes twice in a term."""
    await group.apply(1)
    return await group.votes_without_storing()


def test_a_controller_votes_without_storing() -> None:
    """The released controllers have finding 13: two of them lead in one term. Mended ones do not vote on a full disk."""
    assert Controllers(1).run(votes_without_storing)
    assert not Controllers(1, mend="13").run(votes_without_storing)


async def refuses_changes(group: Controllers) -> bool:
    """The leadership is to be moved to a controller that does not run. A minute after its start, changes get no success."""
    await group.apply(1)
    leader = await group.leader()
    target = group.others(leader)[0]
    status = (await group.system.statuses(leader, 1.0))[0]
    group.system.kill(target)
    await asyncio.sleep(2.0)
    await group.system.transfer(leader, status.term, target, 5.0)
    group.system.start(target)
    await asyncio.sleep(60.0)
    outcome = await group.client.invoke(applying(2))
    return (
        await group.leader() == leader and not isinstance(outcome, Ok) and group.lines("name=LEADER_TRANSFERRING") > 0
    )


def test_a_transfer_to_a_dead_controller_ends_the_service() -> None:
    """Finding 12: the leader leads on, and waits for the answer of the dead process for good. With the mend, it serves."""
    assert Controllers(1).run(refuses_changes)
    assert not Controllers(1, mend="12").run(refuses_changes)


async def reads_the_past(group: Controllers) -> bool:
    """A leader is cut off while it moves the leadership. It does not hear of the next leader, and answers a read."""
    await group.apply(1)
    old = await group.leader()
    new = group.others(old)[0]
    old_client, new_client = (group.system.client(1, node, pinned=True) for node in (old, new))
    status = (await group.system.statuses(old, 1.0))[0]
    transfer = asyncio.create_task(group.system.transfer(old, status.term, new, 5.0))
    await group.world.log_line({new.name}, "ChangeRoleToCandidate")
    group.cut_off(old)
    await group.world.log_line({new.name}, ELECTED)
    await group.apply(2, new_client)
    outcome = await old_client.invoke(NEXT)
    await transfer
    for client in (old_client, new_client):
        await client.close()
    return isinstance(outcome, Ok) and outcome.value["next"] == 2


def test_a_transfer_lets_the_old_leader_answer_a_read() -> None:
    """A default read is stale without a fault of clocks. With the setting for recent reads, it gets no success."""
    assert Controllers(1).run(reads_the_past)
    assert not Controllers(1, process_read_event=True).run(reads_the_past)
