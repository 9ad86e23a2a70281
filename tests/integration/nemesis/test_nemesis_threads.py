"""Threads of a JVM are held on real nodes: the JVM says so, and the program notices it by itself."""
# ruff: noqa: D102 - the methods of the small system are described by their protocols

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.daemon import ENVIRONMENT, Daemon
from harness.declare import NoOptions
from harness.errors import InputError
from harness.faults import PlannedFault
from harness.system import OneServiceSystem
from harness.targets import Named
from nemesis.conductor import Conductor
from nemesis.errors import FaultError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.client import Client
    from harness.cluster import Cluster
    from harness.node import Node
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration

HOME = "/srv/ticks"
PORT = 7100
LASTS_S = 4.0
# Two threads tick about once in a millisecond. The file has the longest gap between two ticks of each, in seconds.
PROGRAM = """
package ticks;

import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;

public class Ticks {
    static final ConcurrentHashMap<String, Double> GAPS = new ConcurrentHashMap<>();

    static void tick(String name) throws InterruptedException {
        long last = System.nanoTime();
        while (true) {
            Thread.sleep(1);
            long now = System.nanoTime();
            GAPS.merge(name, (now - last) / 1e9, Math::max);
            last = now;
        }
    }

    public static void main(String[] arguments) throws Exception {
        ServerSocket server = new ServerSocket(7100);
        for (String name : new String[] {"left", "right"}) {
            new Thread(() -> { try { tick(name); } catch (InterruptedException end) { } }, name).start();
        }
        while (true) {
            Thread.sleep(20);
            StringBuilder text = new StringBuilder();
            GAPS.forEach((name, gap) -> text.append(text.length() == 0 ? "{" : ", ").append("\\"" + name + "\\": " + gap));
            Files.writeString(Path.of("gaps.new"), text + "}");
            Path.of("gaps.new").toFile().renameTo(Path.of("gaps").toFile());
        }
    }
}
"""


class Ticks(OneServiceSystem):
    """A program in Java that ticks."""

    name = "ticks"
    role = "ticks"
    packages: Sequence[str] = ("ticks",)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, NoOptions(), "none")

    def daemon(self, node: Node) -> Daemon:
        return Daemon(
            role="ticks",
            argv=("java", "-XX:TieredStopAtLevel=1", f"{HOME}/Ticks.java"),
            pattern=f"^java .*{HOME}/Ticks.java",
            ports=(PORT,),
            data_dir=f"{HOME}/data",
            log_files=(f"{HOME}/log",),
            java_packages=self.packages,
        )

    def install(self, node: Node) -> None:
        remote = self.cluster.remote(node)
        remote.run(f"mkdir -p {HOME}/data")
        remote.write(f"{HOME}/Ticks.java", PROGRAM)

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each program ticks."""
        for node in nodes:
            script = f"for i in $(seq 400); do [ -s {HOME}/data/gaps ] && exit 0; sleep 0.05; done; exit 1"
            await asyncio.to_thread(self.cluster.remote(node).run, script)

    def gaps(self, node: Node) -> dict[str, float]:
        """Returns the longest gap between two ticks of each thread, in seconds."""
        return json.loads(self.cluster.remote(node).run(f"sleep 0.1; cat {HOME}/data/gaps").stdout)  # type: ignore[no-any-return]

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        raise NotImplementedError("no test asks for operations")


def stall(target: list[str], **options: Any) -> PlannedFault:
    """Returns a fault that holds threads often and long."""
    given = {"per_second": 10, "most_ms": 900, "seed": 1, **options}
    return PlannedFault(
        id=3, kind="thread-stall", target=Named(tuple(target)), start_s=0.0, end_s=LASTS_S, options=given
    )


@pytest.fixture
def ticks(bench: Bench) -> Iterator[Ticks]:
    """The program, installed and not started."""
    system = Ticks(bench.cluster)
    for node in bench.cluster.nodes[:2]:
        system.install(node)
    yield system
    for node in bench.cluster.nodes[:2]:
        system.kill(node)
        bench.shell(node.name, f"rm -rf {HOME}; rm -f {ENVIRONMENT} {ENVIRONMENT}-*")


def test_threads_are_held_one_by_one_and_go_on(bench: Bench, ticks: Ticks) -> None:
    """The program misses ticks of the threads that the proof names, for as long as it says, and no longer after the end."""
    conductor = Conductor(cluster=bench.cluster, system=ticks)
    fault = stall(["n1"])
    (node,) = bench.cluster.nodes[:1]

    async def through() -> tuple[Any, Any, Any]:
        await conductor.prepare([fault])
        await asyncio.to_thread(ticks.start, node)
        await ticks.until_ready([node], 20)
        begun = await conductor.begin(fault)
        proof = await conductor.prove(fault)
        await asyncio.sleep(LASTS_S)
        return begun, proof, await conductor.end(fault)

    begun, proof, ended = asyncio.run(through())
    assert begun.details["methods"]["n1"] >= 2
    assert proof.effective, proof.reason
    assert ended.effective, ended.reason
    measured = ended.measured["n1"]
    assert measured["held"] >= len(measured["threads"])
    assert any(
        text.startswith(("left in ticks.Ticks.tick:", "right in ticks.Ticks.tick:")) for text in measured["threads"]
    )
    gaps = ticks.gaps(node)
    for name in ("left", "right"):
        said_ms = [
            int(text.split(" for ")[1].split(" ms")[0]) for text in measured["threads"] if text.startswith(f"{name} ")
        ]
        assert gaps[name] >= 0.9 * max(said_ms, default=0) / 1000

    pid = ticks.process_state(node)
    before = ticks.gaps(node)
    asyncio.run(asyncio.sleep(1))
    assert ticks.process_state(node) == pid
    assert ticks.gaps(node).keys() == before.keys()

    asyncio.run(conductor.heal())
    ticks.kill(node)
    asyncio.run(conductor.release())
    assert not bench.shell("n1", f"ls {ENVIRONMENT}* 2>/dev/null || true").strip()


def test_a_process_that_ends_meanwhile_holds_nothing(bench: Bench, ticks: Ticks) -> None:
    """The fault is healed, and the proof says what became of the process."""
    conductor = Conductor(cluster=bench.cluster, system=ticks)
    fault = stall(["n1", "n2"])
    first, second = bench.cluster.nodes[:2]

    async def through() -> Any:
        await conductor.prepare([fault])
        for node in (first, second):
            await asyncio.to_thread(ticks.start, node)
        await ticks.until_ready([first, second], 20)
        await conductor.begin(fault)
        proof = await conductor.prove(fault)
        assert proof.effective, proof.reason
        await asyncio.to_thread(ticks.kill, first)
        await asyncio.sleep(0.5)
        return await conductor.end(fault)

    ended = asyncio.run(through())
    assert "n1: the" in ended.reason
    assert "JVM" in ended.reason
    assert "n2 held threads" in ended.reason


def test_a_program_without_its_debugger_is_refused(bench: Bench, ticks: Ticks) -> None:
    """It began before the fault was prepared, or has none of the classes."""
    (node,) = bench.cluster.nodes[:1]

    def begin(**options: Any) -> None:
        asyncio.run(Conductor(cluster=bench.cluster, system=ticks).begin(stall(["n1"], **options)))

    ticks.start(node)
    asyncio.run(ticks.until_ready([node], 20))
    with pytest.raises(FaultError, match="the debugger of the JVM does not listen on port 9390"):
        begin()
    ticks.kill(node)
    asyncio.run(Conductor(cluster=bench.cluster, system=ticks).prepare([stall(["n1"])]))
    ticks.start(node)
    asyncio.run(ticks.until_ready([node], 20))
    with pytest.raises(FaultError, match=r"has loaded no class of org\.absent"):
        begin(code="org.absent")
    ticks.packages = ()
    with pytest.raises((FaultError, InputError), match="runs no JVM whose packages are known"):
        begin()
