"""RocketMQ's remoting in the simulator of Java programs: the servers of DLedger and of RocketMQ talk by it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.kit.jvm import maven_build
from clusters.sim.jvm.system import COMPILER, MAVEN, JavaNodes, known_simulator, simulator
from clusters.sim.jvm.system import JAR as SIMULATOR
from clusters.sim.machine import FATAL
from clusters.systems.dledger import mends
from clusters.systems.dledger.messages import Messages
from clusters.systems.dledger.remoting import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.cluster import Cluster

JAR: Final = "simjvm-remoting.jar"
VERSION: Final = "0.1.0"
SOURCES: Final = Path(__file__).parent / "simulator"


def remoting(say: Callable[[str], object]) -> Artifact:
    """Returns the jar with the remoting on simulated connections; builds it and the simulator if the cache lacks them.

    Raises:
        InfrastructureError: It cannot be built.
    """
    return maven_build(
        "simjvm-remoting", VERSION, SOURCES, "package", "-DskipTests", product=f"target/{JAR}",
        files=("pom.xml", "src/main/**/*"), tools=(MAVEN, COMPILER),
        parts={f"lib/{SIMULATOR}": simulator(say).path / SIMULATOR},
    ).artifact(say)  # fmt: skip


@functools.cache
def known_remoting() -> Artifact:
    """Returns the jar. Looks for it once in a process: each run of a hunt asks several times.

    Raises:
        InfrastructureError: It cannot be built.
    """
    return remoting(lambda _: None)


class RemotingNodes(JavaNodes):
    """Nodes in the simulator that talk by the remoting."""

    def __init__(self, cluster: Cluster, options: object, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._messages = Messages()

    def message(self, data: bytes) -> object:
        """Returns a request by its code and, for a push, by its type; all answers are one kind."""
        return self._messages.of(data)

    async def open_connection(self, host: str, port: int, timeout_s: float) -> Connection:
        """Connects a client of the remoting to a node; see `Connection.open`.

        Raises:
            NotSent: The node refuses the connection, or does not accept it in time.
        """
        return Connection(*await self.open_stream(host, port, timeout_s), f"{host}:{port}")

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the pattern of the log line of a process that ended by itself, but not of one whose disk failed."""
        return (rf"^[0-9.]+ {FATAL} (?!it called Runtime\.halt\({mends.DISK_FAILED}\)$)",)

    @property
    def remoting_jar(self) -> Path:
        """Returns the jar with the remoting, which `jars` has too."""
        return known_remoting().path / JAR

    def simulator_versions(self) -> Mapping[str, str]:
        """Returns the versions of the simulator and of the remoting in it."""
        return {
            "simjvm": known_simulator().provenance.short,
            "simjvm-remoting": known_remoting().provenance.short,
        }
