"""RocketMQ as a system under test: name servers, controllers and brokers from the released jars, each a process of its own.

The controllers elect the master of one group of brokers, which replicates each message to its sync set. The brokers are on the
last three nodes and the controllers on the first three, so with six nodes no fault of a node hits both. With a commit log on
DLedger, there are no controllers.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.kit import jvm
from clusters.kit.contracts import by_workload, served
from clusters.systems.rocketmq import controllers, settings
from clusters.systems.rocketmq.batches import Batches
from clusters.systems.rocketmq.broker_options import Mode, RocketMQOptions, Sends
from clusters.systems.rocketmq.broker_outcomes import REFUSALS
from clusters.systems.rocketmq.broker_requests import MS_PER_S
from clusters.systems.rocketmq.brokers import ROLE, BrokerGroup, Brokers
from clusters.systems.rocketmq.controller_service import ControllerService
from clusters.systems.rocketmq.dledger_brokers import DLedgerBrokers
from clusters.systems.rocketmq.log_client import TOPIC, RocketMQLogs
from clusters.systems.rocketmq.name_servers import NameServers
from clusters.systems.rocketmq.producer import Producer
from clusters.systems.rocketmq.promises import promises
from clusters.systems.rocketmq.queue_client import Consumer, RocketMQQueues, Topic
from clusters.systems.rocketmq.routes import Routes
from harness.traits import LogLine, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.client import Client
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise
    from harness.service import Service

CONTROLLERS = 3
BROKERS = 3
NAME_SERVERS = 2
QUEUE = "queue"
CLIENTS = by_workload(RocketMQLogs, RocketMQQueues)
# Half messages, and which of them are done with.
HALF_TOPICS = ("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC")
TELLING = (
    "Begin to change to master",
    "Begin to change to slave",
    "SyncStateSet changed",
    "Truncate",
    "truncate",
    "Now no master in broker set",
    "[VOTE_RESULT] has been elected",
    "become leader of group",
)
LINES = MappingProxyType(
    {
        "leads": LogLine(
            path=settings.own_log(ROLE, "broker_default"),
            pattern="Begin to change to master",
            meaning="a broker becomes the master",
        ),
        **{f"controller-{name}": line for name, line in controllers.LINES.items()},
    }
)


class RocketMQSystem(jvm.JvmInstallation):
    """Name servers, controllers and brokers on a cluster.

    Attributes:
        name_servers: The name servers.
        options: The options.
    """

    name = "rocketmq"
    summary = "Brokers of RocketMQ 5, the controllers that elect their master, and name servers; or brokers on DLedger."
    tier = Tier.FINDING
    Options = RocketMQOptions
    software = "RocketMQ"
    programs = (settings.JAVA, settings.MAVEN)
    serves = served(CLIENTS)
    refusals = REFUSALS
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    telling_log_texts = TELLING
    fatal = controllers.FATAL
    ready_timeout_s = 120.0  # a slave that registers before the master does waits for 30 s

    def __init__(self, cluster: Cluster, options: RocketMQOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self.options: RocketMQOptions = options
        nodes = cluster.nodes
        self.name_servers = NameServers(self, nodes[:NAME_SERVERS])
        self._controllers: ControllerService | None = None
        self._brokers: BrokerGroup
        if options.mode is Mode.DLEDGER_COMMITLOG:
            self._brokers = DLedgerBrokers(self, nodes[-BROKERS:])
        else:
            self._controllers = ControllerService(
                self, nodes[:CONTROLLERS], options.of_controllers(), brokers=nodes[-BROKERS:]
            )
            self._brokers = Brokers(self, nodes[-BROKERS:], self._controllers)
        self._batches: Batches | None = None  # once a client sends in batches
        self._consumed: Mapping[str, Topic] = {}  # once a client for queues needs them

    def services(self) -> Sequence[Service]:
        """Returns name servers on the first two nodes, controllers on the first three if any, and brokers on the last three."""
        controllers = () if self._controllers is None else (self._controllers,)
        return self.name_servers, *controllers, self._brokers

    @classmethod
    def build(cls, options: RocketMQOptions, say: Callable[[str], object]) -> Artifact:
        """Gets the released jars of a version with Maven, if the cache does not have them; compiles nothing."""
        return settings.jars(options.rocketmq_version, say)

    @classmethod
    def promises(cls, options: RocketMQOptions) -> Mapping[str, Promise]:
        """Returns what RocketMQ promises to each workload."""
        return promises(options)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the release and of the consensus library of the controllers, or of the commit log."""
        if self._controllers is None:
            return settings.versions(self.artifact, "dledger")
        return self._controllers.processes.versions(self.artifact)

    def topics(self) -> Mapping[str, int]:
        """Returns the topics of the workload, with the number of their message queues."""
        return (
            dict.fromkeys(self._topic_of().values(), self.options.message_queues)
            if self.workload == QUEUE
            else {TOPIC: 1}
        )

    def stored_topics(self) -> Mapping[str, int]:
        """Returns the topics whose messages are in the commit log, with the number of their message queues."""
        inner = HALF_TOPICS if self.options.sends is Sends.TRANSACTIONS else ()
        return {**self.topics(), **dict.fromkeys(inner, 1)}

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of a process. A pinned one reads a log only when its broker has what the master has."""
        if self.workload == QUEUE:
            follows = pinned or self._follows(process)  # final operations on queues go to the master
            queues = self._queues()
            return RocketMQQueues(
                process=process, node=node, producer=self._producer(node, follows=follows), topics=queues
            )
        follows = not pinned and self._follows(process)
        return RocketMQLogs(node=node, producer=self._producer(node, follows=follows), topic=TOPIC, whole=pinned)

    def _follows(self, process: int) -> bool:
        return self.options.routing.follows(process, len(self._brokers.nodes))

    def _producer(self, node: Node, *, follows: bool) -> Producer:
        routes = Routes(
            name_servers=self.name_servers.nodes,
            brokers=self._brokers.nodes,
            topic=next(iter(self.topics())),
            interval_s=self.options.route_interval_s,
        )
        options = self.options
        hold_s = options.hold_ms / MS_PER_S
        if options.sends is Sends.BATCHES and self._batches is None:
            self._batches = Batches(hold_s=hold_s, certain=options.refusals())
        return Producer(
            node=node,
            routes=routes,
            follows=follows,
            sizes=options.sizes(),
            certain=options.refusals(),
            batches=self._batches if follows else None,
            hold_s=hold_s if options.sends is Sends.TRANSACTIONS else None,
        )

    def _topic_of(self) -> Mapping[str, str]:
        """Returns the topic of each queue."""
        return {f"q{number}": f"{TOPIC}-q{number}" for number in range(self.workload_options.queues)}

    def _queues(self) -> Mapping[str, Topic]:
        """Returns the queues with their consumers, which all clients share."""
        if not self._consumed:
            node = self._brokers.nodes[0]
            self._consumed = {
                key: Topic(
                    name=name,
                    consumers=[
                        Consumer(topic=name, queue=queue, producer=self._producer(node, follows=True))
                        for queue in range(self.options.message_queues)
                    ],
                )
                for key, name in self._topic_of().items()
            }
        return self._consumed
