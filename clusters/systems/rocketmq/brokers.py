"""The brokers of RocketMQ, which clients use: one group, with one master. In controller mode, the controllers elect it.

In controller mode, the last epoch in the log of a broker is the term. A master that is elected before its log has grown in the
epoch before does not write its new epoch down, so its term can be lower than the epoch that the controllers name. The master
has a sync set: the members that have all messages which the master has acknowledged. A broker says itself whether it is a
master, so an old master that is cut off goes on to claim its epoch.
"""

from __future__ import annotations

import abc
import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from clusters.kit.answers import NoAnswer, NotSent, Refused
from clusters.kit.exchange import asked_once
from clusters.systems.dledger.remoting import Connection
from clusters.systems.rocketmq import broker_requests, settings
from clusters.systems.rocketmq.broker_options import Flush
from clusters.systems.rocketmq.broker_requests import BROKER, FAST_PORT, HA_PORT, NAME_SERVER_PORT, PORT
from clusters.systems.rocketmq.controllers import PORT as CONTROLLER_PORT
from clusters.systems.rocketmq.replica import copy_of
from clusters.systems.rocketmq.requests import CLUSTER
from harness.cluster import on_all
from harness.errors import InfrastructureError
from harness.leaders import LEADER
from harness.service import NodeStatus, ReplicaState
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.rocketmq.broker_options import RocketMQOptions
    from clusters.systems.rocketmq.broker_requests import Epochs, LogState, Replication
    from clusters.systems.rocketmq.controller_service import ControllerService
    from clusters.systems.rocketmq.replica import Copy
    from clusters.systems.rocketmq.system import RocketMQSystem
    from harness.daemon import Daemon
    from harness.node import Node

ROLE: Final = "broker"
CLASS: Final = "org.apache.rocketmq.broker.BrokerStartup"
LOGS: Final = ("broker", "broker_default", "store", "storeerror", "remoting")
MEMORY: Final = ("-Xmx160m", "-XX:MaxMetaspaceSize=128m")
STABLE_S: Final = 2.0  # the sync set often changes while brokers start
SHORT_S: Final = 10.0  # a master tells its slaves every second up to which place consumers may read
TRY_AGAIN_S: Final = 0.2
CREATE_S: Final = 5.0
STORE: Final = f"{settings.data_dir(ROLE)}/store"


async def connect(node: Node, timeout_s: float) -> Connection:
    """Connects to the broker of a node.

    Raises:
        NotSent: It cannot be reached.
    """
    return await Connection.open(node.address, PORT, timeout_s)


def loop_s() -> float:
    """Returns the time of the loop, real or virtual."""
    return asyncio.get_running_loop().time()


class BrokerGroup(jvm.JvmGroup):
    """The brokers of a group, however they replicate. A master has the role `leader`, and a slave the role `follower`."""

    role = ROLE
    software = "RocketMQ's brokers"
    every_node_returns = (
        "A slave copies from the master what it lacks, and is then among those that acknowledge messages."
    )
    dumps_replicas = True

    def __init__(self, system: RocketMQSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._rocketmq = system
        self._short: dict[
            str, tuple[Copy, float]
        ] = {}  # copies that are not whole, and since when they are as they are

    @abc.abstractmethod
    def ports(self) -> Sequence[int]:
        """Returns the ports on which a broker listens."""

    @abc.abstractmethod
    def replication_settings(self, node: Node) -> Mapping[str, object]:
        """Returns the settings of a broker that decide how it replicates."""

    @abc.abstractmethod
    async def log_state(self, connection: Connection) -> LogState:
        """Returns the end of the commit log of a broker, and its epochs.

        Raises:
            NoAnswer: The broker does not answer, or its answer cannot be read.
        """

    @abc.abstractmethod
    async def has_all(self, node: Node) -> bool:
        """Returns whether a broker must have each acknowledged message now."""

    def daemon(self, node: Node) -> Daemon:
        """Returns the broker of a node."""
        shared = shared_settings(node, self._rocketmq.name_servers.nodes)
        lines = {**shared, **self.replication_settings(node)}
        folder = self.system.artifact.there
        broker = settings.daemon(ROLE, CLASS, folder, lines, ports=self.ports(), logs=LOGS, memory=MEMORY)
        # `ReputMessageService` waits in such a loop for the acknowledgement of a message: finding 7 of the brokers.
        return replace(broker, makes_objects_in_loops=True)

    async def complete(self, timeout_s: float) -> None:
        """Creates the topics at the master, waits until slaves and name servers know them, and syncs the data to the disks.

        RocketMQ leaves its small files in memory, e.g. that of the epochs, and a broker does not start if a power loss cuts
        this one off. A power loss long after the start is what a test is about.

        Raises:
            InfrastructureError: They do not in time.
        """
        deadline_s = loop_s() + timeout_s
        while trouble := await self._without_topics(self._rocketmq.topics()):
            if loop_s() > deadline_s:
                raise InfrastructureError(f"RocketMQ does not have its topics in {timeout_s:g} s: {trouble}")
            await asyncio.sleep(TRY_AGAIN_S)
        sync = f"sync -f {settings.data_dir(ROLE)}"
        await asyncio.to_thread(on_all, self.nodes, lambda node: self.system.cluster.remote(node).run(sync))

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the messages and epochs of a broker at the end of its log; None if it may lack messages, or is busy.

        A slave gives messages to consumers a moment after they are in its log. So a copy that does not reach to the end of the
        log counts only if it stays as it is for `SHORT_S`.
        """
        if not await self.has_all(node):
            return None
        topics = self._rocketmq.stored_topics()
        copy = await asked_once(
            connect(node, timeout_s), lambda asked: copy_of(asked, topics, self.log_state), timeout_s
        )
        if copy is None:
            return None
        if not copy.whole:
            now_s = loop_s()
            earlier, since_s = self._short.get(node.name, (copy, now_s))
            since_s = since_s if earlier == copy else now_s
            self._short[node.name] = (copy, since_s)
            if now_s - since_s < SHORT_S:
                return None
        return ReplicaState(node=node.name, applied_index=copy.end, state=copy.state)

    async def _without_topics(self, topics: Mapping[str, int]) -> str:
        """Creates the topics that the master does not know. Returns who does not know one; empty if all know all."""
        statuses = await self.statuses_of(self.nodes)
        master = next((self.node(name) for name, status in statuses.items() if status and status.role == LEADER), None)
        if master is None:
            return "no broker is the master"
        try:
            async with asyncio.timeout(slowed(CREATE_S)):
                connection = await connect(master, CREATE_S)
                try:
                    for topic, queues in topics.items():
                        if not await broker_requests.knows_topic(connection, topic):
                            await broker_requests.create_topic(connection, topic, queues)
                finally:
                    await connection.close()
        except (NotSent, NoAnswer, Refused, TimeoutError) as error:
            return f"{master.name}, the master, answers with {error or 'nothing'}"
        for topic in topics:
            for node in self.nodes:
                if not await self._asked(node, topic):
                    return f"{node.name} does not know {topic}"
            unknown = await self._rocketmq.name_servers.without_master(topic, f"{master.address}:{PORT}")
            if unknown:
                return unknown
        return ""

    async def _asked(self, node: Node, topic: str) -> bool | None:
        limit_s = slowed(jvm.STATUS_TIMEOUT_S)
        return await asked_once(
            connect(node, limit_s), lambda asked: broker_requests.knows_topic(asked, topic), limit_s
        )


class Brokers(BrokerGroup):
    """The brokers in controller mode: the controllers elect the master, which has a sync set."""

    one_leader_per_term = (
        "RocketMQ finds the place at which two logs part by the epochs that their masters wrote down, so each epoch has one "
        "master; Labrys asks for the epochs before and after it asks whether the broker is a master."
    )

    def __init__(self, system: RocketMQSystem, nodes: Sequence[Node], controllers: ControllerService) -> None:
        super().__init__(system, nodes)
        self._controllers = controllers
        self._whole_since_s: float | None = None  # since when nothing was lacking

    def ports(self) -> Sequence[int]:
        """Returns the ports for clients and for replication."""
        return PORT, FAST_PORT, HA_PORT

    def replication_settings(self, node: Node) -> Mapping[str, object]:  # noqa: ARG002 - the same on every node
        """Returns the settings of controller mode."""
        return controller_mode_settings(self._controllers.nodes, self._rocketmq.options)

    async def log_state(self, connection: Connection) -> LogState:
        """Returns the end of the commit log of a broker, and its epochs (1007)."""
        return await broker_requests.epochs(connection)

    async def has_all(self, node: Node) -> bool:
        """Returns whether the controllers count a broker among the sync set."""
        known = await self._controllers.brokers()
        return known is not None and node.name in map(self._name_of, known.in_sync)

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns whether a broker is the master (request 907), its last epoch, and the end of its log (1007).

        A master has written its epoch down before it has the id of a master. A slave takes epochs over from its master. So a
        broker led in its last epoch if it had the id of a master, and this last epoch, before and after it said that it leads.
        """

        async def ask(connection: Connection) -> tuple[Epochs, Replication, Epochs]:
            return (
                await broker_requests.epochs(connection),
                await broker_requests.replication(connection),
                await broker_requests.epochs(connection),
            )

        answer = await asked_once(connect(node, timeout_s), ask, timeout_s)
        if answer is None:
            return ()
        before, replication, epochs = answer
        if replication.leads and not (before.leads and epochs.leads and before.last == epochs.last):
            return (NodeStatus(node=node.name, role="candidate", term=epochs.last, applied_index=epochs.end),)
        master = node.name if replication.leads else self._name_at(replication.master)
        details = {"epochs": [list(epoch) for epoch in epochs.epochs[-3:]]}
        return (
            NodeStatus(
                node=node.name,
                role=LEADER if replication.leads else "follower" if master else "candidate",
                term=epochs.last,
                leader=master,
                applied_index=epochs.end,
                details=details | ({"slaves_in_sync": replication.in_sync} if replication.leads else {}),
            ),
        )

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each broker lacks: the one master of the controllers, and a place in the sync set for a while."""
        missing = await self._lacking(statuses)
        if missing:
            self._whole_since_s = None
            return missing
        now_s = loop_s()
        self._whole_since_s = now_s if self._whole_since_s is None else self._whole_since_s
        if now_s - self._whole_since_s < STABLE_S:
            return dict.fromkeys(statuses, f"is in the sync set for less than {STABLE_S:g} s")
        return {}

    async def _lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        known = await self._controllers.brokers()
        if known is None or known.master is None:
            return dict.fromkeys(statuses, "has no master that the controllers know")
        master = self._name_of(known.master)
        missing = {}
        for name, status in statuses.items():
            if status is None:
                missing[name] = "does not answer"
            elif status.leader != master or (status.role == LEADER) != (name == master):
                missing[name] = f"sees {status.leader or 'no master'}; the master of the controllers is {master}"
            elif name not in map(self._name_of, known.in_sync):
                missing[name] = "is not in the sync set"
        return missing

    def _name_of(self, address: str) -> str | None:
        """Returns the name of the node of a broker by its address; None if no node has it."""
        return next((node.name for node in self.nodes if address == f"{node.address}:{PORT}"), None)

    def _name_at(self, address: str | None) -> str | None:
        """Returns the name of the node whose address for replication this is; None if no node has it."""
        return next((node.name for node in self.nodes if address == f"{node.address}:{HA_PORT}"), None)


def shared_settings(node: Node, name_servers: Sequence[Node]) -> Mapping[str, object]:
    """Returns the settings of a broker that are the same in each mode.

    Args:
        node: Its node.
        name_servers: The nodes of the name servers.
    """
    return {
        "brokerClusterName": CLUSTER,
        "brokerName": BROKER,
        "namesrvAddr": ";".join(f"{name_server.address}:{NAME_SERVER_PORT}" for name_server in name_servers),
        "brokerIP1": node.address,
        "brokerIP2": node.address,
        "listenPort": PORT,
        "storePathRootDir": STORE,
        "storePathCommitLog": f"{STORE}/commitlog",
        "slaveReadEnable": "true",
        "autoCreateTopicEnable": "false",
        "mappedFileSizeCommitLog": 16 * 1024 * 1024,
        "mappedFileSizeConsumeQueue": 600_000,
        "messageIndexEnable": "false",
        "timerWheelEnable": "false",
        "enableCompaction": "false",
        "diskMaxUsedSpaceRatio": 95,
        "maxTransferCountOnMessageInMemory": broker_requests.MOST_MESSAGES,
        "maxTransferCountOnMessageInDisk": broker_requests.MOST_MESSAGES,
        "maxTransferBytesOnMessageInMemory": 1024 * 1024,
        "maxTransferBytesOnMessageInDisk": 1024 * 1024,
    }


def controller_mode_settings(controllers: Sequence[Node], options: RocketMQOptions) -> Mapping[str, object]:
    """Returns the settings of a broker that are of controller mode.

    Args:
        controllers: The nodes of the controllers.
        options: The options.
    """
    return {
        "brokerId": -1,  # the controllers give it one
        "brokerRole": "SLAVE",
        "enableControllerMode": "true",
        "controllerAddr": ";".join(f"{controller.address}:{CONTROLLER_PORT}" for controller in controllers),
        "storePathEpochFile": f"{STORE}/epochFileCheckpoint",
        "storePathBrokerIdentity": f"{STORE}/brokerIdentity",
        "allAckInSyncStateSet": "true",
        "minInSyncReplicas": options.min_in_sync_replicas,
        "flushDiskType": "SYNC_FLUSH" if options.flush is Flush.SYNC else "ASYNC_FLUSH",
        "transientStorePoolEnable": str(options.transient_store_pool).lower(),
        "transientStorePoolSize": 5,
        "syncBrokerMetadataPeriod": 1000,
        "checkSyncStateSetPeriod": 1000,
        # An idle slave reports its offset at the first interval. A master takes it out of the sync set after the second time.
        "haSendHeartbeatInterval": 1000,
        "haMaxTimeSlaveNotCatchup": 3000,
        "controllerHeartBeatTimeoutMills": 3000,
    }
