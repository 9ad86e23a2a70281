"""The brokers of Kafka, which clients use: one on each node.

The leader that faults aim at is that of the first partition that the workload uses. Its epoch is the term. Each broker says in
its metadata whom it takes for the leader, so an old leader that is cut off goes on to claim its epoch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clusters.kit import jvm
from clusters.kit.answers import NoAnswer, NotSent, RefusedByCode
from clusters.systems.kafka import settings
from clusters.systems.kafka.settings import REPLICAS
from clusters.systems.kafka.wire import DEBUGGER, Broker
from harness.leaders import LEADER, leader_of
from harness.service import NodeStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.kafka.system import KafkaSystem
    from harness.daemon import Daemon
    from harness.node import Node


class Brokers(jvm.JvmGroup):
    """The brokers."""

    role = settings.BROKER
    software = "Kafka"

    def __init__(self, system: KafkaSystem, controllers: Sequence[Node]) -> None:
        super().__init__(system)
        self._kafka = system
        self._controllers = controllers

    def daemon(self, node: Node) -> Daemon:
        """Returns the broker of a node."""
        return settings.daemon(self, self.system.artifact.there, self._properties(node))

    def initialise(self, node: Node) -> None:
        """Formats the storage of a broker."""
        settings.format_storage(self, node, self.system.artifact.there, self._properties(node))

    async def complete(self, timeout_s: float) -> None:
        """Creates the topics, and waits until their replicas are in sync.

        Raises:
            InfrastructureError: Kafka does not create them in time.
        """
        await self._kafka.create_topics(timeout_s)
        await self.until_ready(self.nodes, timeout_s)

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a broker knows of the first partition, and the end and the high watermark of its replica.

        A busy broker may tell its leader in time, and not its replica: then both ends are None.
        """
        until_s = asyncio.get_running_loop().time() + timeout_s
        broker = Broker(node.address)
        try:
            async with asyncio.timeout_at(until_s):
                partition = await broker.partition(self._topic)
                if partition is None or not partition.in_sync:  # before the topic exists
                    return (NodeStatus(node=node.name, role="broker", details={"brokers": await broker.brokers()}),)
            end, committed = await self._replica(broker, until_s)
        except (NotSent, NoAnswer, TimeoutError):
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
                details={"isr": [self._name(replica) for replica in partition.in_sync]},
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

    @property
    def _topic(self) -> str:
        return self._kafka.topics()[0]

    async def _replica(self, broker: Broker, until_s: float) -> tuple[int | None, int | None]:
        """Returns the end and the high watermark of the replica of a broker; None without one, or without an answer."""
        try:
            async with asyncio.timeout_at(until_s):
                return await broker.end(self._topic, replica=DEBUGGER), await broker.high_watermark(self._topic)
        except (NotSent, NoAnswer, RefusedByCode, TimeoutError):
            return None, None

    def _name(self, broker: int) -> str | None:
        return self.nodes[broker - 1].name if 1 <= broker <= len(self.nodes) else None

    def _properties(self, node: Node) -> str:
        number = self.nodes.index(node) + 1
        return settings.broker_properties(number, node, self._controllers, len(self.nodes), self._kafka.options)
