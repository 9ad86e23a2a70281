"""The mends of DLedger: the smallest form of each finding shows it in the released library, and not in the mended one."""

from __future__ import annotations

import asyncio
import errno
import itertools
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.kit.routing import Routing
from clusters.sim.cluster import SimCluster
from clusters.sim.jvm import idle
from clusters.systems.dledger import mends
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.simulated import SimDLedger
from clusters.systems.dledger.tests.simulated import ELECTED, DLedgerGroup
from harness.errors import ExitCode
from harness.op import Invocation, Ok
from harness.units import NS_PER_MS
from harness.verdict import Verdict
from harness.world import Disturbance, Failing
from tests.artifacts import built
from tests.recompiled import assert_compiles_alike
from tests.simulated_group import CUT
from tests.trials import trial

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from harness.node import Node

pytestmark = pytest.mark.integration

SNAPSHOTS = (
    *(
        "--cluster",
        "sim",
        "--system",
        "dledger",
        "--nodes",
        "3",
        "--nemesis",
        "leadership-transfer",
        "--fault-on",
        "1-2",
    ),
    *("--fault-off", "3-4", "--fault-quiet", "1-2", "--snapshot-threshold", "20", "--rate", "10", "--time-limit", "12"),
)
TRUNCATION = (
    *("--cluster", "sim", "--system", "dledger", "--nodes", "3", "--nemesis", "leader-kill,partition-leader"),
    *("--fault-on", "2-5", "--fault-off", "0.5-2", "--fault-quiet", "1-3", "--rate", "20", "--time-limit", "30"),
    *("--snapshot-threshold", "50"),
)
MANY = (
    *("--cluster", "sim", "--system", "dledger", "--nodes", "3"),
    *(
        "--nemesis",
        "kill,pause,partition-random-halves,leadership-transfer",
        "--fault-on",
        "2-5",
        "--fault-off",
        "0.5-2",
    ),
    *("--fault-quiet", "1-3", "--rate", "20", "--time-limit", "30", "--snapshot-threshold", "20"),
)
LATE_REQUESTS = (
    *("--cluster", "sim", "--system", "dledger", "--page-faults", "0.3", "--nemesis"),
    *("packet-delay,partition-one-way:majority,partition-random-node:leader", "--fault-on", "0.5-3", "--fault-off"),
    *("0.3-2", "--fault-quiet", "1-3", "--fault-wait", "0.5", "--fault-options"),
    *("packet-delay.delay_ms=100,packet-delay.jitter_ms=50", "--rate", "2", "--time-limit", "12", "--hot-share", "1"),
)
UP_TO_17 = ",".join(str(number) for number in mends.MENDS if number <= 17)
UP_TO_17_BUT_6 = ",".join(str(number) for number in mends.MENDS if number <= 17 and number != 6)
BENEATH = 7645491346869235063  # a seed whose run has findings that others hide
WAITING = 1679315017602471377  # a seed in whose run a follower waits before it uses a snapshot
LATE = 2  # the key of a fault beside that of a cut
ENDED = f"it called Runtime.halt({mends.DISK_FAILED})"


class Group(DLedgerGroup[SimDLedger]):
    """Simulated nodes with a client that follows the leader."""

    def __init__(
        self, mend: str, seed: int, *, nodes: int = 3, snapshot_threshold: int = 0, loses_power: bool = False
    ) -> None:
        cluster = SimCluster(tuple(f"n{number}" for number in range(1, nodes + 1)), seed)
        if loses_power:
            cluster.world.prepare_loss()
        options = DLedgerOptions(routing=Routing.LEADER, mend=mend, snapshot_threshold=snapshot_threshold)
        super().__init__(cluster, built(SimDLedger(cluster, options, "register")))
        self._values = itertools.count()

    async def write(self, count: int) -> None:
        """Writes so many values, each until it is acknowledged."""
        for value in itertools.islice(self._values, count):
            await self._done(Invocation(f="write", value=value, key="key"))

    async def read(self, key: str = "key") -> object:
        """Returns the value of a key."""
        return (await self._done(Invocation(f="read", key=key))).value

    async def _done(self, invocation: Invocation) -> Ok:
        for _ in range(200):
            outcome = await self.client.invoke(invocation)
            if isinstance(outcome, Ok):
                return outcome
        raise AssertionError(f"{invocation} was never acknowledged")

    async def leader(self) -> Node:
        """Returns the node that serves."""
        serving = await self.system.serving(await self.system.statuses_of(self.cluster.nodes))
        assert serving is not None
        return self.system.node(serving.node)


@pytest.fixture(autouse=True)
def _other_jar() -> Iterator[None]:
    """Ends the JVMs of a test: the next one has another jar."""
    yield
    idle.close_all()


async def drops_logs(group: Group) -> bool:
    """Finding 1: the leader dies, and a follower drops its log on the order of the next one."""
    await group.write(20)
    group.system.kill(await group.leader())
    await group.write(1)
    return group.lines("[TRUNCATE] truncateIndex: 0,") > 0


async def stays_behind(group: Group) -> bool:
    """Finding 4: a follower is cut off during more than a thousand writes, and then gets only some of them."""
    await group.write(10)
    away = group.others(await group.leader())[0]
    group.cut_off(away)
    await group.write(1_100)
    await asyncio.sleep(5.0)
    group.cluster.world.mend(CUT)
    await asyncio.sleep(30.0)
    status = (await group.system.statuses(away, 1.0))[0]
    assert status.applied_index is not None
    return status.applied_index < 1_100


async def stays_out(group: Group) -> bool:
    """Finding 8: a leader is elected in its old term again, and the answers of a node with a higher term are late."""
    await group.write(5)
    leader = await group.leader()
    before = (await group.system.statuses(leader, 1.0))[0]
    group.system.kill(leader)
    name, _ = await group.cluster.world.log_line({node.name for node in group.others(leader)}, r"\[INCREASE_TERM\]")
    out = group.system.node(name)
    voter = group.others(leader, out)[0]
    group.system.pause(voter)
    group.cut_off(out)
    group.system.start(leader)
    await asyncio.sleep(2.0)
    group.system.resume(voter)
    await group.write(20)
    again = (await group.system.statuses(leader, 1.0))[0]
    assert (again.role, again.term) == ("leader", before.term)
    group.cluster.world.disturb(LATE, name, Disturbance(delay_ns=20 * NS_PER_MS), arriving=False)
    group.cluster.world.mend(CUT)
    await asyncio.sleep(60.0)
    return (await group.system.statuses(out, 1.0))[0].role == "candidate"


async def refuses_each_write(group: Group) -> bool:
    """Finding 19: on a full disk, an entry is written without being counted, and the place of the next one is wrong."""
    await group.write(40)
    leader = await group.leader()
    group.world.fill_disk(leader.name, full=True)
    for value in range(100, 109):
        await group.client.invoke(Invocation(f="write", value=value, key="key"))
    group.world.fill_disk(leader.name, full=False)
    return not isinstance(await group.client.invoke(Invocation(f="write", value=0, key="key")), Ok)


async def votes_without_storing(group: Group) -> bool:
    """Finding 20: a node with a full disk votes twice in a term."""
    await group.write(5)
    return await group.votes_without_storing()


@pytest.mark.parametrize(
    ("number", "form", "seed"),
    [
        pytest.param("1", drops_logs, 1, id="1"),
        pytest.param("4", stays_behind, 1, id="4", marks=pytest.mark.night),
        pytest.param("8", stays_out, 14, id="8", marks=pytest.mark.night),
        pytest.param("19", refuses_each_write, 2, id="19", marks=pytest.mark.night),
        pytest.param("20", votes_without_storing, 1, id="20"),
    ],
)
def test_a_mend_removes_the_smallest_form(number: str, form: Callable[[Group], Awaitable[bool]], seed: int) -> None:
    """The released library has the finding, and the mended one lacks it."""
    assert Group("", seed).run(form)
    idle.close_all()
    assert not Group(number, seed).run(form)


async def elects_an_old_log(group: Group) -> bool:
    """Finding 12: a node that lacks 44 acknowledged writes leads with the vote of one that has them all in its snapshot."""
    await group.write(5)
    leader = await group.leader()
    old, voter = group.others(leader)
    group.cut_off(old)
    await group.write(44)
    await asyncio.sleep(2.0)
    assert group.lines("saved successfully") == 2
    group.system.kill(leader)
    group.system.kill(voter)
    group.cluster.world.mend(CUT)
    group.system.start(voter)
    await asyncio.sleep(15.0)
    return (await group.system.statuses(old, 1.0))[0].role == "leader"


async def forgets_its_term(group: Group) -> bool:
    """Finding 17: a candidate is killed while it stores its vote."""
    await group.write(5)
    leader = await group.leader()
    group.system.kill(leader)
    name, _ = await group.cluster.world.log_line({node.name for node in group.others(leader)}, r"\[INCREASE_TERM\]")
    await asyncio.sleep(0.02)
    node = group.system.node(name)
    group.system.kill(node)
    loaded = group.lines("load persistent state ok")
    group.system.start(node)
    await asyncio.sleep(6.0)
    return group.lines("load persistent state ok") == loaded


@pytest.mark.night
def test_a_node_that_is_killed_keeps_its_term() -> None:
    """The released library has finding 17, and the mended one lacks it."""
    assert Group("", 7).run(forgets_its_term)
    idle.close_all()
    assert not Group("17", 7).run(forgets_its_term)


async def has_two_leaders_of_a_term(group: Group) -> bool:
    """Finding 18: the only voter of a leader loses its power, and with it the vote."""
    await group.write(5)
    first = await group.leader()
    group.system.kill(first)
    name, _ = await group.cluster.world.log_line({node.name for node in group.others(first)}, ELECTED)
    second = group.system.node(name)
    (voter,) = group.others(first, second)
    await group.write(1)
    term = (await group.system.statuses(voter, 1.0))[0].term
    group.cut_off(second)
    group.system.kill(voter)
    group.cluster.world.lose_power(voter.name)
    group.system.start(voter)
    group.system.start(first)
    await asyncio.sleep(15.0)
    return group.lines(f"{ELECTED} in term {term}") > 1


async def obeys_an_old_leader(group: Group) -> bool:
    """Finding 15: a leader is cut off while its request to truncate is on its way, and another leader commits more entries."""
    await group.write(20)
    first = await group.leader()
    group.system.kill(first)
    others = {node.name for node in group.others(first)}
    name, _ = await group.cluster.world.log_line(others, ELECTED)
    old = group.system.node(name)
    group.cluster.world.disturb(LATE, old.name, Disturbance(delay_ns=30 * NS_PER_MS), arriving=False)
    await asyncio.sleep(0.672)
    group.cut_off(old)
    group.system.start(first)
    await group.write(30)
    statuses = [(await group.system.statuses(node, 1.0))[0] for node in group.others(old)]
    committed = max(status.committed_index or 0 for status in statuses)
    group.cluster.world.mend(CUT)
    group.cluster.world.mend(LATE)
    await asyncio.sleep(20.0)
    assert committed > 50
    machines = group.cluster.world.machines
    return any(
        "[TRUNCATE] truncateIndex: 21," in line for node in group.others(old) for line in machines[node.name].lines
    )


@pytest.mark.night
def test_a_loss_of_power_makes_no_second_leader_of_a_term() -> None:
    """The released library has finding 18, and the mended one lacks it."""
    assert Group("", 1, loses_power=True).run(has_two_leaders_of_a_term)
    idle.close_all()
    assert not Group("18", 1, loses_power=True).run(has_two_leaders_of_a_term)


async def loses_what_a_failed_sync_took(group: Group) -> bool:
    """Finding 22: one sync of each node fails while many writes are not synced; 11 s later, all nodes lose their power."""
    world, system = group.cluster.world, group.system
    leader = await group.leader()
    failing = Failing(call="msync", pattern="data/*", nth=1, times=1, error=errno.EIO)
    clients = [system.client(number, leader) for number in range(300)]
    writes = [
        asyncio.ensure_future(client.invoke(Invocation(f="write", value=number, key=f"key{number}")))
        for number, client in enumerate(clients)
    ]
    await asyncio.sleep(0.003)
    for node in group.cluster.nodes:
        world.fail_calls(LATE, node.name, None, failing)
    acknowledged = [number for number, outcome in enumerate(await asyncio.gather(*writes)) if isinstance(outcome, Ok)]
    assert acknowledged
    await asyncio.sleep(1.0)
    assert {failed.node for failed in world.failed_calls(LATE)} == set(world.machines)
    world.mend(LATE)
    for node in group.cluster.nodes:
        if None in system.process_states(node).values():
            system.start(node)
    await asyncio.sleep(10.0)
    for node in group.cluster.nodes:
        system.kill(node)
        world.lose_power(node.name)
        system.start(node)
    await system.until_ready(group.cluster.nodes, 30.0)
    for client in clients:
        await client.close()
    return [await group.read(f"key{number}") for number in acknowledged] != acknowledged


@pytest.mark.parametrize("seed", [2, 6])
def test_a_failed_sync_loses_nothing_later(seed: int) -> None:
    """The released library has finding 22. With the mend, each node ends at the failed sync, and has all writes later."""
    group = Group("18", seed, loses_power=True)
    assert group.run(loses_what_a_failed_sync_took)
    assert not group.lines(ENDED)
    idle.close_all()
    group = Group("18,22", seed, loses_power=True)
    assert not group.run(loses_what_a_failed_sync_took)
    assert group.lines(ENDED) == len(group.cluster.nodes)


async def obeys_a_dead_leader(group: Group) -> bool:
    """Finding 16: a leader starts twice and leads the same term. A request of its dead process takes acknowledged writes."""
    await group.write(20)
    leader = await group.leader()
    world, others = group.cluster.world, {node.name for node in group.others(leader)}
    for late_ms in (400, 0):
        group.system.kill(leader)
        world.mend(LATE)
        group.system.start(leader)
        await world.log_line({leader.name}, ELECTED)
        if late_ms:
            await asyncio.sleep(0.004)
            world.disturb(LATE, leader.name, Disturbance(delay_ns=late_ms * NS_PER_MS), arriving=False)
            await asyncio.sleep(0.01)
    await group.write(10)
    await asyncio.sleep(0.3)
    group.system.kill(leader)
    await world.log_line(others, ELECTED)
    await asyncio.sleep(5.0)
    group.system.start(leader)
    await asyncio.sleep(10.0)
    return await group.read() != 29


def test_no_node_obeys_a_dead_process_of_its_leader() -> None:
    """The released library loses acknowledged writes by finding 16, and with the mends of 15 and 16, none is lost."""
    assert Group("", 1).run(obeys_a_dead_leader)
    idle.close_all()
    assert not Group("15,16", 1).run(obeys_a_dead_leader)


@pytest.mark.night
def test_no_node_truncates_for_an_old_leader() -> None:
    """Without the mend of finding 15, a follower drops committed entries, and with it, none does."""
    assert Group("1,2,4,7,8,9,10,11,12,13,14", 3, nodes=5).run(obeys_an_old_leader)
    idle.close_all()
    assert not Group("all", 3, nodes=5).run(obeys_an_old_leader)


@pytest.mark.night
def test_who_has_its_log_in_a_snapshot_votes_by_it() -> None:
    """The released library has finding 12, and the mended one lacks it."""
    assert Group("", 1, snapshot_threshold=50).run(elects_an_old_log)
    idle.close_all()
    assert not Group("12", 1, snapshot_threshold=50).run(elects_an_old_log)


@pytest.mark.night
@pytest.mark.parametrize(
    ("without", "mended", "words", "seed", "part"),
    [
        pytest.param("", "2", SNAPSHOTS, 3684657614324932644, "recovered", id="2"),
        pytest.param(UP_TO_17_BUT_6, UP_TO_17, LATE_REQUESTS, 1250782572910318910, "recovered", id="6"),
        pytest.param("", "7,9", TRUNCATION, 3494894945416971776, "replicas-equal", id="7"),
        pytest.param("7", "7,9", TRUNCATION, 3494894945416971776, "replicas-equal", id="9"),
        pytest.param("1,2,4,7,8,10,11", "all", TRUNCATION, BENEATH, "linearizable", id="9 with the same term"),
        pytest.param("1,2,4,7,8,9,10", "all", TRUNCATION, BENEATH, "recovered", id="11"),
        pytest.param("1,2,4,7,8,9,10,11", "all", TRUNCATION, 8498690261636020114, "linearizable", id="12"),
        pytest.param("1,2,4,7,8,9,10,11,12,13", "all", MANY, 5234402601270938612, "raft-invariants", id="14"),
    ],
)
def test_a_mend_removes_the_violation(without: str, mended: str, words: Sequence[str], seed: int, part: str) -> None:
    """A part of the verdict is invalid without the mend, and valid with it, in the run of the same seed."""

    def verdict(mend: str) -> Verdict:
        idle.close_all()
        parts = trial(*words, *(("--mend", mend) if mend else ()), seed=seed).outcome.parts
        return next(candidate.verdict for candidate in parts if candidate.name == part)

    assert verdict(without) is Verdict.INVALID
    assert verdict(mended) is Verdict.VALID


def logs_of(mend: str, seed: int, store: Path) -> list[str]:
    """Returns the logs of all nodes of a valid run with mends."""
    idle.close_all()
    words = [*TRUNCATION, "--seed", str(seed), "--mend", mend, "--store", str(store)]
    assert cli.labrys.main(["test", *words], standalone_mode=False) == ExitCode.VALID
    return [path.read_text(encoding="utf-8") for path in store.glob("*/latest/nodes/*/*.log")]


@pytest.mark.night
def test_a_log_ends_with_its_snapshot(tmp_path: Path) -> None:
    """Finding 10: a follower whose entries after a snapshot are all cut takes a wrong end of its log."""

    def has_wrong_end(mend: str) -> bool:
        logs = logs_of(mend, BENEATH, tmp_path / mend)
        assert any("truncateIndex: 65, after truncate" in log for log in logs)
        return any("truncateIndex: 65, after truncate, ledgerEndIndex: 0 ledgerEndTerm: 0" in log for log in logs)

    assert has_wrong_end("1,2,4,7,8,9,11")
    assert not has_wrong_end("1,2,4,7,8,9,10,11")


@pytest.mark.night
def test_a_snapshot_after_a_cut_does_not_wait(tmp_path: Path) -> None:
    """Finding 13: a follower that has cut its log waits 10 s for a reference before it can use a later snapshot."""

    def waits(mend: str) -> bool:
        logs = logs_of(mend, WAITING, tmp_path / mend)
        assert any("loaded the snapshot up to index" in log for log in logs)
        return any("unmap file[REF:-" in log for log in logs)  # by force

    assert waits("1,2,4,7,8,9,10,11,12")
    assert not waits("all")


def test_a_mended_library_says_so() -> None:
    """The provenance names each mend, and the jar differs from the released one."""
    released = SimDLedger.build(DLedgerOptions(), print)
    mended = SimDLedger.build(DLedgerOptions(mend="1,4"), print)
    assert mended.provenance.digest != released.provenance.digest
    assert mended.provenance.mended == (
        f"This is dledger-node {mended.provenance.version} with changes, not the released one: finding 1, finding 4."
    )
    assert len(mended.provenance.patches) == len(mends.DLEDGER.chosen("1,4"))


@pytest.mark.night
def test_another_compiler_makes_the_released_code(tmp_path: Path) -> None:
    """Without a patch, the compiler of the mends makes the released instructions of all classes that have one."""
    assert_compiles_alike(mends.DLEDGER, SimDLedger.build(DLedgerOptions(), print), tmp_path)
