"""RocketMQ's released controllers on DLedger 0.3.1.2 in virtual time: they serve, and the same seed gives the same run."""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.kit.routing import Routing
from clusters.sim.cluster import SimCluster
from clusters.sim.jvm import idle, javas
from clusters.sim.jvm.system import JAR, simulator
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.outcomes import SUCCESS
from clusters.systems.rocketmq.simulated import SimRocketMQController
from harness.errors import InputError
from harness.op import Invocation, Ok
from harness.verdict import Verdict
from tests.artifacts import built
from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from harness.node import Node
    from harness.node_states import NodeState
    from harness.op import Outcome

pytestmark = pytest.mark.integration

SEED = 7
GROUP = "b1"
MASTER, OTHER = 1, 2
# What the scan finds, and no run of a controller on DLedger meets: the client of a command line, and a copy of a file.
UNMET = re.compile(
    r"org\.apache\.rocketmq\.(remoting\.common\.RemotingHelper\.(connect|invokeSync)|common\.utils\.(IOTinyUtils\.copyFile|"
    r"NetworkUtil\.openSelector)) calls .*"
)


class Run:
    """One run: two brokers get ids, one becomes the master and dies, the other one replaces it; a kill, a cut and a pause.

    Attributes:
        outcomes: The answers of the controllers.
        logs: The logs of the nodes, with the times of all lines.
        trace: The digest of all decisions of the scheduler, and their number.
        states: The states of the nodes at the end.
        jvm: The JVM that carried it out.
    """

    def __init__(self, seed: int) -> None:
        """Carries out the run of a seed."""
        self._cluster = SimCluster(("n1", "n2", "n3"), seed)
        options = ControllerOptions(routing=Routing.LEADER)
        self._system = built(SimRocketMQController(self._cluster, options, "elect"))
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
        clients = {broker: system.client(broker, nodes[0]) for broker in (MASTER, OTHER)}

        async def ask(broker: int, f: str, **argument: Any) -> Outcome:
            for _ in range(200):
                outcome = await clients[broker].invoke(Invocation(f=f, value=argument, key=GROUP))
                if isinstance(outcome, Ok):
                    break
            return outcome

        def beat(broker: int) -> dict[str, Any]:
            return {"id": broker, "epoch": 1, "max_offset": 10, "priority": 1}

        outcomes = []
        for broker in clients:
            outcomes.append(await ask(broker, "apply", id=broker, check=broker))
            outcomes.append(await ask(broker, "heartbeat", **beat(broker)))
        outcomes.append(await ask(MASTER, "elect", id=MASTER, designate=False))
        leader = await self._leader()
        system.kill(leader)
        outcomes.append(await ask(OTHER, "elect", id=OTHER, designate=False))
        system.start(leader)
        await system.until_ready(nodes, 30.0)  # a node with a shorter log that is cut off would stay out: finding 4
        world.cut(1, {leader.name: frozenset(node.name for node in nodes if node != leader)})
        await asyncio.sleep(3.0)
        world.mend(1)
        other = next(node for node in nodes if node != leader)
        system.pause(other)
        await asyncio.sleep(1.0)
        system.resume(other)
        await system.until_ready(nodes, 30.0)
        outcomes.append(await ask(OTHER, "replica"))
        await asyncio.sleep(3.0)  # until every member has what the leader committed
        self.states: list[NodeState] = [system.node_state(node, None) for node in nodes]
        for client in clients.values():
            await client.close()
        return outcomes

    async def _leader(self) -> Node:
        statuses = await self._system.statuses_of(self._cluster.nodes)
        (name,) = [name for name, status in statuses.items() if status is not None and status.role == "leader"]
        return self._system.node(name)


@pytest.fixture(scope="module")
def run() -> Run:
    """A run in a new JVM."""
    idle.close_all()
    return Run(SEED)


def test_the_controllers_serve(run: Run) -> None:
    """Every request gets an answer, and the members of the group agree on their term and their log."""
    assert all(isinstance(outcome, Ok) for outcome in run.outcomes), run.outcomes
    codes = [outcome.value["code"] for outcome in run.outcomes if isinstance(outcome, Ok)]
    assert codes[:5] == [SUCCESS] * 5
    (leader,) = [state for state in run.states if state.role == "leader"]
    assert (leader.term or 0) > 1
    assert {(state.term, state.last, state.committed) for state in run.states} == {
        (leader.term, leader.last, leader.last)
    }


def test_a_seed_gives_the_same_run(run: Run) -> None:
    """A JVM that has had another run takes the same decisions at the same times, and another seed gives another run."""
    other = Run(SEED + 1)
    assert other.trace != run.trace
    again = Run(SEED)
    assert again.jvm is other.jvm
    assert again.logs == run.logs
    assert again.trace == run.trace
    assert again.outcomes == run.outcomes


@pytest.mark.skipif(
    all(java.version < javas.CONTINUATIONS for java in javas.installed()),
    reason=f"needs Java {javas.CONTINUATIONS} or later beside Java {javas.COPIED}",
)
def test_threads_give_the_run_of_continuations(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java 17, with threads of the operating system, takes the same decisions."""
    java = javas.chosen(javas.installed())[1]
    monkeypatch.setattr(javas, "chosen", lambda _: (java, java))
    again = Run(SEED)
    assert again.jvm.command[0] == java.program
    assert again.trace == run.trace
    assert again.outcomes == run.outcomes


def test_the_calls_without_a_hook() -> None:
    """The scan of the controller, of what it is built on and of DLedger finds only known calls, which no run has met."""
    system = built(SimRocketMQController(SimCluster(("n1",), SEED), ControllerOptions(), "elect"))
    parts = (
        "rocketmq-controller",
        "rocketmq-remoting",
        "rocketmq-common",
        "rocketmq-srvutil",
        "dledger",
        "rocketmq-starter",
    )
    jar = simulator(print).path / JAR
    calls = []
    for path in system.jars():
        if path.name.startswith(parts):
            command = ["java", "-cp", str(jar), "io.labrys.simjvm.weave.Scan", str(path), "org.apache.", "io."]
            calls += subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in calls if not UNMET.fullmatch(line)] == []


def test_what_the_simulator_lacks_is_refused(tmp_path: Path) -> None:
    """Controllers on jraft are an error that says so."""
    words = ["test", "--cluster", "sim", "--system", "rocketmq-controller", "--workload", "elect", "--nodes", "3"]
    words += ["--time-limit", "30", "--store", str(tmp_path)]
    with pytest.raises(InputError, match="--cluster sim has controllers on dledger only, not on jraft"):
        cli.invoke([*words, "--consensus", "jraft", "--nemesis", "none"])


def test_controllers_lose_their_power() -> None:
    """A loss of power takes the term, the vote and the end of the log, if they are not synced. The controllers serve again."""
    words = (
        "--cluster",
        "sim",
        "--system",
        "rocketmq-controller",
        "--workload",
        "elect",
        "--nodes",
        "3",
        "--rate",
        "10",
    )
    faults = ("--nemesis", "power-loss", "--fault-on", "0.5-4", "--fault-off", "0.5-3", "--fault-quiet", "0.5-3")
    result = trial(*words, *faults, "--time-limit", "16", seed=1)
    verdicts = {part.name: part.verdict for part in result.outcome.parts}
    assert verdicts["recovered"] is verdicts["linearizable"] is verdicts["faults-effective"] is Verdict.VALID
