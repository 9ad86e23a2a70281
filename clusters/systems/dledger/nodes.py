"""Nodes of the DLedger library, whatever is on top of it: installed, started, broken, and looked at.

A node runs one process. It is ended with SIGKILL: the library takes five seconds for an orderly end, and its promises must
hold without one.
"""

from __future__ import annotations

import abc
import asyncio
import functools
import hashlib
import shlex
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from clusters.systems.dledger.outcomes import REFUSALS
from clusters.systems.dledger.requests import Peer
from clusters.systems.dledger.routing import Group
from clusters.systems.leading import move_leadership
from clusters.systems.members import Members
from clusters.systems.remoting import RemotingError
from clusters.systems.waiting import wait_until_complete
from harness.daemon import Daemon
from harness.errors import InfrastructureError, NodeError
from harness.leaders import leaders_by_term
from harness.slowness import slowed
from harness.system import Program, System

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeVar

    from harness.cluster import Cluster
    from harness.node import Node
    from harness.system import NodeStatus

    T = TypeVar("T")

ROLE = "node"
GROUP = "labrys"
PORT = 20911
JAR = Path(__file__).parent / "node" / "target" / "dledger-node.jar"
NODE_JAR = "/opt/labrys/dledger-node.jar"
DATA_DIR = "/var/lib/labrys/dledger"
LOG_DIR = "/var/log/labrys/dledger"
LAUNCH_LOG = f"{LOG_DIR}/launch.log"  # what the JVM itself writes
LOG = f"{LOG_DIR}/node.0.log"
LOGS = (LAUNCH_LOG, LOG, *(f"{LOG_DIR}/node.{age}.log" for age in (1, 2, 3)))
PATTERN = r"^java .*dledger-node\.jar"
JVM_FLAGS = (
    "-Xms32m",
    "-Xmx96m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss256k",
    "-XX:MaxDirectMemorySize=64m",
    "-XX:-UsePerfData",
    "-XX:ReservedCodeCacheSize=32m",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dio.netty.allocator.type=unpooled",
    "-Dtls.server.mode=disabled",  # else it makes an RSA key at each start: two seconds of CPU, unused
)
INDEX_FILE_ENTRIES = 32_768
STATUS_TIMEOUT_S = 1.0
FATAL = (
    r"OutOfMemoryError",
    r"StackOverflowError",
    r"IllegalAccessError",
    r"NoClassDefFoundError",
    r"A fatal error has been detected",
    r"FATAL: ",
    r"currTerm \d+ has leader \S+, but received leader",  # two leaders in one term
)


class NodeOptions(Protocol):
    """What the options of every system on this library have."""

    @property
    def heartbeat_ms(self) -> int: ...  # noqa: D102 - as its option says

    @property
    def data_file_bytes(self) -> int: ...  # noqa: D102


class DLedgerNodes(System):
    """Nodes of the library on a cluster; a system below it says what is on top, and who serves.

    Attributes:
        group: The group of the nodes.
    """

    programs = (
        Program(
            name="java",
            package="openjdk-17-jre-headless",
            purpose="running DLedger",
            least_version=17,
            version_pattern=r'version "(\d+)',
        ),
        Program(name="mvn", package="maven", purpose="building DLedger's node", build_only=True),
    )
    refusals = REFUSALS
    reads_need_leader = True
    moves_leadership = True

    def __init__(self, cluster: Cluster, options: NodeOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        nodes = tuple(cluster.nodes)
        members = Members(nodes, port=PORT, system="DLedger")
        self.group = Group(name=GROUP, nodes=nodes, port=PORT, members=members)

    @abc.abstractmethod
    def arguments(self) -> Sequence[str]:
        """Returns what the command line of a node has beside the arguments of every node."""

    @abc.abstractmethod
    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether a node that says it leads does serve: it has committed an entry of its own term."""

    def versions(self) -> Mapping[str, str]:
        """Returns the library's version, as the jar says."""
        _require_jar()
        with zipfile.ZipFile(JAR) as jar:
            manifest = jar.read("META-INF/MANIFEST.MF").decode()
        stated = dict(line.split(": ", 1) for line in manifest.splitlines() if ": " in line)
        return {"dledger": stated.get("DLedger-Version", "unknown"), "dledger-node": _sha256(JAR)[:12]}

    def install(self, node: Node) -> None:
        """Puts the jar on the node, if it is not there yet: a copy, since a jar that changes under a JVM breaks it."""
        _require_jar()
        remote = self.cluster.remote(node)
        java = remote.run("java -version 2>&1", check=False)
        if java.status != 0:
            raise NodeError(node.name, f"expected Java 17 or later to run DLedger, found: {java.stdout.strip()}")
        digest = _sha256(JAR)
        has = '[ "$(sha256sum < {} 2>/dev/null)" = ' + shlex.quote(f"{digest}  -") + " ]"
        own, here = has.format(NODE_JAR), has.format(shlex.quote(str(JAR)))
        placed = remote.run(
            f"mkdir -p {Path(NODE_JAR).parent} {LOG_DIR}; "
            f"{own} || {{ {here} && cp {shlex.quote(str(JAR))} {NODE_JAR}; }}",
            check=False,
        )
        if placed.status != 0:
            remote.put(JAR, NODE_JAR)

    def processes(self, node: Node) -> Sequence[Daemon]:
        """Returns the one process of a node."""
        members = self.group.members
        arguments = [
            "java", *JVM_FLAGS, "-jar", NODE_JAR, "--group", GROUP, "--self", members.id_of(node.name), "--peers", members.text,
            "--dir", DATA_DIR, "--log-dir", LOG_DIR, "--heartbeat-ms", str(self.options.heartbeat_ms),
            "--data-file-bytes", str(self.options.data_file_bytes), "--index-file-entries", str(INDEX_FILE_ENTRIES),
            *self.arguments(),
        ]  # fmt: skip
        return (Daemon(role=ROLE, argv=arguments, pattern=PATTERN, ports=(PORT,), data_dir=DATA_DIR, log_files=LOGS),)

    def wait_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until all nodes follow one leader that serves, and have applied what it had committed, if they tell."""
        wait_until_complete(self, nodes, timeout_s, self._look, called="DLedger", logs=(LAUNCH_LOG, LOG))

    async def _look(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        statuses = await self._statuses(nodes)
        missing = lacking(statuses, await self.serving(statuses))
        return missing, [node for node in nodes if statuses[node.name] is None]

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns what a JVM writes when it is broken, and what the node writes when the library gave up."""
        return FATAL

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """See `move_leadership`."""

        async def serving() -> NodeStatus | None:
            return await self.serving(await self._statuses(self.group.nodes))

        async def transfer(leader: NodeStatus, limit_s: float) -> None:
            if leader.term is not None:
                at = next(peer for peer in self.group.nodes if peer.name == leader.node)
                await self.ask(at, limit_s, functools.partial(Peer.transfer, to=node.name, term=leader.term))

        return await move_leadership(node.name, timeout_s, serving=serving, transfer=transfer)

    async def serving(self, statuses: Mapping[str, NodeStatus | None]) -> NodeStatus | None:
        """Returns, of the nodes that say they lead, the one of the highest term that serves; None if none does."""
        for status in leaders_by_term(status for status in statuses.values() if status is not None):
            if await self.is_serving(status):
                return status
        return None

    async def _statuses(self, nodes: Sequence[Node]) -> dict[str, NodeStatus | None]:
        asked = (self.status(node, slowed(STATUS_TIMEOUT_S)) for node in nodes)
        return dict(zip([node.name for node in nodes], await asyncio.gather(*asked), strict=True))

    async def ask(self, node: Node, timeout_s: float, question: Callable[[Peer], Awaitable[T]]) -> T | None:
        """Asks a node over a connection of its own; None if it does not answer in time, or not as it should."""
        try:
            async with asyncio.timeout(timeout_s):
                peer = await self.group.connect(node, timeout_s)
                try:
                    return await question(peer)
                finally:
                    peer.close()
        except (TimeoutError, RemotingError):
            return None


def lacking(statuses: Mapping[str, NodeStatus | None], leader: NodeStatus | None) -> dict[str, str]:
    """Returns what each node lacks to serve together with the others; nothing if they do.

    Args:
        statuses: Node to what it says; None where it does not answer.
        leader: The node that leads and serves, if there is one.
    """
    missing = {}
    for name, status in statuses.items():
        if status is None:
            missing[name] = "does not answer"
        elif leader is None:
            missing[name] = (
                f"is {status.role} in term {status.term} and sees {status.leader or 'no leader'}; none serves"
            )
        elif status.leader != leader.node or status.term != leader.term:
            missing[name] = (
                f"sees {status.leader or 'no leader'} in term {status.term}, not {leader.node} in {leader.term}"
            )
        elif (status.applied_index or 0) < (leader.committed_index or 0):
            missing[name] = f"has applied {status.applied_index} of {leader.committed_index} entries"
    return missing


def _require_jar() -> None:
    if not JAR.is_file():
        raise InfrastructureError(f"{JAR} is not built yet; `make {JAR.relative_to(JAR.parents[5])}` builds it")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
