"""RocketMQ's controllers as a system under test, on either consensus library.

A controller elects the master of each group of brokers. A node runs the release's own controller class and jars, with a
configuration file. Clients use RocketMQ's remoting protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.systems.dledger_protocol import Peer
from clusters.systems.leading import move_leadership
from clusters.systems.members import Members
from clusters.systems.remoting import RemotingError, asked_once
from clusters.systems.rocketmq import jars, jraft
from clusters.systems.rocketmq.client import ControllerClient, Controllers, SplitClient
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from clusters.systems.rocketmq.outcomes import REFUSALS, SUCCESS
from clusters.systems.rocketmq.requests import REQUESTS, metadata
from clusters.systems.waiting import wait_until_complete
from harness.daemon import Daemon
from harness.errors import NodeError
from harness.leaders import LEADER, leaders_by_term
from harness.process_clock import LogClock
from harness.service import NodeStatus, first_status
from harness.slowness import slowed
from harness.system import OneServiceSystem, Program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeVar

    from clusters.systems.remoting import Connection
    from harness.cluster import Cluster
    from harness.node import Node

    T = TypeVar("T")

JAVA_VERSION = 17
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
    "-Xms96m",
    "-Xmx96m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss256k",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:MaxMetaspaceSize=96m",
    "-XX:MaxDirectMemorySize=128m",
    "-XX:ActiveProcessorCount=2",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dtls.server.mode=disabled",  # otherwise each start makes an unused key, and logs an error
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
STATUS_TIMEOUT_S = 1.0
PROBED_GROUP = "labrys-ready"  # no broker registers in this group, so a leader that serves proposes the id 1
FATAL = (
    r"OutOfMemoryError",
    r"StackOverflowError",
    r"IllegalAccessError",
    r"NoClassDefFoundError",
    r"A fatal error has been detected",
    r"raft may stop working since some error occurs",  # jraft has given up on its state machine
    r"Handle FSMCallerImpl disruptor event error",  # its state machine cannot get past an entry of the log
)


class RocketMQController(OneServiceSystem):
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
    programs = (
        Program(
            name="java",
            package="openjdk-17-jre-headless",
            purpose="running RocketMQ",
            least_version=JAVA_VERSION,
            version_pattern=r'version "(\d+)',
        ),
        Program(name="mvn", package="maven", purpose="getting RocketMQ's jars", build_only=True),
    )
    role = ROLE
    refusals = REFUSALS
    reads_need_leader = True
    moves_leadership = True

    def __init__(self, cluster: Cluster, options: ControllerOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._members = Members(cluster.nodes, port=PORT, system="RocketMQ")
        self._options = options
        self._is_dledger = options.consensus is Consensus.DLEDGER
        self.controllers = Controllers(nodes=tuple(cluster.nodes), port=PORT)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the release and of its consensus library, and a hash of the jars."""
        version = self._options.rocketmq_version
        place = jars.folder(version)
        library = "dledger" if self._is_dledger else "jraft-core"
        found = [jar.stem.removeprefix(f"{library}-") for jar in place.glob(f"{library}-[0-9]*.jar")]
        return {"rocketmq": version, library: ", ".join(found) or "unknown", "jars": jars.digest(place)[:12]}

    def install(self, node: Node) -> None:
        """Copies the jars to the node, if they are not there yet.

        Raises:
            NodeError: The node has no Java of the required version, or the jars cannot be copied.
        """
        remote = self.cluster.remote(node)
        java = remote.run("java -version 2>&1", check=False)
        version = re.search(r'version "(\d+)', java.stdout)
        if java.status != 0 or version is None or int(version[1]) < JAVA_VERSION:
            found = f"Java {version[1]}" if version else "none"
            output = java.stdout.strip().partition("\n")[0] or "nothing"
            raise NodeError(
                node.name,
                f"expected Java {JAVA_VERSION} or later to run RocketMQ, found {found} (`java -version` prints: {output}); "
                f"`apt-get install {self.programs[0].package}` installs it",
            )
        jars.install(remote, self._options.rocketmq_version)

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        arguments = [
            "java", *JVM_FLAGS, f"-Duser.home={LOG_DIR}", f"-Drocketmq.home.dir={DATA_DIR}",
            "-cp", f"{jars.node_folder(self._options.rocketmq_version)}/*", CLASS, "-c", CONFIG,
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

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until all controllers name the same leader, and the leader serves."""
        await wait_until_complete(self, nodes, timeout_s, self._missing, system_name="RocketMQ's controller")

    async def _missing(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        answers = await asyncio.gather(*(first_status(self, node, slowed(STATUS_TIMEOUT_S)) for node in nodes))
        statuses = dict(zip([node.name for node in nodes], answers, strict=True))
        missing = lacking(statuses)
        if not missing:
            leader = leaders_by_term(status for status in answers if status is not None)[0].node
            if not await self._serves(self._node(leader)):
                missing = {leader: "leads, but does not serve yet"}
        return missing, [node for node in nodes if statuses[node.name] is None]

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns patterns of the errors of a broken JVM, and of a broken state machine of jraft."""
        return FATAL

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

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """Moves the leadership with the library's own request; see `move_leadership`."""

        async def transfer(leader: NodeStatus, limit_s: float) -> None:
            await self._transfer(self._node(leader.node), leader.term, node, limit_s)

        return await move_leadership(node.name, timeout_s, serving=self._serving, transfer=transfer)

    async def _transfer(self, leader: Node, term: int | None, to: Node, limit_s: float) -> None:
        """Requests that a leader transfers its leadership. The caller must check who leads afterwards."""
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

    async def _serving(self) -> NodeStatus | None:
        """Returns the leader with the highest term that serves; None if no leader serves."""
        answers = await asyncio.gather(
            *(first_status(self, node, slowed(STATUS_TIMEOUT_S)) for node in self.controllers.nodes)
        )
        for status in leaders_by_term(status for status in answers if status is not None):
            if await self._serves(self._node(status.node)):
                return status
        return None

    async def _serves(self, node: Node) -> bool:
        """Returns whether a controller answers a read that only a leader answers."""
        answer = await self._ask(
            node, slowed(STATUS_TIMEOUT_S), lambda connection: REQUESTS["next"].ask(connection, PROBED_GROUP, None)
        )
        return answer is not None and answer.status == SUCCESS

    async def _ask(self, node: Node, timeout_s: float, question: Callable[[Connection], Awaitable[T]]) -> T | None:
        """Sends a request to a controller over a new connection. Returns None if no proper answer comes in time."""
        return await asked_once(self.controllers.connect, node, timeout_s, question)

    def _node(self, name: str) -> Node:
        return next(node for node in self.controllers.nodes if node.name == name)

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
