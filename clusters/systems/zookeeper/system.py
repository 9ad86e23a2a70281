"""ZooKeeper as a system under test: a released version's own server and jars, without any code of Labrys.

Every node serves every request, so the final reads go through each node as it is. ZooKeeper has no request that moves the
leadership.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clusters.systems import jvm
from clusters.systems.answers import NoAnswer, NotSent, RefusedByCode
from clusters.systems.zookeeper.client import ROOT, ZooKeeperClient
from clusters.systems.zookeeper.connection import PORT, Connection, four_letters
from clusters.systems.zookeeper.options import ZooKeeperOptions
from clusters.systems.zookeeper.outcomes import ANSWERS
from harness.daemon import Daemon
from harness.errors import InputError
from harness.leaders import LEADER
from harness.service import NodeStatus, ReplicaState
from harness.system import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node

MODULE = Path(__file__).parent / "jars"
ROLE = "zookeeper"
PEER_PORT = 2888
ELECTION_PORT = 3888
CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
DATA_DIR = "/var/lib/labrys/zookeeper"
LOG_DIR = "/var/log/labrys/zookeeper"
LOG = f"{LOG_DIR}/zookeeper.log"
CONFIG = "/etc/labrys/zookeeper.cfg"
INIT_TICKS = 50
SYNC_TICKS = 10
LEAST_SESSION_TICKS = 2  # ZooKeeper grants no shorter sessions
SESSION_TICKS = 20  # nor longer ones
MAX_MESSAGE_BYTES = 8 << 20
JVM_FLAGS = (
    *jvm.JVM_FLAGS,
    "-Xms48m",
    "-Xmx96m",
    "-XX:ActiveProcessorCount=2",
    f"-Djute.maxbuffer={MAX_MESSAGE_BYTES}",
    "-Dzookeeper.jmx.log4j.disable=true",
    *jvm.SIMPLE_LOGGER,
)
JAVA = jvm.java("running ZooKeeper")
MAVEN = jvm.maven("getting ZooKeeper's jars")
EPOCH_BITS = 32
OLD = "3.4."  # these releases do not tell the zxid of a creation
SRVR = re.compile(r"^Zxid: 0x([0-9a-f]{1,16})$.*^Mode: (\w+)$", re.MULTILINE | re.DOTALL)
SYNCED = re.compile(r"^zk_synced_followers\s+(\d+)", re.MULTILINE)
DUMPED_AT_ONCE = 200
LINES = MappingProxyType(
    {
        "elected": LogLine(path=LOG, pattern="LEADING - LEADER ELECTION TOOK", meaning="a node has won an election"),
        "snapshot": LogLine(path=LOG, pattern="Snapshotting: 0x", meaning="a node begins to save a snapshot"),
        "truncates": LogLine(
            path=LOG, pattern="Truncating log to get in sync", meaning="a follower cuts changes off its log"
        ),
        "loads": LogLine(
            path=LOG, pattern="Getting a snapshot from leader", meaning="a follower gets a snapshot from the leader"
        ),
    }
)
TELLING = (
    "LEADING",
    "FOLLOWING",
    "LOOKING",
    "Not sufficient followers",
    "Exception when following the leader",
    "Getting a diff",
    "Getting a snapshot",
    "Truncating log",
    "Shutdown called",
)


class ZooKeeperSystem(jvm.JvmSystem):
    """ZooKeeper on a cluster."""

    name = "zookeeper"
    summary = "ZooKeeper 3.9, a tree of small files on Zab."
    Options = ZooKeeperOptions
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "register": "read is sync and getData, write is setData, cas is setData with the version of a getData",
            "set": "add creates a child for the element; read is sync and getChildren",
            "counter": "add is setData of the sum with the version of a getData; read is sync and getData",
            "lock": "acquire creates an ephemeral child with a number, release deletes it; the lowest holds the lock",
            "queue": "enqueue creates a child with a number, dequeue deletes the lowest, drain deletes all at once",
        }
    )
    software = "ZooKeeper"
    programs = (JAVA, MAVEN)
    fatal = (
        r"Digests are not matching",  # the state of a node differs from the leader's at the same change
        r"Unable to load database on disk",
    )
    role = ROLE
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    answers = ANSWERS
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"kazoo": "zookeeper"})
    telling_log_texts = TELLING
    dumps_replicas = True

    def __init__(self, cluster: Cluster, options: ZooKeeperOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options
        self._followed: dict[str, int] = {}  # for each node, the highest epoch that it reported while it followed
        self._clients = itertools.count(1)

    @classmethod
    def build(cls, options: ZooKeeperOptions, say: Callable[[str], object]) -> Artifact:
        """Gets the released jars of a version with Maven, if the cache does not have them; compiles nothing."""
        return jvm.released_jars("zookeeper", options.zookeeper_version, MODULE, tools=(MAVEN,)).artifact(say)

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the release."""
        return {"zookeeper": self.artifact.provenance.version}

    def initialise(self, node: Node) -> None:
        """Writes the number of the node, which must survive a power loss."""
        remote = self.cluster.remote(node)
        remote.run(f"mkdir -p {DATA_DIR}")
        remote.write(f"{DATA_DIR}/myid", f"{self._number(node)}\n")
        remote.run(f"sync {DATA_DIR}/myid {DATA_DIR}")

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        arguments = [
            "java", *JVM_FLAGS, f"-Duser.home={LOG_DIR}", "-cp", f"{self.artifact.there}/*", CLASS, CONFIG,
        ]  # fmt: skip
        return Daemon(
            role=ROLE,
            argv=arguments,
            pattern=rf"^java .*{re.escape(CLASS)}",
            ports=(PORT, ELECTION_PORT),
            leader_ports=(PEER_PORT,),
            data_dir=DATA_DIR,
            log_files=(LOG,),
            config_files={CONFIG: self.configuration(node)},
            log_clock=jvm.simple_log_clock(LOG),
        )

    def configuration(self, node: Node) -> str:
        """Returns the configuration file of a node."""
        lines = {
            "tickTime": self._options.tick_ms,
            "initLimit": INIT_TICKS,
            "syncLimit": SYNC_TICKS,
            "dataDir": DATA_DIR,
            "clientPort": PORT,
            "clientPortAddress": node.address,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": 0,
            "preAllocSize": 1024,
            "snapCount": self._options.snapshot_count,
            "forceSync": "yes" if self._options.force_sync else "no",
        } | {f"server.{self._number(each)}": f"{each.address}:{PEER_PORT}:{ELECTION_PORT}" for each in self.nodes}
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def client(self, process: int, node: Node, *, pinned: bool = False) -> ZooKeeperClient:  # noqa: ARG002 - all stay at their node
        """Returns the client of a process.

        Raises:
            InputError: The workload expects a session that ZooKeeper does not grant, or locks that outlive the session of a
                client.
        """
        session_ms = SESSION_TICKS * self._options.tick_ms
        if self.workload == "lock":
            if not self.workload_options.sessions:
                raise InputError("ZooKeeper frees the locks of a client when its session ends; leave out --no-sessions")
            least_s, most_s = LEAST_SESSION_TICKS * self._options.tick_ms / 1000, session_ms / 1000
            lease_s = most_s if self.workload_options.lease_s is None else self.workload_options.lease_s
            if not least_s <= lease_s <= most_s:
                raise InputError(
                    f"expected a lease from {least_s:g} to {most_s:g} seconds, as ZooKeeper grants sessions with --tick-ms "
                    f"{self._options.tick_ms}, found {lease_s:g}"
                )
            session_ms = round(lease_s * 1000)
        return ZooKeeperClient(
            node=node,
            workload=self.workload,
            reads=self._options.zookeeper_reads,
            fencing=self._options.fencing,
            session_ms=session_ms,
            owner=f"{process}/{next(self._clients)}",
            tells_creations=not self._options.zookeeper_version.startswith(OLD),
        )

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a node prints for `srvr`, which it answers alone; none while it takes part in an election.

        The term is the epoch in the zxid of the last change that it applied. A new leader can print an old epoch for a moment.
        An epoch in which the node once followed is not the one that it leads in: such a status has no term. A follower does not
        say whom it follows.
        """
        answer = SRVR.search(await _printed(node, "srvr", timeout_s))
        if answer is None:
            return ()
        zxid, leads = int(answer[1], 16), answer[2] == LEADER
        epoch = zxid >> EPOCH_BITS
        if not leads:
            self._followed[node.name] = max(epoch, self._followed.get(node.name, 0))
        known = epoch > self._followed.get(node.name, 0) if leads else epoch > 0
        return (
            NodeStatus(
                node=node.name,
                role=answer[2],
                term=epoch if known else None,
                leader=node.name if leads else None,
                applied_index=zxid,
            ),
        )

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each node lacks: a leader with which all other nodes are in sync."""
        leading = [status.node for status in statuses.values() if status is not None and status.role == LEADER]
        missing = {name: "is in no quorum" for name, status in statuses.items() if status is None}
        if len(leading) != 1:
            there = f"{' and '.join(leading)} lead" if leading else "nobody leads"
            return missing | {name: there for name, status in statuses.items() if status is not None}
        if missing:
            return missing
        synced = SYNCED.search(await _printed(self.node(leading[0]), "mntr", jvm.STATUS_TIMEOUT_S))
        expected = len(self.nodes) - 1
        if expected and (synced is None or int(synced[1]) != expected):
            return {leading[0]: f"leads, and {synced[1] if synced else 'no'} of {expected} followers are in sync"}
        return {}

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the znodes of the clients, from the node's own state: value, version, last change, and owner.

        Sessions are changes too, so the nodes' positions differ. Their states are compared at rest.
        """
        from kazoo.protocol.serialization import GetChildren, GetData  # noqa: PLC0415 - an extra

        connection = Connection(node.address, session_ms=SESSION_TICKS * self._options.tick_ms)
        state: dict[str, Any] = {}
        try:
            async with asyncio.timeout(timeout_s):
                paths = [ROOT]
                while paths:
                    some, paths = paths[:DUMPED_AT_ONCE], paths[DUMPED_AT_ONCE:]
                    found = await connection.calls([GetData(path, False) for path in some])  # noqa: FBT003
                    parents = []
                    for path, seen in zip(some, found, strict=True):
                        if isinstance(seen, RefusedByCode):
                            continue  # it vanished meanwhile; at rest none does
                        data, stat = seen
                        text = (data or b"").decode(errors="replace")
                        state[path] = [text, stat.version, stat.mzxid, stat.ephemeralOwner]
                        if stat.numChildren:
                            parents.append(path)
                    below = await connection.calls([GetChildren(path, False) for path in parents]) if parents else []  # noqa: FBT003
                    for path, children in zip(parents, below, strict=True):
                        if not isinstance(children, RefusedByCode):
                            paths += [f"{path}/{child}" for child in sorted(children)]
        except (NotSent, NoAnswer, RefusedByCode, TimeoutError):
            return None
        finally:
            await connection.close()
        del state[ROOT]  # reads with --zookeeper-reads quorum write it
        return ReplicaState(node=node.name, applied_index=None, state=state)

    def _number(self, node: Node) -> int:
        return 1 + [each.name for each in self.nodes].index(node.name)


async def _printed(node: Node, word: str, timeout_s: float) -> str:
    """Returns what a node prints for a command of four letters; empty if it does not answer in time."""
    try:
        async with asyncio.timeout(timeout_s):
            return await four_letters(node.address, word)
    except OSError:  # a TimeoutError is an OSError
        return ""
