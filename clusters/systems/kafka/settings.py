"""How the processes of Kafka are started and configured: controllers and brokers, each a JVM of its own."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from clusters.systems.kafka.wire import CONTROLLER_PORT, PORT
from harness.daemon import Daemon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.kafka.options import KafkaOptions
    from harness.node import Node
    from harness.service import Service

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
REPLICAS: Final = 3
FIRST_CONTROLLER: Final = 1001  # the id of the first one; those of brokers are from 1
CLUSTER_ID: Final = "bGFicnlzLWxhYnJ5cy0xMQ"  # sixteen bytes in base64, as Kafka wants them
FORMAT_TIMEOUT_S: Final = 120.0
LOG_DIR: Final = "/var/log/labrys/kafka"
JVM_FLAGS: Final = (
    *jvm.JVM_FLAGS,
    "-Xms64m",
    *jvm.SIMPLE_LOGGER,
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
)
HEAPS: Final = {BROKER: "-Xmx192m", CONTROLLER: "-Xmx128m"}
PORTS: Final = {BROKER: PORT, CONTROLLER: CONTROLLER_PORT}


def log_of(role: str) -> str:
    """Returns the path of the log of a role."""
    return f"{LOG_DIR}/{role}.log"


def daemon(service: Service, jars: str, properties: str) -> Daemon:
    """Returns the process of a service on a node.

    Args:
        service: The brokers or the controllers.
        jars: The folder of the jars on a node.
        properties: The configuration.
    """
    role = service.role
    config = _config(role)
    return Daemon(
        role=role,
        argv=[*_java(role, jars), "kafka.Kafka", config],
        pattern=rf"^java .* kafka\.Kafka {config}",
        ports=(PORTS[role],),
        data_dir=_data_dir(role),
        log_files=(log_of(role),),
        config_files={config: properties},
        java_packages=("kafka", "org.apache.kafka"),
        log_clock=jvm.simple_log_clock(log_of(role)),
    )


def format_storage(service: Service, node: Node, jars: str, properties: str) -> None:
    """Formats the storage of a service on a node with Kafka's own tool, and syncs it to the disk.

    The tool leaves its `bootstrap.checkpoint` in memory, and Kafka does not start if a power loss cuts this file off. A power
    loss long after the format is what a test is about.

    Raises:
        InfrastructureError: It failed.
    """
    role = service.role
    remote = service.system.cluster.remote(node)
    remote.run(f"mkdir -p {_data_dir(role)}")
    remote.write(_config(role), properties)
    tool = [*_java(role, jars), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", _config(role)]
    service.system.tool(node, f"{shlex.join(tool)} && sync -f {_data_dir(role)}", timeout_s=FORMAT_TIMEOUT_S)


def broker_properties(number: int, node: Node, controllers: Sequence[Node], brokers: int, options: KafkaOptions) -> str:
    """Returns the configuration of the broker with an id.

    Args:
        number: The id.
        node: Its node.
        controllers: The nodes of the controllers.
        brokers: The number of brokers.
        options: The options.
    """
    internal = min(REPLICAS, brokers)
    flush = [f"log.flush.interval.messages={options.flush_messages}"] if options.flush_messages else []
    return _text(
        BROKER, controllers, f"node.id={number}",
        f"listeners=PLAINTEXT://{node.address}:{PORT}", f"advertised.listeners=PLAINTEXT://{node.address}:{PORT}",
        "inter.broker.listener.name=PLAINTEXT",
        "num.network.threads=2", "num.io.threads=4", "background.threads=2",
        "offsets.topic.num.partitions=1", f"offsets.topic.replication.factor={internal}",
        "transaction.state.log.num.partitions=1", f"transaction.state.log.replication.factor={internal}",
        f"transaction.state.log.min.isr={min(2, internal)}",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
        "group.min.session.timeout.ms=500", "group.initial.rebalance.delay.ms=0",
        "log.segment.bytes=16777216", "log.index.size.max.bytes=262144", "log.cleaner.dedupe.buffer.size=2097152",
        "log.cleaner.threads=1", f"replica.lag.time.max.ms={options.session_ms}",
        f"broker.session.timeout.ms={options.session_ms}",
        f"broker.heartbeat.interval.ms={max(100, options.session_ms // 6)}", *flush,
    )  # fmt: skip


def controller_properties(number: int, node: Node, controllers: Sequence[Node], options: KafkaOptions) -> str:
    """Returns the configuration of a controller.

    Args:
        number: Its place among the controllers, from 0.
        node: Its node.
        controllers: The nodes of the controllers.
        options: The options.
    """
    return _text(
        CONTROLLER, controllers, f"node.id={FIRST_CONTROLLER + number}",
        f"listeners=CONTROLLER://{node.address}:{CONTROLLER_PORT}",
        "auto.leader.rebalance.enable=false", "unclean.leader.election.enable=false",
        f"broker.session.timeout.ms={options.session_ms}",
    )  # fmt: skip


def _text(role: str, controllers: Sequence[Node], *lines: str) -> str:
    voters = (f"{FIRST_CONTROLLER + index}@{node.address}:{CONTROLLER_PORT}" for index, node in enumerate(controllers))
    shared = (
        f"process.roles={role}", f"controller.quorum.voters={','.join(voters)}", "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", f"log.dirs={_data_dir(role)}/data",
        "controller.quorum.election.timeout.ms=1000", "controller.quorum.fetch.timeout.ms=2000",
        "auto.create.topics.enable=false",
    )  # fmt: skip
    return "\n".join((*shared, *lines)) + "\n"


def _java(role: str, jars: str) -> list[str]:
    return ["java", *JVM_FLAGS, HEAPS[role], "-cp", f"{jars}/*"]


def _config(role: str) -> str:
    return f"/var/lib/labrys/kafka-{role}.properties"


def _data_dir(role: str) -> str:
    return f"/var/lib/labrys/kafka-{role}"
