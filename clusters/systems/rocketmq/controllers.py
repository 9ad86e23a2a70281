"""The processes of controllers, on either consensus library: their configuration, their status, and whether they serve.

The system of controllers alone and the system with brokers run the same processes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from clusters.kit.exchange import asked_once
from clusters.systems.dledger.members import Members
from clusters.systems.dledger.protocol import Peer
from clusters.systems.rocketmq import settings
from clusters.systems.rocketmq.client import Controllers
from clusters.systems.rocketmq.options import Consensus
from clusters.systems.rocketmq.outcomes import SUCCESS
from clusters.systems.rocketmq.requests import REQUESTS, metadata
from harness.leaders import LEADER
from harness.service import NodeStatus
from harness.slowness import slowed
from harness.traits import LogLine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeVar

    from clusters.systems.dledger.remoting import Connection
    from clusters.systems.rocketmq.options import ControllerOptions
    from harness.builds import Artifact
    from harness.daemon import Daemon
    from harness.node import Node

    T = TypeVar("T")

ROLE: Final = "controller"
GROUP: Final = "labrys"
PORT: Final = 9878
JRAFT_PORT: Final = 9880
CLASS: Final = "org.apache.rocketmq.controller.ControllerStartup"
DATA_DIR: Final = settings.data_dir(ROLE)
LOGS: Final = ("controller", "controller_default", "dledger", "jraft")
MEMORY: Final = ("-Xmx96m", "-XX:MaxMetaspaceSize=96m")
MAPPED_FILE_BYTES: Final = 8 * 1024 * 1024
PROBED_GROUP: Final = "labrys-ready"  # no broker registers in this group, so a leader that serves proposes the id 1
FATAL: Final = (
    r"raft may stop working since some error occurs",  # jraft has given up on its state machine
    r"Handle FSMCallerImpl disruptor event error",  # its state machine cannot get past an entry of the log
)

# Lines with which faults can begin. Each of the two libraries has its own.
# Texts of the logs that tell of votes, terms, roles and entries that are cut off.
TELLING = (
    "[ChangeRoleTo",
    "[INCREASE_TERM]",
    "[VOTE_RESULT] has been elected",
    "[HandleDoTruncate]",
    "[TRUNCATE]",
    "become leader of group",
    "Load snapshot from ",
)
LINES: Mapping[str, LogLine] = MappingProxyType(
    {
        "elected": LogLine(
            path=settings.own_log(ROLE, "dledger"),
            pattern=r"\[VOTE_RESULT\] has been elected to be the leader",
            meaning="with dledger, a controller has the votes of a majority",
        ),
        "truncates": LogLine(
            path=settings.own_log(ROLE, "dledger"),
            pattern=r"\[HandleDoTruncate\]",
            meaning="with dledger, a controller cuts entries off its log",
        ),
        "jraft-elected": LogLine(
            path=settings.own_log(ROLE, "jraft"),
            pattern="become leader of group",
            meaning="with jraft, a controller becomes the leader",
        ),
        "jraft-snapshot": LogLine(
            path=settings.own_log(ROLE, "controller"),
            pattern="Save snapshot, path=",
            meaning="with jraft, a controller begins to save a snapshot",
        ),
        "jraft-loads": LogLine(
            path=settings.own_log(ROLE, "controller"),
            pattern="Load snapshot from ",
            meaning="with jraft, a controller loads a snapshot",
        ),
    }
)


class ControllerProcesses:
    """The controllers on some nodes.

    Attributes:
        controllers: Their addresses.
    """

    def __init__(self, nodes: Sequence[Node], options: ControllerOptions) -> None:
        self._members = Members(nodes, port=PORT, system="RocketMQ")
        self._options = options
        self.is_dledger = options.consensus is Consensus.DLEDGER
        self.controllers = Controllers(nodes=tuple(nodes), port=PORT)

    def versions(self, artifact: Artifact) -> Mapping[str, str]:
        """Returns the versions of the release and of the consensus library in its jars."""
        return settings.versions(artifact, "dledger" if self.is_dledger else "jraft-core")

    def daemon(self, node: Node, folder: str) -> Daemon:
        """Returns the process of a node, with the folder of the jars on it."""
        ports = (PORT,) if self.is_dledger else (PORT, JRAFT_PORT)
        return settings.daemon(
            ROLE, CLASS, folder, self.settings(node, DATA_DIR), ports=ports, logs=LOGS, memory=MEMORY
        )

    def settings(self, node: Node, directory: str) -> Mapping[str, object]:
        """Returns the configuration of a node, with the folder of its data."""
        options, nodes = self._options, self.controllers.nodes
        shared = {
            "controllerStorePath": f"{directory}/store",
            "mappedFileSize": MAPPED_FILE_BYTES,
            "scanInactiveMasterInterval": options.scan_interval_ms,
            "scanNotActiveBrokerInterval": options.scan_interval_ms,
        }
        if self.is_dledger:
            return shared | {
                "controllerType": "DLedger",
                "controllerDLegerGroup": GROUP,
                "controllerDLegerPeers": self._members.text,
                "controllerDLegerSelfId": self._members.id_of(node.name),
                "processReadEvent": str(options.process_read_event).lower(),
            }
        return shared | {
            "controllerType": "jRaft",
            "listenPort": PORT,
            "jRaftGroupId": GROUP,
            "jRaftServerId": f"{node.address}:{JRAFT_PORT}",
            "jRaftInitConf": ",".join(f"{other.address}:{JRAFT_PORT}" for other in nodes),
            "jRaftControllerRPCAddr": ",".join(f"{other.address}:{PORT}" for other in nodes),
            "jRaftSnapshotIntervalSecs": options.snapshot_interval_s,
            "jRaftElectionTimeoutMs": options.election_timeout_ms,
        }

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each controller lacks: the leader that all name, and that serves."""
        missing = lacking(statuses)
        leading = [status for status in statuses.values() if status is not None and status.role == LEADER]
        if not missing and not await self.is_serving(leading[0]):
            return {leading[0].node: "leads, but does not serve yet"}
        return missing

    async def status(self, node: Node, timeout_s: float) -> NodeStatus | None:
        """Returns a controller's status (request 1005); None if it does not answer in time. On jraft, the term is None.

        On dledger, a controller leads only if it has the same term before and after it says that it leads.
        """

        async def ask(connection: Connection) -> NodeStatus:
            peer = self.peer(connection, node)
            before = await peer.term() if self.is_dledger else None
            view = await metadata(connection)
            term = await peer.term() if self.is_dledger else None
            return NodeStatus(
                node=node.name,
                role="follower" if not view.leads else LEADER if before == term else "candidate",
                term=term,
                leader=self.controllers.at(view.leader),
                details=dict(view.details),
            )

        return await self.ask(node, timeout_s, ask)

    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether a controller answers a read that only a leader answers."""
        answer = await self.ask(
            next(node for node in self.controllers.nodes if node.name == status.node),
            slowed(jvm.STATUS_TIMEOUT_S),
            lambda connection: REQUESTS["next"].ask(connection, PROBED_GROUP, None),
        )
        return answer is not None and answer.status == SUCCESS

    async def ask(self, node: Node, timeout_s: float, question: Callable[[Connection], Awaitable[T]]) -> T | None:
        """Sends a request to a controller over a new connection. Returns None if no proper answer comes in time."""
        return await asked_once(self.controllers.connect(node, timeout_s), question, timeout_s)

    def peer(self, connection: Connection, node: Node) -> Peer:
        """Returns a controller on dledger as a member of its group, over a connection."""
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
