"""The base class of the systems on the DLedger library: it builds, installs and starts nodes, and asks for their status.

A node runs one process. Labrys ends it with SIGKILL. An orderly shutdown of the library takes five seconds, and its guarantees
must hold without one.
"""

from __future__ import annotations

import abc
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Protocol

from clusters.kit import jvm
from clusters.kit.exchange import asked_once
from clusters.systems.dledger import mends
from clusters.systems.dledger.members import Members
from clusters.systems.dledger.options import VERSION
from clusters.systems.dledger.outcomes import REFUSALS
from clusters.systems.dledger.routing import Group
from harness.daemon import Daemon
from harness.process_clock import LogClock
from harness.traits import LogLine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeVar

    from clusters.systems.dledger.protocol import Peer
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.service import NodeStatus

    T = TypeVar("T")

ROLE = "node"
GROUP = "labrys"
PORT = 20911
# The versions of RocketMQ's remoting, by those of the library. RocketMQ 5.3.3 uses DLedger 0.3.1.2.
REMOTING = MappingProxyType({VERSION: "5.1.0", "0.3.1.2": "5.3.3"})
JAR = "dledger-node.jar"
SOURCES = Path(__file__).parent / "node"
PACKAGED = Path(__file__).parent / "packaged"  # a wheel has the artifact there
DATA_DIR = "/var/lib/labrys/dledger"
LOG_DIR = "/var/log/labrys/dledger"
LAUNCH_LOG = f"{LOG_DIR}/launch.log"  # the output of the JVM
LOG = f"{LOG_DIR}/node.0.log"
LOGS = (LAUNCH_LOG, LOG, *(f"{LOG_DIR}/node.{age}.log" for age in (1, 2, 3)))
PATTERN = r"^java .*dledger-node\.jar"
JVM_FLAGS = (
    *jvm.JVM_FLAGS,
    "-Xms32m",
    "-Xmx96m",
    "-XX:MaxDirectMemorySize=64m",
    "-XX:ReservedCodeCacheSize=32m",
    "-Dio.netty.allocator.type=unpooled",
)
INDEX_FILE_ENTRIES = 32_768
JAVA = jvm.java("running DLedger")
MAVEN = jvm.maven("building DLedger's node")
COMPILER = jvm.compiler("building DLedger's node")

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


# Lines of the library with which faults can begin.
LINES = MappingProxyType(
    {
        "elected": LogLine(
            path=LOG,
            pattern=r"\[VOTE_RESULT\] has been elected to be the leader",
            meaning="a node has the votes of a majority; it leads at once, and has committed nothing in its term yet",
        ),
        "election": LogLine(
            path=LOG, pattern=r"\[ChangeRoleToCandidate\]", meaning="a node becomes a candidate for an election"
        ),
        "follows": LogLine(path=LOG, pattern=r"\[ChangeRoleToFollower\]", meaning="a node becomes a follower"),
        "truncates": LogLine(path=LOG, pattern=r"\[TRUNCATE\]", meaning="a follower cuts entries off its log"),
    }
)


class NodeOptions(Protocol):
    """The options that every system on this library has."""

    @property
    def heartbeat_ms(self) -> int: ...  # noqa: D102 - the option has a help text

    @property
    def vote_ms(self) -> int: ...  # noqa: D102

    @property
    def data_file_bytes(self) -> int: ...  # noqa: D102

    @property
    def mend(self) -> str: ...  # noqa: D102

    @property
    def library_version(self) -> str: ...  # noqa: D102


class DLedgerNodes(jvm.LedJvmSystem):
    """Nodes of the library on a cluster. A subclass adds arguments and clients, and checks whether a leader serves.

    Attributes:
        group: The group of the nodes.
    """

    software = "DLedger"
    programs = (JAVA, MAVEN, COMPILER)
    fatal = (
        r"FATAL: ",
        r"currTerm \d+ has leader \S+, but received leader",  # two leaders in one term
    )
    role = ROLE
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    refusals = REFUSALS
    telling_log_texts = TELLING
    every_node_returns = "In Raft, a follower gets from the leader what its log lacks (section 5.3 of its paper)."
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

    @classmethod
    def build(cls, options: NodeOptions, say: Callable[[str], object]) -> Artifact:
        """Builds the jar of the node with Maven, if neither the cache nor the installed wheel has it, and mends its library."""
        version = options.library_version
        released = jvm.maven_build(
            "dledger-node", version, SOURCES, "package", "-DskipTests", f"-Ddledger.version={version}",
            f"-Dremoting.version={REMOTING[version]}", product=f"target/{JAR}",
            files=("pom.xml", "src/main/**/*", f"src/{version}/**/*"), tools=(MAVEN, COMPILER), shelf=PACKAGED,
        ).artifact(say)  # fmt: skip
        known = mends.BY_VERSION[version]
        numbers = known.chosen(options.mend)
        return known.mended(released, JAR, numbers, say) if numbers else released

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the library."""
        return {"dledger": self.artifact.provenance.version}

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        return Daemon(
            role=ROLE,
            argv=[
                "java",
                *JVM_FLAGS,
                "-jar",
                f"{self.artifact.there}/{JAR}",
                *self.options_of(node, DATA_DIR, LOG_DIR),
            ],
            pattern=PATTERN,
            ports=(PORT,),
            data_dir=DATA_DIR,
            log_files=LOGS,
            java_packages=("io.openmessaging.storage.dledger",),
            log_clock=LogClock(path=LOG, pattern=r"(\S+Z) ", form="%Y-%m-%dT%H:%M:%S.%f%z", resolution_s=0.001),
        )

    def options_of(self, node: Node, directory: str, log_directory: str) -> Sequence[str]:
        """Returns the command line of a node, after the program, with the folders of its data and its logs."""
        members = self.group.members
        return [
            "--group", GROUP, "--self", members.id_of(node.name), "--peers", members.text,
            "--dir", directory, "--log-dir", log_directory, "--heartbeat-ms", str(self.options.heartbeat_ms),
            "--vote-ms", str(self.options.vote_ms),
            "--data-file-bytes", str(self.options.data_file_bytes), "--index-file-entries", str(INDEX_FILE_ENTRIES),
            *self.arguments(),
        ]  # fmt: skip

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each node lacks: a leader that serves, whom it follows, and the entries that this leader has committed.

        Nodes that do not report their indexes need not have applied them.
        """
        return lacking(statuses, await self.serving(statuses))

    async def transfer(self, leader: Node, term: int | None, to: Node, limit_s: float) -> None:
        """Requests a transfer with the library's own request."""
        if term is not None:
            await self.ask(leader, limit_s, lambda peer: peer.transfer(to.name, term))

    async def ask(self, node: Node, timeout_s: float, question: Callable[[Peer], Awaitable[T]]) -> T | None:
        """Sends a request to a node over a new connection. Returns None if no proper answer comes in time."""
        return await asked_once(self.group.connect(node, timeout_s), question, timeout_s)


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
