"""The released jar of DLedger in virtual time: the same seed gives the same run, in each JVM, with faults."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.sim.cluster import SimCluster
from clusters.sim.jvm import pipe
from clusters.sim.jvm.system import JAR, simulator
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.simulated import SimDLedger
from clusters.systems.routing import Routing
from harness.errors import InfrastructureError, InputError
from harness.op import Invocation, Ok
from tests.artifacts import built

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Outcome

pytestmark = pytest.mark.integration

SEED = 7
JVMS = Path("/usr/lib/jvm")
RECENT = sorted(JVMS.glob("*25*/bin/java"))
OLD = sorted(JVMS.glob("*17*/bin/java"))
FAULTS = (
    "--nemesis",
    "kill,partition-leader,packet-loss",
    "--fault-on",
    "0.5-1",
    "--fault-off",
    "0.3-0.5",
)


class Run:
    """One run in a JVM of its own: writes, a kill of the leader, a cut, a pause, and writes again.

    Attributes:
        outcomes: The outcomes of the writes.
        logs: The logs of the nodes, with the times of all lines.
        trace: The digest of all decisions of the scheduler, and their number.
    """

    def __init__(self, seed: int, java: Sequence[str] = ()) -> None:
        """Carries out the run.

        Args:
            seed: The seed.
            java: The program of another JVM, and the home of a JDK 17; nothing for the `java` on the PATH.
        """
        self._cluster = SimCluster(("n1", "n2", "n3"), seed)
        self._system = built(SimDLedger(self._cluster, DLedgerOptions(routing=Routing.LEADER), "register"))
        if java:
            program, home = java
            command = [program, *self._system.command()[1:], home]
            self._system.command = lambda: command  # type: ignore[method-assign]
        try:
            self.outcomes: list[Outcome] = self._cluster.world.run(self._live())
            self.trace = self._system.java().trace()
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
        outcomes.append(await write())
        await client.close()
        return outcomes


@pytest.fixture(scope="module")
def run() -> Run:
    """A run on the JVM of the PATH."""
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
    again = Run(SEED)
    assert again.logs == run.logs
    assert again.trace == run.trace
    assert again.outcomes == run.outcomes
    assert Run(SEED + 1).trace != run.trace


@pytest.mark.skipif(not RECENT or not OLD, reason="needs a JDK 25 beside a JDK 17")
def test_another_jvm_gives_the_same_run(run: Run) -> None:
    """Java 25 gives the run of Java 17, because it uses the same copies of the classes of java.util.concurrent."""
    again = Run(SEED, (str(RECENT[0]), str(OLD[0].parents[1])))
    assert again.trace == run.trace
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
        "4",
        "--rate",
        "5",
        "--seed",
        str(SEED),
    ]
    quiet = ["--fault-quiet", "0.5-1", "--store", str(tmp_path)]
    assert cli.invoke(["test", *words, *FAULTS, *quiet]) in {0, 1}, capsys.readouterr().err
    (first,) = tmp_path.glob("*/2*")
    assert "planned faults have a proven effect" in (first / "results.json").read_text()
    assert cli.invoke(["replay", str(first), "--store", str(tmp_path)]) in {0, 1}, capsys.readouterr().err
    (second,) = [path for path in tmp_path.glob("*/2*") if path != first]
    assert (second / "history.jsonl").read_bytes() == (first / "history.jsonl").read_bytes()


def test_a_fault_of_the_disk_is_refused(tmp_path: Path) -> None:
    """The error names the kind, and why it has no effect."""
    words = ["--cluster", "sim", "--system", "dledger", "--nodes", "3", "--nemesis", "power-loss", "--time-limit", "30"]
    with pytest.raises(InputError, match="n1 lacks simulated-disk, which power-loss needs"):
        cli.invoke(["test", *words, "--store", str(tmp_path)])


def test_the_guard_ends_a_run(tmp_path: Path) -> None:
    """A program whose class cannot run in the simulator ends the JVM with an error that names it."""
    system = built(SimDLedger(SimCluster(("n1",), SEED), DLedgerOptions(), "register"))
    jvm = pipe.Jvm(system.command(), tmp_path)
    try:
        jvm.begin(SEED, preempt=0.0, stretch_ns=0)
        jvm.start(0, "n1", seed=SEED, main="io.netty.channel.nio.NioEventLoop", arguments=())
        with pytest.raises(
            InfrastructureError, match=r"io\.netty\.channel\.nio\.NioEventLoop has no public static method main"
        ):
            jvm.advance(10**9)
    finally:
        jvm.close()


def test_the_end_of_the_jvm_is_an_error(tmp_path: Path) -> None:
    """The error has what the JVM printed."""
    jvm = pipe.Jvm(["java", "-jar", str(simulator(print).path / JAR)], tmp_path)
    try:
        jvm.begin(SEED, preempt=0.0, stretch_ns=0)
        with pytest.raises(InfrastructureError, match=r"ended with status 64; (.|\n)*expected the jar of the program"):
            jvm.advance(10**9)
    finally:
        jvm.close()
