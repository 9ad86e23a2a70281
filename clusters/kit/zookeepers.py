"""ZooKeeper's servers as a service, for all systems that keep something in ZooKeeper."""

from __future__ import annotations

import asyncio
import functools
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from harness.daemon import Daemon
from harness.leaders import LEADER
from harness.service import NodeStatus
from harness.traits import LogLine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node

ROLE: Final = "zookeeper"
PORT: Final = 2181
PEER_PORT: Final = 2888
ELECTION_PORT: Final = 3888
CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
DATA_DIR: Final = "/var/lib/labrys/zookeeper"
LOG_DIR: Final = "/var/log/labrys/zookeeper"
LOG: Final = f"{LOG_DIR}/zookeeper.log"
CONFIG: Final = "/etc/labrys/zookeeper.cfg"
INIT_TICKS: Final = 50
SYNC_TICKS: Final = 10
SESSION_TICKS: Final = 20  # sessions last at most so long
MAX_MESSAGE_BYTES: Final = 8 << 20
JVM_FLAGS: Final = (
    *jvm.JVM_FLAGS,
    "-Xms48m",
    "-Xmx96m",
    "-XX:ActiveProcessorCount=2",
    f"-Djute.maxbuffer={MAX_MESSAGE_BYTES}",
    "-Dzookeeper.jmx.log4j.disable=true",
    *jvm.SIMPLE_LOGGER,
)
EPOCH_BITS: Final = 32
SRVR: Final = re.compile(r"^Zxid: 0x([0-9a-f]{1,16})$.*^Mode: (\w+)$", re.MULTILINE | re.DOTALL)
ALONE: Final = "standalone"  # what a server without others says of itself
SYNCED: Final = re.compile(r"^zk_synced_followers\s+(\d+)", re.MULTILINE)
FOUR_LETTERS: Final = 4
LINES: Final = MappingProxyType(
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
TELLING: Final = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the servers are configured.

    Attributes:
        tick_ms: Milliseconds of a tick; sessions last at most `SESSION_TICKS` ticks.
        snapshot_count: The approximate number of changes between snapshots.
        force_sync: Whether a server syncs its log to the disk before it acknowledges a change.
        trust_empty_snapshot: Whether a server starts that has a log and no snapshot.
    """

    tick_ms: int = 200
    snapshot_count: int = 10_000
    force_sync: bool = True
    trust_empty_snapshot: bool = False


class ZooKeeperServers(jvm.JvmGroup):
    """The servers of ZooKeeper, one on each node of the service.

    Attributes:
        settings: How they are configured.
    """

    role = ROLE
    software = "ZooKeeper"
    every_node_returns = "A server that starts again gets from the leader what it lacks."
    settings = Settings()

    def initialise(self, node: Node) -> None:
        """Writes the number of the node, which must survive a power loss."""
        remote = self.system.cluster.remote(node)
        remote.run(f"mkdir -p {DATA_DIR}")
        remote.write(f"{DATA_DIR}/myid", f"{self._number(node)}\n")
        remote.run(f"sync {DATA_DIR}/myid {DATA_DIR}")

    def daemon(self, node: Node) -> Daemon:
        """Returns the server of a node."""
        several = len(self.nodes) > 1
        arguments = [
            "java", *JVM_FLAGS, f"-Duser.home={LOG_DIR}", "-cp", f"{self.system.artifact.there}/*", CLASS, CONFIG,
        ]  # fmt: skip
        return Daemon(
            role=ROLE,
            argv=arguments,
            pattern=rf"^java .*{re.escape(CLASS)}",
            ports=(PORT, ELECTION_PORT) if several else (PORT,),
            leader_ports=(PEER_PORT,) if several else (),
            data_dir=DATA_DIR,
            log_files=(LOG,),
            config_files={CONFIG: self.configuration(node)},
            java_packages=("org.apache.zookeeper",),
            log_clock=jvm.simple_log_clock(LOG),
        )

    def configuration(self, node: Node) -> str:
        """Returns the configuration file of a node."""
        lines = {
            "tickTime": self.settings.tick_ms,
            "initLimit": INIT_TICKS,
            "syncLimit": SYNC_TICKS,
            "dataDir": DATA_DIR,
            "clientPort": PORT,
            "clientPortAddress": node.address,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": 0,
            "preAllocSize": 1024,
            "snapCount": self.settings.snapshot_count,
            "forceSync": "yes" if self.settings.force_sync else "no",
            **({"snapshot.trust.empty": "true"} if self.settings.trust_empty_snapshot else {}),
        } | {f"server.{self._number(other)}": f"{other.address}:{PEER_PORT}:{ELECTION_PORT}" for other in self.nodes}
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a node prints for `srvr`, which it answers alone; none while it takes part in an election.

        The term is the epoch in the zxid of the last change that it applied. A new leader can print an old epoch for a moment.
        An epoch in which the node once followed is not the one that it leads in: such a status has no term. A follower does not
        say whom it follows.
        """
        answer = SRVR.search(await _printed(node, "srvr", timeout_s))
        if answer is None:
            return ()
        role = LEADER if answer[2] == ALONE else answer[2]
        zxid, leads = int(answer[1], 16), role == LEADER
        epoch = zxid >> EPOCH_BITS
        if not leads:
            self._followed[node.name] = max(epoch, self._followed.get(node.name, 0))
        known = epoch > self._followed.get(node.name, 0) if leads else epoch > 0
        return (
            NodeStatus(
                node=node.name,
                role=role,
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
            why = f"{' and '.join(leading)} lead" if leading else "nobody leads"
            return missing | {name: why for name, status in statuses.items() if status is not None}
        if missing:
            return missing
        synced = SYNCED.search(await _printed(self.node(leading[0]), "mntr", jvm.STATUS_TIMEOUT_S))
        expected = len(self.nodes) - 1
        if expected and (synced is None or int(synced[1]) != expected):
            return {leading[0]: f"leads, and {synced[1] if synced else 'no'} of {expected} followers are in sync"}
        return {}

    @functools.cached_property
    def _followed(self) -> dict[str, int]:
        """For each node, the highest epoch that it reported while it followed."""
        return {}

    def _number(self, node: Node) -> int:
        return 1 + [other.name for other in self.nodes].index(node.name)


async def four_letters(address: str, word: str) -> str:
    """Sends a command of four letters to a node, and returns what it prints.

    Raises:
        OSError: The node does not answer.
    """
    reader, writer = await asyncio.open_connection(address, PORT)
    try:
        writer.write(word.encode()[:FOUR_LETTERS])
        return (await reader.read(1 << 16)).decode(errors="replace")
    finally:
        writer.close()


async def _printed(node: Node, word: str, timeout_s: float) -> str:
    """Returns what a node prints for a command of four letters; empty if it does not answer in time."""
    try:
        async with asyncio.timeout(timeout_s):
            return await four_letters(node.address, word)
    except OSError:  # a TimeoutError is an OSError
        return ""
