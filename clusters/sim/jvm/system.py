"""The base class of systems whose nodes are Java programs in the simulator."""

from __future__ import annotations

import abc
import asyncio
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, cast

from clusters.sim.jvm import javas
from clusters.sim.jvm.processes import ClientStream, Java, JavaProcess, Program
from clusters.sim.system import SimNodes
from clusters.systems.jvm import compiler, java, maven, maven_build
from clusters.systems.remoting import Connection, NotSent
from harness.capabilities import SIMULATED_DISK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.sim.host import Factory, Host
    from harness.builds import Artifact
    from harness.node import Node

JAR: Final = "simjvm.jar"
VERSION: Final = "0.1.0"
SOURCES: Final = Path(__file__).parent / "simulator"
JAVA: Final = java("the simulator of Java programs")
MAVEN: Final = maven("building the simulator of Java programs")
COMPILER: Final = compiler("building the simulator of Java programs")
FLAGS: Final = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xmx512m",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-OmitStackTraceInFastThrow",  # otherwise the compiler decides which exceptions have a stack
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",  # the same for all objects, so that no hash table has an order by chance
    "-Djava.util.logging.SimpleFormatter.format=%5$s%6$s",
    "-Dio.netty.noUnsafe=true",
)


def simulator(say: Callable[[str], object]) -> Artifact:
    """Returns the jar of the simulator; builds it if the cache lacks it.

    Raises:
        InfrastructureError: It cannot be built.
    """
    return maven_build(
        "simjvm", VERSION, SOURCES, "package", "-DskipTests", product=f"target/{JAR}",
        files=("pom.xml", "src/main/**/*"), tools=(MAVEN, COMPILER),
    ).artifact(say)  # fmt: skip


class JavaNodes(SimNodes):
    """The nodes of a system in the simulator: a Java program on each.

    Attributes:
        main: The class whose method `main` starts a node, and returns.
        jar: The name of the jar of the program in the system's artifact.
    """

    lacks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            SIMULATED_DISK: (
                "the files of Java programs in the simulator are in this machine's memory, where no fault fills or damages them"
            )
        }
    )
    main: str
    jar: str
    _java: Java | None = None

    @abc.abstractmethod
    def node_arguments(self, node: Node, directory: str, log_directory: str) -> Sequence[str]:
        """Returns the arguments of `main` on a node, with the folders of its data and its logs."""

    def java(self) -> Java:
        """Returns the JVM of the run; starts it the first time.

        Raises:
            InfrastructureError: It cannot be built or started.
        """
        if self._java is None:
            addresses = {node.address: node.name for node in self.nodes}
            self._java = Java(self.world, self.command(), addresses)
            self.world.companion = self._java
        return self._java

    def command(self) -> Sequence[str]:
        """Returns the command line of the JVM.

        Raises:
            InfrastructureError: There is no Java for it.
        """
        jar = simulator(lambda _: None).path / JAR
        java_, copied = javas.chosen(javas.installed())
        return javas.command(java_, copied, FLAGS, str(jar), str(self.artifact.path / self.jar))

    def factory(self, node: Node) -> Factory:
        """Returns the function that makes the process of a node."""
        java_ = self.java()
        arguments = self.node_arguments(node, f"{node.name}/data", f"{node.name}/log")
        program = Program(main=self.main, arguments=arguments, message=self.message)

        def make(host: Host) -> JavaProcess:
            return JavaProcess(host, java_, self.world.machines[node.name], program)

        return make

    def message(self, data: bytes) -> object:
        """Returns the message that bytes between nodes are. Its type has the name of the message; see `clusters.sim.rarity`."""
        return data

    def wipe(self, node: Node, role: str | None = None) -> None:
        """Removes the node's data and log."""
        super().wipe(node, role)
        if self._java is not None:
            self._java.wipe(node.name)

    async def open_connection(self, host: str, port: int, timeout_s: float) -> Connection:
        """Connects a client to a node; see `Connection.open`.

        Raises:
            NotSent: The node refuses the connection, or does not accept it in time.
        """
        where = f"{host}:{port}"
        stream = ClientStream(self.java(), self.world)
        try:
            async with asyncio.timeout(timeout_s):
                await stream.connect(host, port)
        except TimeoutError as error:
            stream.abort()
            raise NotSent(f"{where} did not accept a connection in {timeout_s:g} s") from error
        except OSError as error:
            raise NotSent(f"{where} refused a connection: {error}") from error
        return Connection(stream.reader, cast("asyncio.StreamWriter", stream), where)
