"""RocketMQ's controllers as a system under test, on either consensus library.

A controller elects the master of each group of brokers. A node runs the release's own controller class and jars, with a
configuration file. Clients use RocketMQ's remoting protocol.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.systems import jvm
from clusters.systems.dledger_protocol import Peer
from clusters.systems.members import Members
from clusters.systems.remoting import RemotingError, asked_once
from clusters.systems.rocketmq import jraft
from clusters.systems.rocketmq.client import ControllerClient, Controllers, SplitClient
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from clusters.systems.rocketmq.outcomes import REFUSALS, SUCCESS
from clusters.systems.rocketmq.requests import REQUESTS, metadata
from harness.daemon import Daemon
from harness.leaders import LEADER
from harness.process_clock import LogClock
from harness.service import NodeStatus
from harness.slowness import slowed
from harness.system import LogLine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeVar

    from clusters.systems.remoting import Connection
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node

    T = TypeVar("T")

MODULE = Path(__file__).parent / "jars"
ROLE = "controller"
GROUP = "labrys"
PORT = 9878
JRAFT_PORT = 9880
CLASS = "org.apache.rocketmq.controller.ControllerStartup"
DATA_DIR = "/var/lib/labrys/rocketmq-controller"
LOG_DIR = "/var/log/labrys/rocketmq-controller"
CONFIG = "/etc/labrys/rocketmq-controller.conf"
LAUNCH_LOG = f"{LOG_DIR}/launch.log"  # the output of the JVM
OWN_LOGS = f"{LOG_DIR}/logs/rocketmqlogs"  # RocketMQ's path below `user.home`, which is LOG_DIR
LOGS = (LAUNCH_LOG, *(f"{OWN_LOGS}/{name}.log" for name in ("controller", "controller_default", "dledger", "jraft")))
LOG_ZONE_S = 8 * 3600  # RocketMQ writes the time of GMT+8 into its logs, wherever it runs
JVM_FLAGS = (
    *jvm.JVM_FLAGS,
    "-Xms96m",
    "-Xmx96m",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:MaxMetaspaceSize=96m",
    "-XX:MaxDirectMemorySize=128m",
    "-XX:ActiveProcessorCount=2",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    # Hessian writes the snapshots of a controller on jraft, and needs access to these packages. Without it, the first snapshot
    # fails, and every controller stops serving for good.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
)
MAPPED_FILE_BYTES = 8 * 1024 * 1024
PROBED_GROUP = "labrys-ready"  # no broker registers in this group, so a leader that serves proposes the id 1
JAVA = jvm.java("running RocketMQ")
MAVEN = jvm.maven("getting RocketMQ's jars")

# Lines with which faults can begin. Each of the two libraries has its own.
LINES = MappingProxyType(
    {
        "elected": LogLine(
            path=f"{OWN_LOGS}/dledger.log",
            pattern=r"\[VOTE_RESULT\] has been elected to be the leader",
            meaning="with dledger, a controller has the votes of a majority",
        ),
        "truncates": LogLine(
            path=f"{OWN_LOGS}/dledger.log",
            pattern=r"\[HandleDoTruncate\]",
            meaning="with dledger, a controller cuts entries off its log",
        ),
        "jraft-elected": LogLine(
            path=f"{OWN_LOGS}/jraft.log",
            pattern="become leader of group",
            meaning="with jraft, a controller becomes the leader",
        ),
        "jraft-snapshot": LogLine(
            path=f"{OWN_LOGS}/controller.log",
            pattern="Save snapshot, path=",
            meaning="with jraft, a controller begins to save a snapshot",
        ),
        "jraft-loads": LogLine(
            path=f"{OWN_LOGS}/controller.log",
            pattern="Load snapshot from ",
            meaning="with jraft, a controller loads a snapshot",
        ),
    }
)


class RocketMQController(jvm.LedJvmSystem):
    """Controllers of RocketMQ, on a cluster.

    Attributes:
        controllers: The controllers of the nodes.
    """

    name = "rocketmq-controller"
    summary = "The controllers of RocketMQ 5, which elect the master of each broker group."
    Options = ControllerOptions
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "broker-id": "apply, next, replica and state are the requests 1013, 1012, 1004 and 1006; a key is a broker group",
            "elect": "elect is the request 1002, heartbeat is 904, and the others are as for broker-id",
            "sync-state-set": "alter is the request 1001, leave closes connections of heartbeats, the others are as for elect",
            "controller": "register is the request 1003, and the others are as for sync-state-set",
        }
    )
    software = "RocketMQ's controller"
    programs = (JAVA, MAVEN)
    fatal = (
        r"raft may stop working since some error occurs",  # jraft has given up on its state machine
        r"Handle FSMCallerImpl disruptor event error",  # its state machine cannot get past an entry of the log
    )
    role = ROLE
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    refusals = REFUSALS

    def __init__(self, cluster: Cluster, options: ControllerOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._members = Members(cluster.nodes, port=PORT, system="RocketMQ")
        self._options = options
        self._is_dledger = options.consensus is Consensus.DLEDGER
        self.controllers = Controllers(nodes=tuple(cluster.nodes), port=PORT)

    @classmethod
    def build(cls, options: ControllerOptions, say: Callable[[str], object]) -> Artifact:
        """Gets the released jars of a version with Maven, if the cache does not have them; compiles nothing."""
        return jvm.released_jars("rocketmq", options.rocketmq_version, MODULE, tools=(MAVEN,)).artifact(say)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the release and of its consensus library."""
        library = "dledger" if self._is_dledger else "jraft-core"
        found = [jar.stem.removeprefix(f"{library}-") for jar in self.artifact.path.glob(f"{library}-[0-9]*.jar")]
        return {"rocketmq": self.artifact.provenance.version, library: ", ".join(found) or "unknown"}

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        arguments = [
            "java", *JVM_FLAGS, f"-Duser.home={LOG_DIR}", f"-Drocketmq.home.dir={DATA_DIR}",
            "-cp", f"{self.artifact.there}/*", CLASS, "-c", CONFIG,
        ]  # fmt: skip
        return Daemon(
            role=ROLE,
            argv=arguments,
            pattern=rf"^java .*{re.escape(CLASS)}",
            ports=(PORT,) if self._is_dledger else (PORT, JRAFT_PORT),
            data_dir=DATA_DIR,
            log_files=LOGS,
            config_files={CONFIG: self.configuration(node)},
            log_clock=LogClock(
                path=f"{OWN_LOGS}/controller.log",
                pattern=r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ",
                form="%Y-%m-%d %H:%M:%S",
                resolution_s=1.0,
                utc_offset_s=LOG_ZONE_S,
            ),
        )

    def configuration(self, node: Node) -> str:
        """Returns the configuration file of a node."""
        options, nodes = self._options, self.controllers.nodes
        lines = {
            "controllerStorePath": f"{DATA_DIR}/store",
            "mappedFileSize": MAPPED_FILE_BYTES,
            "scanInactiveMasterInterval": options.scan_interval_ms,
            "scanNotActiveBrokerInterval": options.scan_interval_ms,
        }
        if self._is_dledger:
            lines |= {
                "controllerType": "DLedger",
                "controllerDLegerGroup": GROUP,
                "controllerDLegerPeers": self._members.text,
                "controllerDLegerSelfId": self._members.id_of(node.name),
                "processReadEvent": str(options.process_read_event).lower(),
            }
        else:
            lines |= {
                "controllerType": "jRaft",
                "listenPort": PORT,
                "jRaftGroupId": GROUP,
                "jRaftServerId": f"{node.address}:{JRAFT_PORT}",
                "jRaftInitConf": ",".join(f"{each.address}:{JRAFT_PORT}" for each in nodes),
                "jRaftControllerRPCAddr": ",".join(f"{each.address}:{PORT}" for each in nodes),
                "jRaftSnapshotIntervalSecs": options.snapshot_interval_s,
                "jRaftElectionTimeoutMs": options.election_timeout_ms,
            }
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each controller lacks: the leader that all name, and that serves."""
        missing = lacking(statuses)
        leading = [status for status in statuses.values() if status is not None and status.role == LEADER]
        if not missing and not await self.is_serving(leading[0]):
            return {leading[0].node: "leads, but does not serve yet"}
        return missing

    def client(self, process: int, node: Node, *, pinned: bool = False) -> ControllerClient | SplitClient:
        """Returns the client of a process."""

        def make(*, follows: bool) -> ControllerClient:
            return ControllerClient(controllers=self.controllers, node=node, follows=follows)

        if self._options.pinned_reads and not pinned:
            return SplitClient(reader=make(follows=False), other=make(follows=True))
        return make(follows=not pinned and self._options.routing.follows(process, len(self.controllers.nodes)))

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a controller's status (request 1005); none if it does not answer in time. On jraft, the term is None."""

        async def ask(connection: Connection) -> NodeStatus:
            view = await metadata(connection)
            return NodeStatus(
                node=node.name,
                role=LEADER if view.leads else "follower",
                term=await self._peer(connection, node).term() if self._is_dledger else None,
                leader=self.controllers.at(view.leader),
                details=dict(view.details),
            )

        status = await self._ask(node, timeout_s, ask)
        return () if status is None else (status,)

    async def transfer(self, leader: Node, term: int | None, to: Node, limit_s: float) -> None:
        """Requests a transfer with the library's own request."""
        if self._is_dledger:
            if term is not None:
                await self._ask(
                    leader, limit_s, lambda connection: self._peer(connection, leader).transfer(to.name, term)
                )
            return
        with contextlib.suppress(RemotingError):
            await jraft.transfer(
                leader.address, JRAFT_PORT, group=GROUP, to=f"{to.address}:{JRAFT_PORT}", timeout_s=limit_s
            )

    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether a controller answers a read that only a leader answers."""
        answer = await self._ask(
            self.node(status.node),
            slowed(jvm.STATUS_TIMEOUT_S),
            lambda connection: REQUESTS["next"].ask(connection, PROBED_GROUP, None),
        )
        return answer is not None and answer.status == SUCCESS

    async def _ask(self, node: Node, timeout_s: float, question: Callable[[Connection], Awaitable[T]]) -> T | None:
        """Sends a request to a controller over a new connection. Returns None if no proper answer comes in time."""
        return await asked_once(self.controllers.connect, node, timeout_s, question)

    def _peer(self, connection: Connection, node: Node) -> Peer:
        return Peer(connection, group=GROUP, node=node.name, members=self._members)


def lacking(statuses: Mapping[str, NodeStatus | None]) -> dict[str, str]:
    """Returns what each node lacks to serve together with the others; empty if they serve.

    Args:
        statuses: The status of each node; None if the node does not answer.
    """
    leading = [status.node for status in statuses.values() if status is not None and status.role == LEADER]
    missing = {}
    for name, status in statuses.items():
        if status is None:
            missing[name] = "does not answer"
        elif len(leading) != 1:
            leaders = f"{' and '.join(leading)} lead" if leading else "nobody leads"
            missing[name] = f"sees {status.leader or 'no leader'}; {leaders}"
        elif status.leader != leading[0]:
            missing[name] = f"sees {status.leader or 'no leader'}, not {leading[0]}"
    return missing
