"""The base class of systems whose nodes are Java programs in the simulator."""

from __future__ import annotations

import abc
import asyncio
import functools
import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, cast

from msgspec import DecodeError, Struct
from msgspec.json import decode as json_decode

from clusters.kit.answers import NotSent
from clusters.kit.jvm import compiler, java, maven, maven_build
from clusters.sim.cluster import LOG_FILE
from clusters.sim.jvm import javas
from clusters.sim.jvm.disk import DATA, JavaDisk
from clusters.sim.jvm.processes import ClientStream, Java, JavaProcess, Program
from clusters.sim.system import SimNodes
from harness.capabilities import SIMULATED_CALLS
from harness.console.documents import shown
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.sim.cluster import SimCluster
    from clusters.sim.host import Factory, Host
    from harness.builds import Artifact
    from harness.node import Node
    from harness.node_states import NodeState
    from harness.traits import LogLine

JAR: Final = "simjvm.jar"
VERSION: Final = "0.1.0"
SOURCES: Final = Path(__file__).parent / "simulator"
JAVA: Final = java("the simulator of Java programs")
MAVEN: Final = maven("building the simulator of Java programs")
COMPILER: Final = compiler("building the simulator of Java programs")
FLAGS: Final = (
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xmx512m",
    "-Xmn48m",
    "-XX:PretenureSizeThreshold=500000",  # buffers of 4 MB live as long as a process, so no collection copies them
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-OmitStackTraceInFastThrow",  # otherwise the compiler decides which exceptions have a stack
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",  # the same for all objects, so that no hash table has an order by chance
    "-Djava.util.logging.SimpleFormatter.format=%5$s%6$s",
    "-Dio.netty.noUnsafe=true",
    "-Duser.home=home",  # in the working directory, so that logs do not name a folder of this machine
)

FEW_RUNS: Final = "-XX:TieredStopAtLevel=1"  # the fast compiler alone


def simulator(say: Callable[[str], object]) -> Artifact:
    """Returns the jar of the simulator; builds it if the cache lacks it.

    Raises:
        InfrastructureError: It cannot be built.
    """
    return maven_build(
        "simjvm", VERSION, SOURCES, "package", "-DskipTests", product=f"target/{JAR}",
        files=("pom.xml", "src/main/**/*"), tools=(MAVEN, COMPILER),
    ).artifact(say)  # fmt: skip


@functools.cache
def known_simulator() -> Artifact:
    """Returns the jar of the simulator. Looks for it once in a process: each run of a hunt asks three times.

    Raises:
        InfrastructureError: It cannot be built.
    """
    return simulator(lambda _: None)


def simulated(lines: Mapping[str, LogLine]) -> Mapping[str, LogLine]:
    """Returns log lines with which faults can begin, in the log of a simulated node."""
    return MappingProxyType({name: replace(line, path=LOG_FILE) for name, line in lines.items()})


class _Told(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a program tells of its state. An index of -1 stands for no entry."""

    role: str
    term: int
    last: int
    last_term: int
    committed: int
    value: int | None = None


def _index(told: int) -> int | None:
    return None if told < 0 else told


class JavaNodes(SimNodes):
    """The nodes of a system in the simulator: a Java program on each.

    Attributes:
        main: The class whose method `begin` or `main` starts a node. `begin` returns a function from a key to the node's
            state as JSON: role, term, last, lastTerm and committed, and perhaps value.
    """

    threaded: ClassVar[bool] = True
    lacks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {name: why for name, why in SimNodes.lacks.items() if name != SIMULATED_CALLS}
    )
    main: str
    _java: Java | None = None

    @abc.abstractmethod
    def node_arguments(self, node: Node, directory: str, log_directory: str) -> Sequence[str]:
        """Returns the arguments of `main` on a node, with the folders of its data and its logs."""

    @abc.abstractmethod
    def jars(self) -> Sequence[Path]:
        """Returns the jars of the program, as in a class path."""

    def java(self) -> Java:
        """Returns the JVM of the run; starts it the first time.

        Raises:
            InfrastructureError: It cannot be built or started.
        """
        if self._java is None:
            addresses = {node.address: node.name for node in self.nodes}
            threads = cast("SimCluster", self.cluster).threads
            self._java = Java(self.world, self.commands(), addresses, threads)
            self.world.companion = self._java
            for node in self.nodes:
                self.world.machines[node.name].disk = JavaDisk(node.name, self._java)
        return self._java

    def commands(self) -> tuple[Sequence[str], Sequence[str]]:
        """Returns the command lines of a JVM for a few runs, and of one for many; see `idle.take`.

        Raises:
            InfrastructureError: There is no Java for it.
        """
        jar = known_simulator().path / JAR
        java_, copied = javas.chosen(javas.installed())
        program = os.pathsep.join(map(str, self.jars()))
        few, many = (javas.command(java_, copied, flags, str(jar), program) for flags in ((*FLAGS, FEW_RUNS), FLAGS))
        return few, many

    def factory(self, node: Node) -> Factory:
        """Returns the function that makes the process of a node."""
        java_ = self.java()
        arguments = self.node_arguments(node, f"{node.name}/{DATA}", f"{node.name}/log")
        program = Program(main=self.main, arguments=arguments, message=self.message)

        def make(host: Host) -> JavaProcess:
            return JavaProcess(host, java_, self.world.machines[node.name], program)

        return make

    def message(self, data: bytes) -> object:
        """Returns the message that bytes between nodes are. Its type has the name of the message; see `clusters.sim.rarity`."""
        return data

    def node_state(self, node: Node, key: str | None) -> NodeState:
        """Returns the state of a node, with what its program tells.

        Raises:
            InfrastructureError: The program tells something else than its state.
        """
        state = super().node_state(node, key)
        text = "" if self._java is None else self._java.jvm.state(node.name, key or "")
        if not text:
            return state
        try:
            told = json_decode(text, type=_Told)
        except DecodeError as error:
            raise InfrastructureError(f"the program of {node.name} tells no state: {shown(text)}: {error}") from error
        return replace(
            state, role=told.role, term=told.term, last=_index(told.last), last_term=_index(told.last_term),
            committed=_index(told.committed), value=None if told.value is None else str(told.value),
        )  # fmt: skip

    async def open_stream(
        self, host: str, port: int, timeout_s: float
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects a client to a node, as `asyncio.open_connection` does on real nodes.

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
        return stream.reader, cast("asyncio.StreamWriter", stream)
