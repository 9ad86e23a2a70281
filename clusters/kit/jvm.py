"""The bases of the systems whose nodes run one JVM each, and form a group with one leader.

They share what is here: the check of Java, the flags of a small JVM, the log lines of a broken one, and the readiness of a
group. Some also share the move of the leadership.
"""

from __future__ import annotations

import abc
import asyncio
import shlex
from typing import TYPE_CHECKING, ClassVar

from clusters.kit.leading import move_leadership
from clusters.kit.waiting import wait_until_complete
from harness.errors import NodeError
from harness.leaders import leaders_by_term
from harness.process_clock import LogClock
from harness.service import Service, first_status
from harness.slowness import slowed
from harness.system import OneServiceSystem, System
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.builds import Build
    from harness.node import Node
    from harness.service import NodeStatus

JAVA_VERSION = 17
STATUS_TIMEOUT_S = 1.0
JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss256k",
    "-XX:-UsePerfData",
    "-XX:-UseDynamicNumberOfCompilerThreads",  # otherwise the compiler asks for the free memory after each method
    "-XX:+ExitOnOutOfMemoryError",
    "-Dtls.server.mode=disabled",  # otherwise each start makes an unused RSA key, which takes two seconds of CPU
)
SIMPLE_LOGGER = (  # for a program whose jars have slf4j-simple: lines that begin with a time, on the standard error
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
)
FATAL = (
    r"OutOfMemoryError",
    r"StackOverflowError",
    r"IllegalAccessError",
    r"NoClassDefFoundError",
    r"A fatal error has been detected",
)


def java(purpose: str) -> Program:
    """Returns Java as a program that nodes need."""
    return Program(
        name="java",
        package="openjdk-17-jre-headless",
        purpose=purpose,
        least_version=JAVA_VERSION,
        version_pattern=r'version "(\d+)',
    )


def maven(purpose: str) -> Program:
    """Returns Maven as a program that a build needs."""
    return Program(name="mvn", package="maven", purpose=purpose, build_only=True)


def compiler(purpose: str) -> Program:
    """Returns the compiler of a JDK as a program that a build needs."""
    return Program(
        name="javac",
        package="openjdk-17-jdk-headless",
        purpose=purpose,
        least_version=JAVA_VERSION,
        version_pattern=r"javac (\d+)",
        build_only=True,
    )


def maven_build(
    name: str,
    version: str,
    sources: Path,
    *goals: str,
    product: str,
    files: Sequence[str],
    tools: Sequence[Program],
    parts: Mapping[str, Path] | None = None,
    shelf: Path | None = None,
) -> Build:
    """Returns a build with Maven.

    Args:
        name: The name of the artifact.
        version: The base version of the software in it.
        sources: The folder with `pom.xml`.
        goals: What Maven does, with its properties.
        product: The path of the result in the copy of the folder.
        files: Patterns for the sources.
        tools: The programs that it needs.
        parts: See `Build`.
        shelf: See `Build`.
    """
    from harness.builds import Build  # noqa: PLC0415 - `labrys test --help` needs no builds

    command = ("mvn", "--batch-mode", "--no-transfer-progress", *goals)
    return Build(
        name=name, version=version, sources=sources, files=files, command=command, product=product, tools=tools,
        variables=("JAVA_HOME",), parts=parts or {}, shelf=shelf,
    )  # fmt: skip


def released_jars(software: str, version: str, sources: Path, *, tools: Sequence[Program]) -> Build:
    """Returns a build that gets the released jars of a version with Maven, and compiles nothing.

    Args:
        software: Its name in the name of the artifact and in the property of `pom.xml`, e.g. `store` in `store.version`.
        version: The version.
        sources: The folder with `pom.xml`, whose phase `prepare-package` puts the jars into `target/VERSION`.
        tools: The programs that it needs.
    """
    return maven_build(
        f"{software}-jars", version, sources, "prepare-package", f"-D{software}.version={version}",
        product=f"target/{version}", files=("pom.xml",), tools=tools,
    )  # fmt: skip


def simple_log_clock(path: str) -> LogClock:
    """Returns the clock of a log that a JVM with the flags `SIMPLE_LOGGER` writes."""
    return LogClock(
        path=path,
        pattern=r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}) ",
        form="%Y-%m-%dT%H:%M:%S.%f%z",
        resolution_s=0.001,
    )


class JvmGroup(Service):
    """A service with one JVM on each of its nodes, which have one leader.

    Attributes:
        software: Its name in errors, e.g. `MyStore`.
    """

    software: ClassVar[str]

    @abc.abstractmethod
    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each node lacks to serve together with the others; empty if they serve.

        Args:
            statuses: The status of each node; None if the node does not answer.
        """

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until no node lacks anything."""
        await wait_until_complete(self, nodes, timeout_s, self._missing, system_name=self.software)

    async def statuses_of(self, nodes: Sequence[Node]) -> dict[str, NodeStatus | None]:
        """Asks several nodes for their status at once; None for a node that does not answer in time."""
        answers = await asyncio.gather(*(first_status(self, node, slowed(STATUS_TIMEOUT_S)) for node in nodes))
        return dict(zip([node.name for node in nodes], answers, strict=True))

    def node(self, name: str) -> Node:
        """Returns the node with a name."""
        return next(node for node in self.nodes if node.name == name)

    async def _missing(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        statuses = await self.statuses_of(nodes)
        return await self.lacking(statuses), [node for node in nodes if statuses[node.name] is None]


class JvmInstallation(System):
    """A system whose nodes run JVMs from one artifact.

    Attributes:
        software: Its name in errors, e.g. `MyStore`.
        fatal: Log lines that a healthy node never writes, beside those of a broken JVM.
    """

    software: ClassVar[str]
    fatal: ClassVar[Sequence[str]] = ()

    def install(self, node: Node) -> None:
        """Copies the artifact to the node, if it is not there yet.

        If it is there, an earlier installation checked the version of Java, so only the program must still exist.

        Raises:
            NodeError: The node has no Java of the required version, or the artifact cannot be copied.
        """
        remote = self.cluster.remote(node)
        path = shlex.quote(self.artifact.there)
        known = remote.run(f"command -v java >/dev/null && [ -e {path} ] && echo known", check=False)
        if known.stdout.strip() != "known":
            self._require_java(node)
        self.artifact.install(remote)

    def _require_java(self, node: Node) -> None:
        program = next(candidate for candidate in self.programs if candidate.name == "java")
        said = self.cluster.remote(node).run("java -version 2>&1", check=False)
        version = program.version(said.stdout)
        if said.status != 0 or version is None or version < JAVA_VERSION:
            actual = "none" if version is None else f"Java {version}"
            printed = said.stdout.strip().partition("\n")[0] or "nothing"
            raise NodeError(
                node.name,
                f"expected Java {JAVA_VERSION} or later to run {self.software}, found {actual} "
                f"(`java -version` prints: {printed}); "
                f"`apt-get install {program.package}` installs it",
            )

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns patterns of the errors of a broken JVM, and those of the system."""
        return (*FATAL, *self.fatal)


class JvmSystem(JvmInstallation, JvmGroup, OneServiceSystem):
    """One JVM on each node; together they are a group."""


class LedJvmSystem(JvmSystem):
    """A group of JVMs in which only the leader answers reads, and in which the leadership can be moved."""

    reads_need_leader = True
    moves_leadership = True

    @abc.abstractmethod
    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether a leader serves, e.g. whether it has committed an entry of its own term.

        Args:
            status: The status of a node that reports itself as the leader.
        """

    @abc.abstractmethod
    async def transfer(self, leader: Node, term: int | None, to: Node, limit_s: float) -> None:
        """Requests that a leader transfers its leadership of a term. The caller checks who leads afterwards."""

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """See `move_leadership`."""

        async def serving() -> NodeStatus | None:
            return await self.serving(await self.statuses_of(self.nodes))

        async def transfer(leader: NodeStatus, limit_s: float) -> None:
            await self.transfer(self.node(leader.node), leader.term, node, limit_s)

        return await move_leadership(node.name, timeout_s, serving=serving, transfer=transfer)

    async def serving(self, statuses: Mapping[str, NodeStatus | None]) -> NodeStatus | None:
        """Returns the leader with the highest term that serves; None if no leader serves."""
        for status in leaders_by_term(status for status in statuses.values() if status is not None):
            if await self.is_serving(status):
                return status
        return None
