"""Kafka as a system under test: controllers (KRaft) and brokers from the released jars, each a process of its own.

Kafka advises against nodes that are both, because a fault then hits both. With two processes, a run can tell their leaders
apart.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.kit import jvm
from clusters.kit.contracts import by_workload, served
from clusters.systems.kafka.brokers import Brokers
from clusters.systems.kafka.client import TOPIC, KafkaLogs
from clusters.systems.kafka.controllers import Controllers
from clusters.systems.kafka.library import Library, topics
from clusters.systems.kafka.members import Members
from clusters.systems.kafka.options import KafkaOptions
from clusters.systems.kafka.outcomes import REFUSALS
from clusters.systems.kafka.promises import promises
from clusters.systems.kafka.queue import KafkaQueues
from clusters.systems.kafka.settings import BROKER, CONTROLLER, REPLICAS, log_of
from harness.errors import InfrastructureError, InputError
from harness.traits import LogLine, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.client import Client
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise
    from harness.service import Service

MODULE = Path(__file__).parent / "jars"
CONTROLLERS = 3
QUEUE = "queue"
CLIENTS = by_workload(KafkaLogs, KafkaQueues)
JAVA = jvm.java("running Kafka")
MAVEN = jvm.maven("getting Kafka's jars")
TELLING = (
    "starts at leader epoch",
    "Truncating",
    "Truncated",
    "Shrinking ISR",
    "Expanding ISR",
    "Completed transition to",
    "has been fenced",
    "UNCLEAN",
)
LINES = MappingProxyType(
    {
        "leads": LogLine(
            path=log_of(BROKER),
            pattern=r"\] Leader .* starts at leader epoch",  # followers have a line `Follower ... starts at leader epoch`
            meaning="a broker becomes the leader of a partition",
        ),
        "shrinks": LogLine(
            path=log_of(BROKER),
            pattern="Shrinking ISR",
            meaning="a leader takes a replica out of the in-sync replicas",
        ),
        "expands": LogLine(
            path=log_of(BROKER),
            pattern="Expanding ISR",
            meaning="a leader takes a replica back into the in-sync replicas",
        ),
        "controls": LogLine(
            path=log_of(CONTROLLER),
            pattern="Completed transition to Leader",
            meaning="a controller becomes the leader of the controllers",
        ),
    }
)


class KafkaSystem(jvm.JvmInstallation):
    """Kafka on a cluster."""

    name = "kafka"
    summary = "Kafka with KRaft: a broker on each node, and controllers on the first three."
    tier = Tier.PROMISE
    Options = KafkaOptions
    software = "Kafka"
    programs = (JAVA, MAVEN)
    serves = served(CLIENTS)
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"confluent_kafka": "kafka"})
    refusals = REFUSALS
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    telling_log_texts = TELLING
    fatal = (r"Encountered fatal fault",)
    ready_timeout_s = 120.0  # each node starts two JVMs, one after the other

    def __init__(self, cluster: Cluster, options: KafkaOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options
        if options.transactional and workload != QUEUE:
            raise InputError(f"expected the workload queue with --transactional, not {workload}")
        self._library = Library()
        self._members: Members | None = None  # once a client for queues needs them
        controllers = cluster.nodes[:CONTROLLERS]
        self._services = (Controllers(self, controllers, options), Brokers(self, controllers))

    def services(self) -> Sequence[Service]:
        """Returns the controllers on the first three nodes, and the brokers on all."""
        return self._services

    @classmethod
    def build(cls, options: KafkaOptions, say: Callable[[str], object]) -> Artifact:
        """Gets the released jars with Maven, if the cache does not have them."""
        return jvm.released_jars("kafka", options.kafka_version, MODULE, tools=(MAVEN,)).artifact(say)

    @classmethod
    def promises(cls, options: KafkaOptions) -> Mapping[str, Promise]:
        """Returns what Kafka promises to each workload."""
        return promises(options)

    def versions(self) -> Mapping[str, str]:
        """Returns the version of Kafka."""
        return {"kafka": self.artifact.provenance.version}

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:  # noqa: ARG002 - all are alike
        """Returns the client of a process. One for queues asks its own node for the brokers, pinned or not."""
        nodes = self.cluster.nodes
        if self.workload == QUEUE:
            by_key = dict(zip(self._keys(), self.topics(), strict=True))
            self._members = self._members or Members(nodes, list(by_key.values()), self._library, self._options)
            return KafkaQueues(node=node, nodes=nodes, members=self._members, options=self._options, topics=by_key)
        return KafkaLogs(
            node=node, nodes=nodes, library=self._library, options=self._options, topic=TOPIC, pinned=pinned
        )

    def topics(self) -> Sequence[str]:
        """Returns the names of the topics: one for a log, one for each queue."""
        return [f"{TOPIC}-{key}" for key in self._keys()] if self.workload == QUEUE else [TOPIC]

    async def create_topics(self, timeout_s: float) -> None:
        """Creates the topics of the workload.

        Raises:
            InfrastructureError: Kafka does not create them in time.
        """
        partitions = self._options.partitions if self.workload == QUEUE else 1
        for topic in self.topics():
            await self.create(topic, self._options.min_isr, timeout_s, partitions=partitions)

    def _keys(self) -> Sequence[str]:
        return [f"q{number}" for number in range(self.workload_options.queues)]

    async def create(self, topic: str, min_isr: int, timeout_s: float, *, partitions: int = 1) -> None:
        """Creates a topic, all of whose partitions have the same first leader.

        Raises:
            InfrastructureError: Kafka does not create it in time.
        """
        name = self._library.name("topics")
        assignment = [[*range(1, min(REPLICAS, len(self.cluster.nodes)) + 1)]] * partitions
        creator = topics(name, self.cluster.nodes)
        try:
            trouble = await self._library.call(name, creator, "create", topic, assignment, min_isr, timeout_s)
        finally:
            self._library.end(name, name)
        if trouble is not None:
            raise InfrastructureError(f"Kafka did not create the topic {topic} in {timeout_s:g} s: {trouble}")
