"""Kafka as a system under test: brokers that are controllers too (KRaft, combined), from the released jars.

The leader that faults aim at is that of the one partition which the workload uses. Its epoch is the term. Each broker says in
its metadata whom it takes for the leader, so an old leader that is cut off goes on to claim its epoch.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clusters.systems import jvm
from clusters.systems.answers import NoAnswer, NotSent, RefusedByCode
from clusters.systems.kafka.client import TOPIC, KafkaClient
from clusters.systems.kafka.options import KafkaOptions
from clusters.systems.kafka.outcomes import REFUSALS
from clusters.systems.kafka.wire import DEBUGGER, PORT, Broker
from harness.daemon import Daemon
from harness.errors import InfrastructureError
from harness.leaders import LEADER, leader_of
from harness.service import NodeStatus
from harness.system import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node

ROLE = "kafka"
VERSION = "4.1.2"
MODULE = Path(__file__).parent / "jars"
CONTROLLER_PORT = 9093
DATA_DIR = "/var/lib/labrys/kafka"
CONFIG = "/var/lib/labrys/kafka.properties"
LOG = "/var/log/labrys/kafka/kafka.log"
CLUSTER_ID = "bGFicnlzLWxhYnJ5cy0xMQ"  # sixteen bytes in base64, as Kafka wants them
REPLICAS = 3
FORMAT_TIMEOUT_S = 120.0
JVM_FLAGS = (
    *jvm.JVM_FLAGS,
    "-Xms96m",
    "-Xmx192m",
    *jvm.SIMPLE_LOGGER,
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
)
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
            path=LOG, pattern="starts at leader epoch", meaning="a broker becomes the leader of a partition"
        ),
        "shrinks": LogLine(
            path=LOG, pattern="Shrinking ISR", meaning="a leader takes a replica out of the in-sync replicas"
        ),
        "expands": LogLine(
            path=LOG, pattern="Expanding ISR", meaning="a leader takes a replica back into the in-sync replicas"
        ),
    }
)


class KafkaSystem(jvm.JvmSystem):
    """Kafka on a cluster."""

    name = "kafka"
    summary = "Kafka 4.1 with KRaft; each node is a broker and a controller."
    Options = KafkaOptions
    software = "Kafka"
    programs = (JAVA, MAVEN)
    role = ROLE
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"log": "append is a record in one partition, whose offset is the offset; read is a fetch from the leader"}
    )
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"confluent_kafka": "kafka"})
    refusals = REFUSALS
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    telling_log_texts = TELLING
    fatal = (r"Encountered fatal fault",)

    def __init__(self, cluster: Cluster, options: KafkaOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options

    @classmethod
    def build(cls, options: Any, say: Callable[[str], object]) -> Artifact:  # noqa: ARG003 - no option changes the build
        """Gets the released jars with Maven, if the cache does not have them."""
        return jvm.released_jars("kafka", VERSION, MODULE, tools=(MAVEN,)).artifact(say)

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the brokers."""
        return {"kafka": self.artifact.provenance.version}

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node: broker and controller."""
        return Daemon(
            role=ROLE,
            argv=["java", *JVM_FLAGS, "-cp", f"{self.artifact.there}/*", "kafka.Kafka", CONFIG],
            pattern=r"^java .* kafka\.Kafka ",
            ports=(PORT, CONTROLLER_PORT),
            data_dir=DATA_DIR,
            log_files=(LOG,),
            config_files={CONFIG: self._properties(node)},
            log_clock=jvm.simple_log_clock(LOG),
        )

    def initialise(self, node: Node) -> None:
        """Formats the storage of a node with Kafka's own tool."""
        remote = self.cluster.remote(node)
        remote.run(f"mkdir -p {DATA_DIR}")
        remote.write(CONFIG, self._properties(node))
        tool = ["java", *JVM_FLAGS, "-cp", f"{self.artifact.there}/*", "kafka.tools.StorageTool", "format"]
        remote.run(shlex.join([*tool, "-t", CLUSTER_ID, "-c", CONFIG]), timeout_s=FORMAT_TIMEOUT_S)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> KafkaClient:  # noqa: ARG002 - all are alike
        """Returns the client of a process."""
        return KafkaClient(node=node, nodes=self.nodes, options=self._options, topic=TOPIC, pinned=pinned)

    async def complete(self, timeout_s: float) -> None:
        """Creates the topic, and waits until its replicas are in sync.

        Raises:
            InfrastructureError: Kafka does not create the topic in time.
        """
        await asyncio.to_thread(self.create, TOPIC, self._options.min_isr, timeout_s)
        await self.until_ready(self.nodes, timeout_s)

    def create(self, topic: str, min_isr: int, timeout_s: float) -> None:
        """Creates a topic with one partition. Blocks.

        Raises:
            InfrastructureError: Kafka does not create it in time.
        """
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra, which only runs of Kafka need
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415
        from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415

        servers = ",".join(f"{node.address}:{PORT}" for node in self.nodes)
        silent: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}
        admin = AdminClient({"bootstrap.servers": servers, **silent})
        new = NewTopic(
            topic,
            num_partitions=1,
            replication_factor=min(REPLICAS, len(self.nodes)),
            config={"min.insync.replicas": str(min_isr)},
        )
        try:
            admin.create_topics([new], request_timeout=timeout_s)[topic].result(timeout_s)
        except (KafkaException, TimeoutError) as error:
            raise InfrastructureError(
                f"Kafka did not create the topic {topic} in {timeout_s:g} s: {error or 'no answer'}"
            ) from error

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a broker knows of the partition, and the end and the high watermark of its replica."""
        broker = Broker(node.address)
        try:
            async with asyncio.timeout(timeout_s):
                partition = await broker.partition(TOPIC)
                if partition is None or not partition.in_sync:  # before the topic exists
                    return (NodeStatus(node=node.name, role="broker", details={"brokers": await broker.brokers()}),)
                end, committed = await _replica(broker)
        except (NotSent, NoAnswer, RefusedByCode, TimeoutError):
            return ()
        finally:
            await broker.close()
        leader = self._name(partition.leader)
        return (
            NodeStatus(
                node=node.name,
                role=LEADER if leader == node.name else "follower" if leader else "candidate",
                term=partition.epoch,
                leader=leader,
                applied_index=end,
                committed_index=committed,
                details={"isr": [self._name(each) for each in partition.in_sync]},
            ),
        )

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each node lacks: contact to all brokers, the leader of the partition, and a replica in sync."""
        missing = {}
        leader = leader_of(status for status in statuses.values() if status is not None)
        isr = [] if leader is None else (leader.details or {}).get("isr") or []
        for name, status in statuses.items():
            if status is None:
                missing[name] = "does not answer"
            elif status.role == "broker":
                known = (status.details or {}).get("brokers")
                if known != len(self.nodes) or leader is not None:
                    missing[name] = f"knows {known} brokers, and no partition"
            elif leader is None or status.leader != leader.node or status.term != leader.term:
                missing[name] = f"sees {status.leader or 'no leader'} in epoch {status.term}"
            elif name not in isr and len(self.nodes) <= REPLICAS:
                missing[name] = f"is not in sync; {', '.join(map(str, isr))} are"
        return missing

    def _name(self, broker: int) -> str | None:
        return self.nodes[broker - 1].name if 1 <= broker <= len(self.nodes) else None

    def _properties(self, node: Node) -> str:
        number = [each.name for each in self.nodes].index(node.name) + 1
        voters = ",".join(f"{place}@{each.address}:{CONTROLLER_PORT}" for place, each in enumerate(self.nodes, 1))
        internal = min(REPLICAS, len(self.nodes))
        session_ms = self._options.session_ms
        lines = (
            "process.roles=broker,controller", f"node.id={number}", f"controller.quorum.voters={voters}",
            "controller.listener.names=CONTROLLER",
            f"listeners=PLAINTEXT://{node.address}:{PORT},CONTROLLER://{node.address}:{CONTROLLER_PORT}",
            f"advertised.listeners=PLAINTEXT://{node.address}:{PORT}",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name=PLAINTEXT", f"log.dirs={DATA_DIR}/data",
            "num.network.threads=2", "num.io.threads=4", "background.threads=2",
            "offsets.topic.num.partitions=1", f"offsets.topic.replication.factor={internal}",
            "transaction.state.log.num.partitions=1", f"transaction.state.log.replication.factor={internal}",
            "transaction.state.log.min.isr=2", "auto.create.topics.enable=false",
            "unclean.leader.election.enable=false", "auto.leader.rebalance.enable=false",
            "log.segment.bytes=16777216", "log.index.size.max.bytes=262144", "log.cleaner.dedupe.buffer.size=2097152",
            "log.cleaner.threads=1", "group.initial.rebalance.delay.ms=0",
            f"replica.lag.time.max.ms={session_ms}", f"broker.session.timeout.ms={session_ms}",
            f"broker.heartbeat.interval.ms={max(100, session_ms // 6)}",
            "controller.quorum.election.timeout.ms=1000", "controller.quorum.fetch.timeout.ms=2000",
        )  # fmt: skip
        return "\n".join(lines) + "\n"


async def _replica(broker: Broker) -> tuple[int | None, int | None]:
    """Returns the end and the high watermark of the replica of a broker; None for a broker without one."""
    try:
        return await broker.end(TOPIC, replica=DEBUGGER), await broker.high_watermark(TOPIC)
    except RefusedByCode:
        return None, None
