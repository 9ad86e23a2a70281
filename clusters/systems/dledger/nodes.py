"""The base class of the systems on the DLedger library: it installs and starts nodes, and asks for their status.

A node runs one process. Labrys ends it with SIGKILL. An orderly shutdown of the library takes five seconds, and its guarantees
must hold without one.
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
from clusters.systems.dledger.routing import Group
from clusters.systems.dledger_protocol import Peer
from clusters.systems.leading import move_leadership
from clusters.systems.members import Members
from clusters.systems.remoting import asked_once
from clusters.systems.waiting import wait_until_complete
from harness.daemon import Daemon
from harness.errors import InfrastructureError, NodeError
from harness.leaders import leaders_by_term
from harness.process_clock import LogClock
from harness.service import first_status
from harness.slowness import slowed
from harness.system import OneServiceSystem, Program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeVar

    from harness.cluster import Cluster
    from harness.node import Node
    from harness.service import NodeStatus

    T = TypeVar("T")

ROLE = "node"
GROUP = "labrys"
PORT = 20911
JAR = Path(__file__).parent / "node" / "target" / "dledger-node.jar"
NODE_JAR = "/opt/labrys/dledger-node.jar"
DATA_DIR = "/var/lib/labrys/dledger"
LOG_DIR = "/var/log/labrys/dledger"
LAUNCH_LOG = f"{LOG_DIR}/launch.log"  # the output of the JVM
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
    "-Dtls.server.mode=disabled",  # otherwise each start makes an unused RSA key, which takes two seconds of CPU
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


# Lines of the library about elections, roles, logs that are cut, and followers that get nothing.
TELLING = (
    "[ChangeRoleTo",
    "[INCREASE_TERM]",
    "[VOTE_RESULT] has been elected",
    "[HeartBeatTimeOut]",
    "handleLeadershipTransfer",
    "[TRUNCATE]",
    "[PushFallBehind]",
    "Reset write index",
    "received leader",
)


class NodeOptions(Protocol):
    """The options that every system on this library has."""

    @property
    def heartbeat_ms(self) -> int: ...  # noqa: D102 - the option has a help text

    @property
    def vote_ms(self) -> int: ...  # noqa: D102

    @property
    def data_file_bytes(self) -> int: ...  # noqa: D102


class DLedgerNodes(OneServiceSystem):
    """Nodes of the library on a cluster. A subclass adds arguments and clients, and checks whether a leader serves.

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
    role = ROLE
    refusals = REFUSALS
    telling_log_texts = TELLING
    reads_need_leader = True
    moves_leadership = True
    one_leader_per_term = (
        "DLedger implements Raft, which has at most one leader in a term, and a node reads its role between two reads of the "
        "same term."
    )

    def __init__(self, cluster: Cluster, options: NodeOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        nodes = tuple(cluster.nodes)
        members = Members(nodes, port=PORT, system="DLedger")
        self.group = Group(name=GROUP, nodes=nodes, port=PORT, members=members)

    @abc.abstractmethod
    def arguments(self) -> Sequence[str]:
        """Returns the system's own arguments for the command line of a node."""

    @abc.abstractmethod
    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether a leader serves: whether it has committed an entry of its own term.

        Args:
            status: The status of a node that reports itself as the leader.
        """

    def versions(self) -> Mapping[str, str]:
        """Returns the library's version in the jar, and the jar's hash."""
        _require_jar()
        with zipfile.ZipFile(JAR) as jar:
            manifest = jar.read("META-INF/MANIFEST.MF").decode()
        fields = dict(line.split(": ", 1) for line in manifest.splitlines() if ": " in line)
        return {"dledger": fields.get("DLedger-Version", "unknown"), "dledger-node": _sha256(JAR)[:12]}

    def install(self, node: Node) -> None:
        """Copies the jar to the node, if it is not there yet. A node needs its own copy: a change of the jar breaks a JVM.

        If the jar is there, an earlier installation checked Java, so only the existence of the program is checked again.

        Raises:
            InfrastructureError: The jar is not built.
            NodeError: The node has no Java.
        """
        _require_jar()
        remote = self.cluster.remote(node)
        digest = _sha256(JAR)
        is_same = '[ "$(sha256sum < {} 2>/dev/null)" = ' + shlex.quote(f"{digest}  -") + " ]"
        # A local node sees this machine's files, and copies the jar from there.
        is_installed, is_visible = is_same.format(NODE_JAR), is_same.format(shlex.quote(str(JAR)))
        prepared = remote.run(
            f"mkdir -p {Path(NODE_JAR).parent} {LOG_DIR}; command -v java >/dev/null && {is_installed}", check=False
        )
        if prepared.status == 0:
            return
        java = remote.run("java -version 2>&1", check=False)
        if java.status != 0:
            raise NodeError(node.name, f"expected Java 17 or later to run DLedger, found: {java.stdout.strip()}")
        copied = remote.run(f"{is_visible} && cp {shlex.quote(str(JAR))} {NODE_JAR}", check=False)
        if copied.status != 0:
            remote.put(JAR, NODE_JAR)

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        members = self.group.members
        arguments = [
            "java", *JVM_FLAGS, "-jar", NODE_JAR, "--group", GROUP, "--self", members.id_of(node.name), "--peers", members.text,
            "--dir", DATA_DIR, "--log-dir", LOG_DIR, "--heartbeat-ms", str(self.options.heartbeat_ms),
            "--vote-ms", str(self.options.vote_ms),
            "--data-file-bytes", str(self.options.data_file_bytes), "--index-file-entries", str(INDEX_FILE_ENTRIES),
            *self.arguments(),
        ]  # fmt: skip
        return Daemon(
            role=ROLE,
            argv=arguments,
            pattern=PATTERN,
            ports=(PORT,),
            data_dir=DATA_DIR,
            log_files=LOGS,
            log_clock=LogClock(path=LOG, pattern=r"(\S+Z) ", form="%Y-%m-%dT%H:%M:%S.%f%z", resolution_s=0.001),
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until one leader serves, and all nodes follow it and have applied the entries that it has committed.

        Nodes that do not report their indexes need not have applied them.
        """
        await wait_until_complete(self, nodes, timeout_s, self._missing, system_name="DLedger")

    async def _missing(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        statuses = await self._statuses(nodes)
        missing = lacking(statuses, await self.serving(statuses))
        return missing, [node for node in nodes if statuses[node.name] is None]

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns patterns of the errors of a broken JVM, and of the node's line after the library gave up."""
        return FATAL

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """See `move_leadership`."""

        async def serving() -> NodeStatus | None:
            return await self.serving(await self._statuses(self.group.nodes))

        async def transfer(leader: NodeStatus, limit_s: float) -> None:
            if leader.term is not None:
                old = next(peer for peer in self.group.nodes if peer.name == leader.node)
                await self.ask(old, limit_s, functools.partial(Peer.transfer, to=node.name, term=leader.term))

        return await move_leadership(node.name, timeout_s, serving=serving, transfer=transfer)

    async def serving(self, statuses: Mapping[str, NodeStatus | None]) -> NodeStatus | None:
        """Returns the leader with the highest term that serves; None if no leader serves."""
        for status in leaders_by_term(status for status in statuses.values() if status is not None):
            if await self.is_serving(status):
                return status
        return None

    async def _statuses(self, nodes: Sequence[Node]) -> dict[str, NodeStatus | None]:
        calls = (first_status(self, node, slowed(STATUS_TIMEOUT_S)) for node in nodes)
        return dict(zip([node.name for node in nodes], await asyncio.gather(*calls), strict=True))

    async def ask(self, node: Node, timeout_s: float, question: Callable[[Peer], Awaitable[T]]) -> T | None:
        """Sends a request to a node over a new connection. Returns None if no proper answer comes in time."""
        return await asked_once(self.group.connect, node, timeout_s, question)


def lacking(statuses: Mapping[str, NodeStatus | None], leader: NodeStatus | None) -> dict[str, str]:
    """Returns what each node lacks to serve together with the others; empty if they serve.

    Args:
        statuses: The status of each node; None if the node does not answer.
        leader: The leader that serves, if there is one.
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
        # A leader that serves has committed an empty entry of its own. If that is the entry 0, there is nothing to apply, and
        # followers learn of the commit up to a second later.
        elif (leader.committed_index or 0) > 0 and (status.applied_index or 0) < (leader.committed_index or 0):
            missing[name] = f"has applied {status.applied_index} of {leader.committed_index} entries"
    return missing


def _require_jar() -> None:
    if JAR.is_file():
        return
    if (JAR.parents[1] / "src").is_dir():  # a clone
        raise InfrastructureError(f"{JAR} is not built yet; `make {JAR.relative_to(JAR.parents[5])}` builds it")
    raise InfrastructureError(
        f"{JAR} is missing: this Labrys was installed without DLedger's node. "
        "Install the wheel that `make dist` makes in a clone of Labrys (docs/install.md)"
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
