"""Java programs of a test in the simulator: plain sockets, a loop without a wait, and a released Raft library."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cli
from clusters.sim.cluster import SimCluster
from clusters.sim.jvm import idle
from clusters.sim.jvm.system import JavaNodes, simulator
from harness.errors import ExitCode, InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node

pytestmark = pytest.mark.integration

SOURCES = sorted((Path(__file__).parents[2] / "data" / "java").glob("*.java"))
MICRORAFT = (
    *("--cluster", "sim", "--system", "examples/microraft/system.py:MicroRaft", "--nodes", "3", "--nemesis"),
    *(
        "partition-random-halves,pause",
        "--fault-on",
        "2-4",
        "--fault-off",
        "1-2",
        "--fault-quiet",
        "2-5",
        "--time-limit",
        "16",
    ),
)
MARK = "calls: "
PORT = 7000
SERVER = [
    "second port: java.net.BindException: Address already in use",
    "got 1 255 -1",
    "got 2 3 4",
    "got 5 6 7",
    "got 5 6 7",
    "accept: java.net.SocketTimeoutException: Accept timed out",
]
CALLER = [
    "read: java.net.SocketTimeoutException: Read timed out",
    "closed: Socket closed, interrupted true",
    "answer 2 7 8, then -1",
    "write: java.net.SocketException: Broken pipe",
    "closed after a byte: java.net.SocketException: Socket closed",
    "available: java.net.SocketException: Socket closed",
    "closed after the end: -1",
    "available: java.net.SocketException: Socket closed",
    "connect: java.net.ConnectException: Connection refused",
]


KNOWN = [
    "1767225661250 2026-01-01T00:01:01.250Z 1767225661250",
    "1767225661250 2026-01-01T00:01:01Z 2026-01-01T00:01:00Z",
    "1767225661250 1767225661250 1767225661250",
    "1@n1 1 1767225600000",
    "536870912 268435456",
]


class Calls(JavaNodes):
    """Nodes that run a program of the tests."""

    name = "calls"
    folder: Path

    def jars(self) -> Sequence[Path]:
        """Returns the compiled program."""
        return (self.folder / "calls.jar",)

    def node_arguments(self, node: Node, directory: str, log_directory: str) -> Sequence[str]:
        """Returns the node, and where the first one serves."""
        return (node.name, self.nodes[0].address, str(PORT))

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Has nothing to wait for."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
        """Has no clients."""
        raise NotImplementedError


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles the program."""
    folder = tmp_path_factory.mktemp("calls")
    subprocess.run(["javac", "--release", "17", "-d", folder, *SOURCES], check=True)
    subprocess.run(["jar", "cf", folder / "calls.jar", "-C", folder, "."], check=True)
    return folder


def said(lines: Sequence[str]) -> list[str]:
    """Returns what the program says in the lines of a log."""
    return [line.split(MARK, 1)[1].rstrip() for line in lines if MARK in line]


def logs(folder: Path, main: str, *nodes: str, seed: int = 1, time_s: float) -> list[Sequence[str]]:
    """Lets a program run on simulated nodes. Returns the lines of the log of each."""
    simulator(print)
    cluster = SimCluster(nodes, seed)
    system = Calls(cluster, None, "register")
    system.folder, system.main = folder, main

    async def live() -> None:
        for node in cluster.nodes:
            system.start(node)
        await asyncio.sleep(time_s)

    try:
        cluster.world.run(live())
        return [machine.lines for machine in cluster.world.machines.values()]
    finally:
        cluster.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_plain_sockets(seed: int, folder: Path) -> None:
    """Calls return and throw in virtual time what they do on this machine."""
    texts = logs(folder, "Calls", "n1", "n2", seed=seed, time_s=20.0)
    assert [said(lines) for lines in texts] == [SERVER, CALLER]


def test_time_and_chance_are_those_of_the_seed(folder: Path) -> None:
    """What the JDK says of them is the same in another JVM, and at another time. Another seed draws something else."""
    first, again, other = (said(*_in_a_new_jvm(folder, seed)) for seed in (1, 1, 2))
    assert first[: len(KNOWN)] == KNOWN
    assert first == again
    assert first[-2] != other[-2]
    assert first[-1] == other[-1]


def _in_a_new_jvm(folder: Path, seed: int) -> list[Sequence[str]]:
    idle.close_all()
    return logs(folder, "Chance", "n1", seed=seed, time_s=62.0)


def test_a_loop_without_a_wait_ends_the_run(folder: Path) -> None:
    """The error says so. Without a limit, the JVM would end without memory."""
    with pytest.raises(InfrastructureError, match="in one instant of virtual time"):
        logs(folder, "Endless", "n1", time_s=1.0)


def test_a_loop_that_logs_takes_time(folder: Path) -> None:
    """Other threads run meanwhile. A loop without a wait logs some thousand lines in a second, and not without end."""
    (lines,) = logs(folder, "Busy", "n1", time_s=2.0)
    assert said(lines) == ["a second has passed"]
    assert 2_000 < sum("again" in line for line in lines) < 20_000


def unused_port() -> int:
    """Returns a port below those that the kernel gives out, so no other test gets it meanwhile and sends to it."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000, 2):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port below 32,000 is free")


def test_the_same_calls_on_this_machine(folder: Path) -> None:
    """The program says the same with the sockets of the kernel."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", str(folder), "Calls"]
    port = str(unused_port())
    server = subprocess.Popen([*command, "n1", "127.0.0.1", port], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        first = next(line for line in server.stderr if MARK in line)  # it serves now
        caller = subprocess.run(
            [*command, "n2", "127.0.0.1", port], stderr=subprocess.PIPE, text=True, timeout=60, check=True
        )
        _, log = server.communicate(timeout=60)
    finally:
        server.kill()
    assert [said([first, *log.splitlines()]), said(caller.stderr.splitlines())] == [SERVER, CALLER]


def test_a_released_library_runs_and_repeats(tmp_path: Path) -> None:
    """The run with MicroRaft is valid, and its seed repeats the history."""
    histories = []
    for count in range(2):
        store = tmp_path / str(count)
        words = ["test", *MICRORAFT, "--seed", "1", "--store", str(store)]
        assert cli.labrys.main(words, standalone_mode=False) == ExitCode.VALID
        histories.append(next(store.glob("*/2*/history.jsonl")).read_bytes())
    assert histories[0] == histories[1]
