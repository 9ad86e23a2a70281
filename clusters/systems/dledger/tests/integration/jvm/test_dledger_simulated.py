"""The released jar of DLedger in virtual time: the same seed gives the same run, in each JVM, with faults."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.kit.routing import Routing
from clusters.sim import cores
from clusters.sim.cluster import SimCluster
from clusters.sim.jvm import idle, javas, pipe, processes
from clusters.sim.jvm.system import FEW_RUNS, JAR, simulator
from clusters.sim.threads import Threads
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.simulated import SimDLedger
from harness.damage import Damaging, How
from harness.errors import ExitCode, InfrastructureError
from harness.op import Invocation, Ok
from harness.verdict import Verdict
from harness.world import Failing
from tests.artifacts import built
from tests.catches.hunts import Hunt
from tests.trials import trial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.damage import Changed
    from harness.node_states import NodeState
    from harness.op import Outcome
    from harness.world import Lost

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SEED = 7
RECENT = [java for java in javas.installed() if java.version >= javas.CONTINUATIONS]
FAULTS = (
    "--nemesis",
    "kill,partition-random-halves,packet-loss,power-loss",
    "--fault-on",
    "1-1.5",
    "--fault-off",
    "0.3-0.5",
)


class Run:
    """One run: writes, a kill of the leader, a cut, a pause, a transfer of the leadership, and writes again.

    Attributes:
        outcomes: The outcomes of the writes.
        logs: The logs of the nodes, with the times of all lines.
        trace: The digest of all decisions of the scheduler, and their number.
        jvm: The JVM that carried it out.
    """

    def __init__(self, seed: int, threads: Threads | None = None) -> None:
        """Carries out the run of a seed."""
        self._cluster = SimCluster(("n1", "n2", "n3"), seed, threads=threads)
        self._system = built(SimDLedger(self._cluster, DLedgerOptions(routing=Routing.LEADER), "register"))
        try:
            self.outcomes: list[Outcome] = self._cluster.world.run(self._live())
            self.trace = self._system.java().trace()
            self.jvm = self._system.java().jvm
        finally:
            self._cluster.close()
        self.logs = {name: machine.lines for name, machine in self._cluster.world.machines.items()}

    async def _live(self) -> list[Outcome]:
        world, system, nodes = self._cluster.world, self._system, self._cluster.nodes
        for node in nodes:
            system.start(node)
        await system.until_ready(nodes, 30.0)
        client = system.client(0, nodes[0])
        values = itertools.count()

        async def write() -> Outcome:
            for _ in range(100):
                outcome = await client.invoke(Invocation(f="write", value=next(values), key="key"))
                if isinstance(outcome, Ok):
                    break
            return outcome

        outcomes = [await write()]
        leader = next(
            node for node in nodes if any("has been elected" in line for line in world.machines[node.name].lines)
        )
        system.kill(leader)
        outcomes.append(await write())
        system.start(leader)
        world.cut(1, {leader.name: frozenset(node.name for node in nodes if node != leader)})
        await asyncio.sleep(2.0)
        world.mend(1)
        other = next(node for node in nodes if node != leader)
        system.pause(other)
        world.set_clock(leader.name, ahead_ns=10**10)
        await asyncio.sleep(1.0)
        system.resume(other)
        await system.lead(other, 10.0)
        outcomes.append(await write())
        await client.close()
        return outcomes


@pytest.fixture(scope="module")
def run() -> Run:
    """A run in a new JVM of the PATH."""
    idle.close_all()
    return Run(SEED)


def test_the_library_serves(run: Run) -> None:
    """A write succeeds at the start, after the death of the leader, and after the other faults."""
    assert [type(outcome) for outcome in run.outcomes] == [Ok, Ok, Ok]
    terms = {
        line.partition("term=")[2].split(",")[0] for lines in run.logs.values() for line in lines if "term=" in line
    }
    assert len(terms) > 1, "another leader was elected"


def test_a_seed_gives_the_same_run(run: Run) -> None:
    """A second JVM takes the same decisions at the same times, and another seed gives another run."""
    idle.close_all()
    again = Run(SEED)
    assert again.logs == run.logs
    assert again.trace == run.trace
    assert again.outcomes == run.outcomes
    assert Run(SEED + 1).trace != run.trace


@pytest.mark.parametrize("threads", [Threads(preempt=0.2), Threads(page_faults=0.5), Threads(stalls=3.0)])
def test_threads_stop_elsewhere(run: Run, threads: Threads) -> None:
    """Other probabilities of stops give another run, and the same one again."""
    other, again = Run(SEED, threads), Run(SEED, threads)
    assert other.trace != run.trace
    assert again.trace == other.trace
    assert again.logs == other.logs


def test_a_jvm_has_many_runs(run: Run) -> None:
    """A run is the same in a JVM that has had others: the static fields of the classes begin anew."""
    other = Run(SEED + 2)
    again = Run(SEED)
    assert again.logs == run.logs
    assert again.trace == run.trace
    assert again.outcomes == run.outcomes
    assert again.jvm is other.jvm


def test_a_jvm_with_both_compilers_gives_the_same_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM for many runs takes the decisions of the one for a few."""
    monkeypatch.setattr(idle, "MANY_RUNS", 1)
    again = Run(SEED)
    assert set(run.jvm.command) - set(again.jvm.command) == {FEW_RUNS}
    assert again.logs == run.logs
    assert again.trace == run.trace
    assert again.outcomes == run.outcomes


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="the machine has one core, which all share")
def test_the_threads_of_a_run_share_a_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take turns with this process. The compilers of the JVM work beside them."""
    monkeypatch.setattr(cores, "cache", lambda: tmp_path)  # other runs of this machine may have all cores
    before = os.sched_getaffinity(0)
    of_threads: list[tuple[str, set[int]]] = []

    class Looking(Run):
        async def _live(self) -> list[Outcome]:
            outcomes = await super()._live()
            self.mine = os.sched_getaffinity(0)
            of_threads.extend(_cores_of_threads(self._system.java().jvm.pid))
            return outcomes

    again = Looking(SEED)
    assert len(again.mine) == 1
    assert again.mine in [used for _, used in of_threads]
    assert [used for name, used in of_threads if name.startswith("C1 Compiler")] == [before]
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not RECENT, reason=f"needs Java {javas.CONTINUATIONS} or later beside Java {javas.COPIED}")
@pytest.mark.parametrize("version", sorted({javas.COPIED, *(java.version for java in RECENT)}))
@pytest.mark.parametrize("stalls", [0.0, pytest.param(3.0, marks=pytest.mark.night)])
def test_threads_and_continuations_give_the_same_run(
    run: Run, stalls: float, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java 17, and a later Java with threads, give the run of the later Java with continuations."""
    threads = Threads(stalls=stalls)
    run = Run(SEED, threads) if stalls else run
    assert "-Dsimjvm.continuations=true" in run.jvm.command
    usable = [java for java in javas.installed() if java.version in {javas.COPIED, version}]
    java, copied = next(candidate for candidate in usable if candidate.version == version), javas.chosen(usable)[1]
    monkeypatch.setattr(javas, "chosen", lambda _: (java, copied))
    monkeypatch.setattr(javas, "CONTINUATIONS", 1000)
    again = Run(SEED, threads)
    assert again.jvm.command[0] == java.program
    assert "-Dsimjvm.continuations=true" not in again.jvm.command
    assert again.trace == run.trace
    assert _without_frames(again.logs) == _without_frames(run.logs)
    assert again.outcomes == run.outcomes


def test_labrys_test_and_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`labrys test` proves its faults, and `labrys replay` repeats the history, byte for byte."""
    words = [
        "--cluster",
        "sim",
        "--system",
        "dledger",
        "--nodes",
        "3",
        "--time-limit",
        "6",
        "--rate",
        "5",
        "--seed",
        str(SEED),
    ]
    quiet = ["--fault-quiet", "0.5-1", "--store", str(tmp_path)]
    assert cli.invoke(["test", *words, *FAULTS, *quiet]) != ExitCode.INTERNAL, capsys.readouterr().err
    (first,) = tmp_path.glob("*/2*")
    results = (first / "results.json").read_text()
    assert "7 of 7 planned faults have a proven effect" in results
    assert "files lost unsynced data" in results
    assert cli.invoke(["replay", str(first), "--store", str(tmp_path)]) != ExitCode.INTERNAL, capsys.readouterr().err
    (second,) = [path for path in tmp_path.glob("*/2*") if path != first]
    assert (second / "history.jsonl").read_bytes() == (first / "history.jsonl").read_bytes()


def test_the_log_loses_what_a_new_leader_truncates() -> None:
    """Finding 1 in the library's own log: a hunt has found this run, and it repeats by its seed."""
    words = (
        "--cluster", "sim", "--system", "dledger-log", "--workload", "set", "--nodes", "3", "--nemesis",
        "leader-kill,leadership-transfer", "--fault-on", "0.5-3",
        "--fault-off", "0.3-2", "--fault-quiet", "0.5-2", "--rate", "20", "--time-limit", "15",
        "--heartbeat-ms", "200",
    )  # fmt: skip
    result = trial(*words, seed=4513318043671517704)
    assert result.outcome.verdict is Verdict.INVALID
    assert "Element 525 is lost" in str(result.outcome.reason)


async def _serving(cluster: SimCluster, system: SimDLedger) -> None:
    """Starts the nodes, and waits until they serve."""
    for node in cluster.nodes:
        system.start(node)
    await system.until_ready(cluster.nodes, 30.0)


def test_messages_without_end_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says so. The JVM is ready for the next run."""
    with monkeypatch.context() as patch:
        patch.setattr(processes, "MOST_EVENTS", 10)
        with pytest.raises(InfrastructureError, match=r"cause more than 10 events in second 0 of virtual time"):
            Run(SEED)
    assert isinstance(Run(SEED).outcomes[0], Ok)


@pytest.mark.parametrize("fails", [False, True])
def test_a_loss_of_power_takes_what_is_not_synced(*, fails: bool) -> None:
    """The log of the library is synced, and its term is not. So a write outlives a loss of power on all nodes.

    If its sync fails, the library goes on, and the write is lost; see finding 22.
    """
    cluster = SimCluster(("n1", "n2", "n3"), SEED)
    world = cluster.world
    system = built(SimDLedger(cluster, DLedgerOptions(routing=Routing.LEADER), "register"))
    failing = Failing(call="msync", pattern="data/*", nth=1, times=9, error=errno.EIO)

    async def live() -> tuple[list[Lost], Outcome]:
        world.prepare_loss()
        await _serving(cluster, system)
        client = system.client(0, cluster.nodes[0])
        for node in cluster.nodes if fails else ():
            world.fail_calls(1, node.name, None, failing)
        assert isinstance(await client.invoke(Invocation(f="write", value=5, key="key")), Ok)
        await asyncio.sleep(1.0)
        failed = world.failed_calls(1)
        assert {(call.call, call.file.rpartition("/")[2]) for call in failed} == (
            {("msync", "0" * 20)} if fails else set()
        )
        world.mend(1)
        losses = []
        for node in cluster.nodes:
            system.kill(node)
            losses.append(world.lose_power(node.name))
        await _serving(cluster, system)
        for _ in range(100):  # until the client has found the leader
            outcome = await client.invoke(Invocation(f="read", key="key"))
            if isinstance(outcome, Ok):
                break
        await client.close()
        return losses, outcome

    try:
        losses, outcome = world.run(live())
    finally:
        cluster.close()
    assert all(lost.files >= len(("data", "index", "term")) for lost in losses), losses
    assert any(lost.changed and lost.bytes for lost in losses), losses
    assert isinstance(outcome, Ok)
    assert outcome.value == (None if fails else 5)


@pytest.mark.parametrize(("kinds", "seed"), [("disk-full,wipe,file-bitflip", 3), ("file-truncate", 5)])
def test_faults_of_files_have_proofs_and_repeat(kinds: str, seed: int, tmp_path: Path) -> None:
    """Each fault has an effect on the files of a node, and `labrys replay` repeats the run."""
    words = ["--cluster", "sim", "--system", "dledger", "--nodes", "3", "--nemesis", kinds, "--seed", str(seed)]
    words += [
        "--time-limit",
        "9",
        "--rate",
        "8",
        "--fault-on",
        "0.5-1",
        "--fault-off",
        "0.3-0.6",
        "--fault-quiet",
        "0.5-1",
    ]
    cli.invoke(["test", *words, "--store", str(tmp_path)])
    (first,) = tmp_path.glob("*/2*")
    told = (first / "results.json").read_text()
    proofs = {
        "disk-full": "refuses a small file",
        "wipe": "4 of its 4 files are gone",
        "file-bitflip": "8 bytes of /data/dledger-n1/currterm.bak differ by a bit",
        "file-truncate": "/data/dledger-n3/currterm was cut from 25 to 0 bytes",
    }
    assert [kind for kind in kinds.split(",") if proofs[kind] not in told] == []
    assert "have a proven effect" in told
    cli.invoke(["replay", str(first), "--store", str(tmp_path)])
    (second,) = [path for path in tmp_path.glob("*/2*") if path != first]
    assert (second / "history.jsonl").read_bytes() == (first / "history.jsonl").read_bytes()


@pytest.mark.parametrize(("seed", "recovers"), [(4, True), pytest.param(3, False, marks=pytest.mark.night)])
def test_full_disks_of_all_nodes(seed: int, recovers: bool, tmp_path: Path) -> None:
    """The JVM skips writes into pages without space, and throws an error later, as on real nodes; see finding 19."""
    words = [
        "--cluster",
        "sim",
        "--system",
        "dledger",
        "--nodes",
        "3",
        "--nemesis",
        "disk-full:all",
        "--seed",
        str(seed),
    ]
    words += ["--time-limit", "30", "--rate", "20", "--fault-on", "8-9", "--fault-off", "1-2", "--fault-quiet", "1-3"]
    cli.invoke(["test", *words, "--store", str(tmp_path)])
    (folder,) = tmp_path.glob("*/2*")
    logs = "".join(path.read_text() for path in folder.glob("nodes/*/node.log"))
    assert "java.lang.InternalError: a fault occurred in a recent unsafe memory access operation" in logs
    results = json.loads((folder / "results.json").read_text())
    invalid = [name for name, part in results["parts"].items() if part["valid"] is False]
    assert invalid == ([] if recovers else ["recovered"])


def test_a_full_disk_has_no_free_space(tmp_path: Path) -> None:
    """Without a state machine, DLedger looks at the free space, and refuses requests as on real nodes."""
    words = ["--cluster", "sim", "--system", "dledger-log", "--workload", "set", "--nodes", "3"]
    words += ["--nemesis", "disk-full:all", "--fault-on", "3", "--fault-quiet", "1"]
    words += ["--seed", "1", "--time-limit", "8", "--rate", "20"]
    cli.invoke(["test", *words, "--store", str(tmp_path)])
    (folder,) = tmp_path.glob("*/2*")
    assert (folder / "history.jsonl").read_text().count('"error":"disk-full"') > 10


def test_a_hunt_leaves_the_disks_alone() -> None:
    """By default, a hunt takes the power, and neither fills disks nor damages files. `--among` can name these kinds."""
    words = ("--cluster", "sim", "--nodes", "3")
    kinds = Hunt(words, seed=SEED, system="dledger").space.kinds
    assert "power-loss" in kinds
    assert not {"disk-full", "file-bitflip", "file-truncate"}.intersection(kinds)
    named = Hunt(words, seed=SEED, among="disk-full,file-bitflip", system="dledger").space.kinds
    assert set(named) == {"disk-full", "file-bitflip"}


def test_damage_outlives_a_loss_of_power() -> None:
    """A fault changes what is on the disk, so a later loss of power does not take it back."""
    cluster = SimCluster(("n1", "n2", "n3"), SEED)
    world = cluster.world
    system = built(SimDLedger(cluster, DLedgerOptions(routing=Routing.LEADER), "register"))

    async def live() -> tuple[Changed, Changed]:
        world.prepare_loss()
        await _serving(cluster, system)
        await asyncio.sleep(1.0)
        system.kill(cluster.nodes[0])
        term = world.damage_file("n1", Damaging(how=How.CUT, pattern="currterm", pick=0.0, amount=5))
        index = world.damage_file("n1", Damaging(how=How.FLIP, pattern="index/*", pick=0.0, amount=4, seed=SEED))
        folder = system.java().directory / "n1" / "data"
        path = folder / Path(index.file).relative_to("/data")
        damaged = path.read_bytes()
        world.lose_power("n1")
        assert (folder / Path(term.file).relative_to("/data")).stat().st_size == term.after_bytes
        assert [path.read_bytes()[offset] for offset in index.places] == [damaged[offset] for offset in index.places]
        return term, index

    try:
        term, index = world.run(live())
    finally:
        cluster.close()
    assert term.after_bytes == term.before_bytes - 5
    assert len(index.places) == 4


def test_the_guard_ends_a_run(tmp_path: Path) -> None:
    """A program whose class cannot run in the simulator ends the JVM with an error that names it."""
    system = built(SimDLedger(SimCluster(("n1",), SEED), DLedgerOptions(), "register"))
    jvm = pipe.Jvm(system.commands()[0], tmp_path)
    try:
        jvm.begin(SEED, threads=Threads(preempt=0.0), stretch_ns=0)
        jvm.start(0, "n1", seed=SEED, main="io.netty.channel.nio.NioEventLoop", arguments=())
        with pytest.raises(
            InfrastructureError,
            match=r"io\.netty\.channel\.nio\.NioEventLoop has no public static method begin or main",
        ):
            jvm.advance(10**9)
    finally:
        jvm.close()


def test_the_state_of_a_node_is_read_without_a_trace(run: Run) -> None:
    """A run whose states are read has the same schedule. The leader has the last write in its log and its map."""
    seen: list[NodeState] = []

    class Reading(Run):
        async def _live(self) -> list[Outcome]:
            async def read() -> None:
                while True:
                    await asyncio.sleep(0.25)
                    seen.extend(self._system.node_state(node, "key") for node in self._cluster.nodes)

            reader = asyncio.create_task(read())
            try:
                return await super()._live()
            finally:
                reader.cancel()

    again = Reading(SEED)
    assert again.trace == run.trace
    assert again.outcomes == run.outcomes
    assert {state.process for state in seen} == {"running", "paused", "dead"}
    assert {state.role for state in seen} == {None, "leader", "follower", "candidate"}
    last = [state for state in seen if state.role == "leader"][-1]
    assert (last.term or 0) > 1
    assert 0 < (last.committed or 0) <= (last.last or 0)
    assert last.value is not None


def test_the_end_of_the_jvm_is_an_error(tmp_path: Path) -> None:
    """The error has what the JVM printed."""
    jvm = pipe.Jvm(["java", "-jar", str(simulator(print).path / JAR)], tmp_path)
    try:
        jvm.begin(SEED, threads=Threads(preempt=0.0), stretch_ns=0)
        with pytest.raises(InfrastructureError, match=r"ended with status 64; (.|\n)*expected the jars of the program"):
            jvm.advance(10**9)
    finally:
        jvm.close()


def test_the_calls_without_a_hook() -> None:
    """The scan finds what the library and its node could call, and what would end a run. No run has met these calls."""
    calls = _scan("io.openmessaging.", "io.labrys.")
    assert calls == [], "\n".join(calls)


def _cores_of_threads(process: int) -> list[tuple[str, set[int]]]:
    """Returns the names of the threads of a process, each with the cores that it can use."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return [
        ((thread / "comm").read_text(encoding="utf-8"), os.sched_getaffinity(int(thread.name))) for thread in threads
    ]


def _without_frames(logs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Returns logs without stacks, whose outermost frames belong to the JVM."""
    return {
        name: [line for text in texts for line in text.splitlines() if not line.startswith("    at ")]
        for name, texts in logs.items()
    }


def _scan(*parts: str) -> list[str]:
    """Returns the calls that leave the simulation, in the classes of DLedger's node with these first parts of their names."""
    jar = simulator(print).path / JAR
    program, *_ = built(SimDLedger(SimCluster(("n1",), SEED), DLedgerOptions(), "register")).jars()
    command = ["java", "-cp", str(jar), "io.labrys.simjvm.weave.Scan", str(program), *parts]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.night
def test_the_library_of_rocketmq_serves_its_log() -> None:
    """DLedger 0.3.1.2, which RocketMQ 5.3.3 uses, keeps the elements of a set through kills, cuts and pauses."""
    words = (
        "--cluster",
        "sim",
        "--system",
        "dledger-log",
        "--library-version",
        "0.3.1.2",
        "--workload",
        "set",
        "--nodes",
        "3",
    )
    faults = (
        "--nemesis",
        "kill,partition-leader,pause",
        "--fault-on",
        "1-5",
        "--fault-off",
        "0.5-2",
        "--fault-quiet",
        "0.5-2",
    )
    result = trial(*words, *faults, "--rate", "10", "--time-limit", "20", seed=3)
    assert result.outcome.verdict is Verdict.VALID
