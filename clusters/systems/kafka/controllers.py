"""The controllers of Kafka: a quorum of KRaft on the first three nodes, whose leader elects the leaders of partitions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clusters.kit import jvm
from clusters.kit.answers import NoAnswer, NotSent
from clusters.systems.kafka import settings
from clusters.systems.kafka.settings import FIRST_CONTROLLER
from clusters.systems.kafka.wire import Controller
from harness.leaders import LEADER, leader_of
from harness.service import NodeStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.kafka.options import KafkaOptions
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.system import System


class Controllers(jvm.JvmGroup):
    """The controllers. The epoch of the quorum is the term."""

    role = settings.CONTROLLER
    software = "Kafka's controllers"
    serves_clients = False
    one_leader_per_term = (
        "A controller of Kafka votes at most once in an epoch, and answers with leader and epoch of one moment."
    )

    def __init__(self, system: System, nodes: Sequence[Node], options: KafkaOptions) -> None:
        super().__init__(system, nodes)
        self._options = options

    def daemon(self, node: Node) -> Daemon:
        """Returns the controller of a node."""
        return settings.daemon(self, self.system.artifact.there, self._properties(node))

    def initialise(self, node: Node) -> None:
        """Formats the storage of a controller."""
        settings.format_storage(self, node, self.system.artifact.there, self._properties(node))

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns the leader and the epoch that a controller knows."""
        controller = Controller(node.address)
        try:
            async with asyncio.timeout(timeout_s):
                quorum = await controller.quorum()
        except (NotSent, NoAnswer, TimeoutError):
            return ()
        finally:
            await controller.close()
        leader = self._name(quorum.leader)
        role = LEADER if leader == node.name else "follower" if leader else "candidate"
        return (NodeStatus(node=node.name, role=role, term=quorum.epoch, leader=leader),)

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each node lacks: an answer, and the leader that all controllers name."""
        missing = {}
        leader = leader_of(status for status in statuses.values() if status is not None)
        for name, status in statuses.items():
            if status is None:
                missing[name] = "has a controller that does not answer"
            elif leader is None or status.leader != leader.node or status.term != leader.term:
                missing[name] = f"has a controller that sees {status.leader or 'no leader'} in epoch {status.term}"
        return missing

    def _name(self, controller: int | None) -> str | None:
        index = -1 if controller is None else controller - FIRST_CONTROLLER
        return self.nodes[index].name if 0 <= index < len(self.nodes) else None

    def _properties(self, node: Node) -> str:
        return settings.controller_properties(self.nodes.index(node), node, self.nodes, self._options)
