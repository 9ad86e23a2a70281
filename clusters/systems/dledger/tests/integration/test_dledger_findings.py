"""Findings in DLedger (`findings`) that need steps outside of a plan, on real nodes."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit.routing import Routing
from clusters.local import LocalCluster
from clusters.systems.dledger import mends
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.system import DLedgerSystem
from harness.op import Invocation, Ok
from tests.artifacts import built
from tests.real_group import PAUSE_S, READY_S, RealGroup, found_in_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from harness.node import Node

pytestmark = [pytest.mark.integration, pytest.mark.night]

SNAPSHOT_ENTRIES = 50
SNAPSHOTS = {"snapshot_threshold": SNAPSHOT_ENTRIES}
ASKED = 100
TRIES = 4
PATIENT_MS = 4_000  # a heartbeat interval with which no follower elects another leader while its leader starts again
KEYS = 1_000
HOLDING = {"faults": ["thread-stall"]}
ELECTOR = "io.openmessaging.storage.dledger.DLedgerLeaderElector"
MAY_VOTE = f"{ELECTOR}.maintainAsCandidate:406"
RAISED_TERM = f"{ELECTOR}.maintainAsCandidate:423"
HEARTBEAT = f"{ELECTOR}.handleHeartBeat:108"
HANDLER = "io.openmessaging.storage.dledger.DLedgerEntryPusher$EntryHandler"
GOT_APPEND = f"{HANDLER}.handlePush:889"  # it has not kept the request yet
LATE_S = 0.1  # the leader waits for 10 ms after the answer of a majority
STUCK_S = 20.0
TRUNCATES = "-p tcp -m string --algo bm --string TRUNCATE -j DROP"  # packets that have a request to truncate


def but(*numbers: int) -> str:
    """Returns all mends but some."""
    return ",".join(str(number) for number in mends.MENDS if number not in numbers)


class Group(RealGroup[DLedgerSystem]):
    """Real nodes with a client that follows the leader."""

    def __init__(
        self,
        mend: str,
        *,
        nodes: int = 3,
        snapshot_threshold: int = 0,
        heartbeat_ms: int = 500,
        faults: Sequence[str] = (),
    ) -> None:
        cluster = LocalCluster.up(f"dledger-findings-{os.getpid()}", nodes=nodes)
        options = DLedgerOptions(
            routing=Routing.LEADER, mend=mend, snapshot_threshold=snapshot_threshold, heartbeat_ms=heartbeat_ms
        )
        super().__init__(cluster, built(DLedgerSystem(cluster, options, "register")), faults=faults)
        self._values = itertools.count()

    async def write(self, count: int) -> int:
        """Writes so many values, each until it is acknowledged, and returns the last one."""
        for value in itertools.islice(self._values, count):
            await self._done(Invocation(f="write", value=value, key=f"k{value % KEYS}"))
        return value

    async def write_unanswered(self, node: Node, count: int) -> None:
        """Sends so many writes to one node, each by a client of its own, and waits until none will be acknowledged."""
        clients = [self.system.client(1 + number, node, pinned=True) for number in range(count)]
        writes = [
            client.invoke(Invocation(f="write", value=value, key=f"k{value % KEYS}"))
            for client, value in zip(clients, self._values, strict=False)
        ]
        outcomes = await asyncio.gather(*writes)
        assert not any(isinstance(outcome, Ok) for outcome in outcomes), outcomes
        for client in clients:
            await client.close()

    async def replicas_differ(self) -> bool:
        """Returns whether nodes that have applied the same entries hold different values."""
        await self.until_equal(*self.cluster.nodes)
        replicas = [await self.system.replica(node, READY_S) for node in self.cluster.nodes]
        states = [replica.state for replica in replicas if replica is not None]
        assert len(states) == len(replicas)
        return states.count(states[0]) < len(states)

    async def lacks(self, value: int) -> bool:
        """Returns whether a read of the key that this value was written to returns another one."""
        value_read = (await self._done(Invocation(f="read", key=f"k{value % KEYS}"))).value
        return bool(value_read != value)

    async def _done(self, invocation: Invocation) -> Ok:
        for _ in range(ASKED):
            outcome = await self.client.invoke(invocation)
            if isinstance(outcome, Ok):
                return outcome
            await asyncio.sleep(PAUSE_S)
        raise AssertionError(f"{invocation} was not acknowledged in {ASKED} tries")

    async def applied(self, node: Node) -> int:
        """Returns the index of the last entry that a node has applied; 0 without one."""
        return (await self.status(node)).applied_index or 0

    async def until_applied(self, leader: Node, index: int) -> None:
        """Writes until a leader has applied the entry at an index. A write that is tried twice may be two entries."""
        while await self.applied(leader) < index:
            await self.write(1)

    async def lead(self, node: Node) -> None:
        """Moves the leadership to a node."""
        for _ in range(ASKED):
            if await self.system.lead(node, 5.0):
                return
        raise AssertionError(f"{node.name} did not become the leader in {ASKED} tries")

    async def until_equal(self, *nodes: Node) -> int:
        """Waits until these nodes have applied the same entries, and returns the index of the last one."""

        async def equal() -> int | None:
            (first, *more) = [await self.applied(node) for node in nodes]
            return first if all(index == first for index in more) else None

        return await found_in_time(equal, "the same entries at all nodes")

    def truncations(self, node: Node) -> list[int]:
        """Returns the indexes from which a node has truncated its log, from its own log lines."""
        files = " ".join(self.system.log_files(node))
        output = self.shell(node, f"cat {files} | grep --only-matching 'TRUNCATE. truncateIndex: [0-9]*' || true")
        return [int(line.rpartition(" ")[2]) for line in output.splitlines()]

    def lost(self, node: Node) -> int:
        """Returns how many packets with a request of a node to truncate were lost."""
        rules = self.shell(node, "iptables -w -nvxL OUTPUT").splitlines()
        return sum(int(rule.split()[0]) for rule in rules if "STRING" in rule)


async def leads_without_writes(group: Group) -> bool | None:
    """Finding 12: a follower misses acknowledged writes. Another one has them in its snapshot, and votes for it."""
    await group.write(5)
    leader = await group.leader()
    old, voter = group.others(leader)
    async with group.cut_off(old):
        await group.until_applied(leader, SNAPSHOT_ENTRIES - 1)
        if await group.until_equal(leader, voter) != SNAPSHOT_ENTRIES - 1:
            return None
        await asyncio.sleep(2.0)
        for node in (leader, voter):
            group.system.kill(node)
    group.system.start(voter)
    status = await group.elected(old, voter)
    return status.node == old.name and (status.applied_index or 0) < SNAPSHOT_ENTRIES - 1


async def obeys_a_dead_leader(group: Group) -> bool | None:
    """Finding 16: a leader starts twice and leads the same term. A request of its dead process takes acknowledged writes."""
    await group.write(20)
    leader = await group.leader()
    followers = group.others(leader)
    await group.until_equal(leader, *followers)
    group.shell(leader, f"iptables -w -I OUTPUT {TRUNCATES}")
    group.system.kill(leader)
    group.system.start(leader)
    if not await group.until(lambda: group.lost(leader) >= len(followers)):
        return None  # another node leads, because the start took too long
    group.system.kill(leader)
    # The kernel goes on to send what the dead process wrote. The packets of the next process pass.
    waiting = group.shell(leader, "ss -tnoH state fin-wait-1").splitlines()
    ports = ",".join(line.split()[2].rpartition(":")[2] for line in waiting if int(line.split()[1]) > 1)
    late = f"-p tcp -m multiport --sports {ports} -j DROP"
    group.shell(leader, f"iptables -w -I OUTPUT {late}; iptables -w -D OUTPUT {TRUNCATES}")
    group.system.start(leader)
    last = await group.write(10)
    group.shell(leader, f"iptables -w -D OUTPUT {late}")
    assert await group.until(lambda: not group.shell(leader, "ss -tnoH state fin-wait-1"))
    group.system.kill(leader)
    await group.elected(*followers)
    group.system.start(leader)
    return await group.lacks(last)


async def obeys_an_old_leader(group: Group) -> bool:
    """Finding 15: a leader is cut off while its request to truncate is on its way, and another leader commits more entries."""
    await group.write(20)
    first = await group.leader()
    await group.until_equal(*group.cluster.nodes)
    for node in group.others(first):
        group.shell(node, f"iptables -w -I OUTPUT {TRUNCATES}")
    group.system.kill(first)
    old = group.system.node((await group.elected(*group.others(first))).node)
    assert await group.until(lambda: group.lost(old) >= 3)
    async with group.cut_off(old):
        for node in group.others(first, old):
            group.shell(node, f"iptables -w -D OUTPUT {TRUNCATES}")
        group.system.start(first)
        await group.elected(*group.others(old))
        await group.write(30)
        before = {node: group.lines(node, "[TRUNCATE] truncateIndex: 21,") for node in group.others(old)}
        committed = await group.until_equal(*group.others(old))
        assert committed > 50
        group.shell(old, f"iptables -w -D OUTPUT {TRUNCATES}")
    await asyncio.sleep(10.0)
    return any(group.lines(node, "[TRUNCATE] truncateIndex: 21,") > count for node, count in before.items())


async def is_not_sent_an_entry_again(group: Group) -> bool:
    """Finding 6: a new leader's requests with an entry of the term before, and the first one of its own, are held."""
    await group.write(10)
    old = await group.leader()
    last = await group.until_equal(*group.cluster.nodes)
    follower, *more = group.others(old)
    async with group.debugged(follower) as threads:
        group.shell(old, f"iptables -w -I OUTPUT -d {follower.address} -j DROP")
        await group.write(1)
        await group.until_equal(old, *more)
        group.system.kill(old)
        requests = threads.at(GOT_APPEND)
        await group.elected(*more)
        for _ in range(2):
            await threads.next(requests)
        threads.no_more_at(requests)
        await asyncio.sleep(STUCK_S)
        return (await group.status(follower)).last_index == last


async def stays_out_while_its_answers_are_late(group: Group) -> bool | None:
    """Finding 8: a leader leads its old term again, and a node in the next term answers later than the other one."""
    await group.write(5)
    leader = await group.leader()
    term = (await group.status(leader)).term or 0

    async def leads_again() -> bool | None:
        status = await group.status(leader)
        return status.role == "leader" if status.role == "leader" or (status.term or 0) > term else None

    last = await group.until_equal(*group.cluster.nodes)
    node, voter = group.others(leader)
    async with group.debugged(node) as threads, group.debugged(voter) as held_voter:
        raised, voter_may_vote = threads.at(RAISED_TERM), held_voter.at(MAY_VOTE)
        group.system.kill(leader)
        candidate = await threads.next(raised)
        async with group.cut_off(node):
            threads.no_more_at(raised)
            threads.go_on(candidate)
            group.system.start(leader)
            if not await found_in_time(leads_again, "an election"):
                return None  # the voter had voted for itself
            held_voter.no_more_at(voter_may_vote)
            for hit in await held_voter.arrived(0.0):
                held_voter.go_on(hit)
            await group.write(20)
            heartbeats = threads.at(HEARTBEAT)
        end_s = time.monotonic() + STUCK_S
        while time.monotonic() < end_s:
            for hit in await threads.arrived(1.0):
                await asyncio.sleep(LATE_S)
                threads.go_on(hit)
        result = await group.applied(node) == last
        threads.no_more_at(heartbeats)
    await group.until_equal(*group.cluster.nodes)
    return result


async def resets_for_ten_seconds(group: Group) -> bool | None:
    """Finding 13: a follower truncates entries that no other node has, and later installs a snapshot."""
    old = await group.leader()
    await group.write(10)
    last = await group.until_equal(*group.cluster.nodes)
    async with group.cut_off(old):
        await group.write_unanswered(old, 5)
        leader = group.system.node((await group.elected(*group.others(old))).node)
        await group.write(1)
    await group.until_equal(*group.cluster.nodes)
    if not any(index > last for index in group.truncations(old)):
        return None  # it stepped down before it took the writes
    async with group.cut_off(old):
        await group.until_applied(leader, 2 * SNAPSHOT_ENTRIES + 2)
    await group.until_equal(*group.cluster.nodes)
    assert group.lines(old, "loaded the snapshot")
    return group.lines(old, "destroy mapped file[REF:1]") >= 5


async def overwrites_committed_entries(group: Group) -> bool | None:
    """Finding 7: a follower has entries of a leader that had installed a snapshot, and truncates its file in a wrong place."""
    leader = await group.leader()
    behind, other, *_ = group.others(leader)
    await group.until_applied(leader, SNAPSHOT_ENTRIES - 6)
    await group.until_equal(*group.cluster.nodes)
    group.system.kill(behind)
    await group.until_applied(leader, SNAPSHOT_ENTRIES + 1)
    group.system.start(behind)
    await group.until_equal(*group.cluster.nodes)
    if not group.lines(behind, "loaded the snapshot"):
        return None
    await group.lead(behind)
    await group.write(10)
    await group.until_equal(*group.cluster.nodes)
    async with group.cut_off(behind, other):
        await group.write_unanswered(behind, 5)
        await group.elected(*group.others(behind, other))
        await group.write(5)
    last = await group.until_equal(*group.cluster.nodes)
    if not group.lines(other, "[TRUNCATE]"):
        return None
    group.system.kill(other)
    group.system.start(other)
    await asyncio.sleep(20.0)
    return await group.applied(other) < last or await group.replicas_differ()


async def keeps_contradicting_entries(group: Group) -> bool:
    """Finding 9: a leader is cut off with entries that no other node has, and then installs a snapshot of the next leader."""
    old = await group.leader()
    await group.until_applied(old, 2 * SNAPSHOT_ENTRIES - 10)
    await group.until_equal(*group.cluster.nodes)
    async with group.cut_off(old):
        await group.write_unanswered(old, 20)
        leader = group.system.node((await group.elected(*group.others(old))).node)
        await group.until_applied(leader, 2 * SNAPSHOT_ENTRIES + 2)
    await group.until_applied(leader, 2 * SNAPSHOT_ENTRIES + 30)
    await group.until_equal(*group.cluster.nodes)
    return await group.replicas_differ()


async def after_two_terms(group: Group, *, restarts: bool = False) -> Node:
    """A leader is cut off with entries that no other node has, and then follows a leader of two terms later; returns it.

    The next leader commits other entries in their places, and the third node leads when the cut ends.

    Args:
        group: The nodes.
        restarts: Whether the third node starts again before it leads.
    """
    old = await group.leader()
    await group.until_applied(old, SNAPSHOT_ENTRIES + 20)
    await group.until_equal(*group.cluster.nodes)
    async with group.cut_off(old):
        await group.write_unanswered(old, 10)
        second = group.system.node((await group.elected(*group.others(old))).node)
        await group.write(5)
        (third,) = group.others(old, second)
        await group.until_equal(second, third)
        if restarts:
            group.system.kill(third)
            group.system.start(third)
            await group.until_equal(second, third)
        await group.lead(third)
    return old


async def truncates_committed_entries(group: Group) -> bool:
    """Finding 14: a comparison makes a follower truncate entries that all nodes have applied."""
    old = await after_two_terms(group)
    assert await group.until(lambda: bool(group.truncations(old)))
    return min(group.truncations(old)) <= SNAPSHOT_ENTRIES + 20


async def ends_at_entry_0(group: Group) -> bool:
    """Finding 10: a follower truncates its log down to its snapshot, and says that the log ends at entry 0."""
    old = await after_two_terms(group)
    assert await group.until(lambda: SNAPSHOT_ENTRIES in group.truncations(old))
    return bool(group.lines(old, f"truncateIndex: {SNAPSHOT_ENTRIES}, after truncate, ledgerEndIndex: 0 "))


async def does_not_know_the_term(group: Group) -> bool:
    """Finding 11: a leader that has started again asks a follower to compare the end of its snapshot with the term -1."""
    old = await after_two_terms(group, restarts=True)
    assert await group.until(
        lambda: bool(group.lines(old, f"preLogIndex={SNAPSHOT_ENTRIES - 1}") or group.truncations(old))
    )
    return bool(group.lines(old, f"[HandleDoCompare] preLogIndex={SNAPSHOT_ENTRIES - 1}, preLogTerm=-1"))


async def forgets_its_term(group: Group) -> bool:
    """Finding 17: a node is killed when it renames the file with its term and vote."""
    await group.write(5)
    leader = await group.leader()
    node = group.others(leader)[0]
    state = group.system.process_state(node)
    assert state is not None
    group.shell(
        node,
        f"setsid strace -f -p {state[0]} -o /dev/null -e trace=rename -e inject=rename:error=EIO:signal=SIGKILL "
        f"> strace 2>&1 < /dev/null & until grep attached strace; do sleep {PAUSE_S}; done",
    )
    group.system.kill(leader)
    assert await group.until(lambda: group.system.process_state(node) is None)
    loaded = group.lines(node, "load persistent state ok")
    group.system.start(node)
    await group.elected(*group.others(leader))
    return group.lines(node, "load persistent state ok") == loaded


async def has_two_leaders_of_a_term(group: Group) -> bool:
    """Finding 18: the only voter of a leader loses its power, and with it the vote."""
    await group.write(5)
    first = await group.leader()
    group.system.kill(first)
    second = group.system.node((await group.elected(*group.others(first))).node)
    (voter,) = group.others(first, second)
    await group.write(1)
    term = (await group.status(second)).term
    async with group.cut_off(second):
        await group.lose_power(voter)
        group.system.start(first)
        return (await group.elected(first, voter)).term == term


async def votes_without_storing(group: Group) -> bool:
    """Finding 20: a node with a full disk votes twice in a term. In finding 16, the old leader leads its term again."""
    await group.write(5)
    return await group.votes_without_storing()


def tried(mend: str, form: Callable[[Group], Awaitable[bool | None]], options: Mapping[str, Any]) -> bool:
    """Returns what a form finds, as soon as its steps lead where they should."""
    for _ in range(TRIES):
        formed = Group(mend, **options).run(form)
        if formed is not None:
            return formed
    raise AssertionError(f"the steps did not lead where they should in {TRIES} tries")


@pytest.mark.parametrize(
    ("builds", "form", "options"),
    [
        pytest.param((but(6), "all"), is_not_sent_an_entry_again, {"nodes": 5, **HOLDING}, id="6"),
        pytest.param((but(7), "all"), overwrites_committed_entries, {"nodes": 5, **SNAPSHOTS}, id="7"),
        pytest.param(("", "8"), stays_out_while_its_answers_are_late, HOLDING, id="8"),
        pytest.param((but(9), "all"), keeps_contradicting_entries, SNAPSHOTS, id="9"),
        pytest.param((but(10, 14), but(14)), ends_at_entry_0, SNAPSHOTS, id="10"),
        pytest.param((but(11, 14), but(14)), does_not_know_the_term, SNAPSHOTS, id="11"),
        pytest.param(("", "12"), leads_without_writes, SNAPSHOTS, id="12"),
        pytest.param((but(13), "all"), resets_for_ten_seconds, {**SNAPSHOTS, "heartbeat_ms": 2_000}, id="13"),
        pytest.param((but(14), "all"), truncates_committed_entries, SNAPSHOTS, id="14"),
        pytest.param((but(15, 16), "all"), obeys_an_old_leader, {"nodes": 5, "heartbeat_ms": 1_000}, id="15"),
        pytest.param(("", "15,16"), obeys_a_dead_leader, {"heartbeat_ms": PATIENT_MS}, id="16"),
        pytest.param(("", "17"), forgets_its_term, {}, id="17"),
        pytest.param(("", "18"), has_two_leaders_of_a_term, {"faults": ["power-loss"]}, id="18"),
        pytest.param(("16", "16,20"), votes_without_storing, {"faults": ["disk-full"]}, id="20"),
    ],
)
def test_a_finding_is_there_without_its_mend_only(
    builds: tuple[str, str], form: Callable[[Group], Awaitable[bool | None]], options: Mapping[str, Any]
) -> None:
    """The form is there in the first library in one of some tries, and not in the mended one."""
    without, mended = builds
    assert any(tried(without, form, options) for _ in range(TRIES))
    assert not tried(mended, form, options)
