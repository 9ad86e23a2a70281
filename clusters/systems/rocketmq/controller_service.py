"""The controllers as a service beside the brokers, whose master they elect.

The leader of the controllers is an observer of the brokers: one answer (1006) has the master and its epoch. So each epoch that
the controllers gave has one master, whatever the brokers wrote down.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from clusters.systems.rocketmq import controllers
from clusters.systems.rocketmq.broker_requests import BROKER, PORT
from clusters.systems.rocketmq.outcomes import SUCCESS
from clusters.systems.rocketmq.requests import REQUESTS
from harness.leaders import LEADER, OBSERVER
from harness.service import NodeStatus
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.remoting import Connection
    from clusters.systems.rocketmq.options import ControllerOptions
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.system import System

BROKERS: Final = "brokers"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBrokers:
    """What the leader of the controllers knows of the brokers.

    Attributes:
        master: The address of the master, `host:port`; None if there is none.
        epoch: The epoch of the master.
        in_sync: The addresses of the members of the sync set.
    """

    master: str | None
    epoch: int
    in_sync: Sequence[str]


class ControllerService(jvm.JvmGroup):
    """The controllers. On dledger, the term is that of their Raft group; on jraft, they report none.

    As the group `brokers`, the leader of the controllers reports the master of the brokers, whose epoch is the term.
    """

    role = controllers.ROLE
    software = "RocketMQ's controllers"
    serves_clients = False
    every_node_returns = (
        "A controller is a member of a Raft group, and a follower gets from the leader what its log lacks."
    )
    one_leader_per_term = (
        "A term of the controllers has one leader, and an epoch of the brokers has one master; Labrys asks for the term before "
        "and after the role, and one answer has the master and its epoch."
    )

    def __init__(
        self, system: System, nodes: Sequence[Node], options: ControllerOptions, brokers: Sequence[Node]
    ) -> None:
        super().__init__(system, nodes)
        self._broker_nodes = brokers
        self.processes = controllers.ControllerProcesses(nodes, options)

    def daemon(self, node: Node) -> Daemon:
        """Returns the controller of a node."""
        return self.processes.daemon(node, self.system.artifact.there)

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each controller lacks: the leader that all name, and that serves."""
        reasons = await self.processes.lacking(statuses)
        return {name: f"has a controller that {reason}" for name, reason in reasons.items()}

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a controller's status, and the master of the brokers if it leads; none without an answer in time."""
        status, brokers = await asyncio.gather(
            self.processes.status(node, timeout_s), self._brokers_of(node, timeout_s)
        )
        if status is None:
            return ()
        if status.role != LEADER or brokers is None:
            return (status,)
        known = {"master": brokers.master, "epoch": brokers.epoch, "in_sync": list(brokers.in_sync)}
        status = replace(status, details={**(status.details or {}), **known})
        master = next(
            (candidate.name for candidate in self._broker_nodes if brokers.master == f"{candidate.address}:{PORT}"),
            None,
        )
        return status, NodeStatus(node=node.name, role=OBSERVER, term=brokers.epoch, leader=master, group=BROKERS)

    async def brokers(self) -> KnownBrokers | None:
        """Returns what the leader of the controllers knows of the brokers; None if no controller leads and knows them."""
        limit_s = slowed(jvm.STATUS_TIMEOUT_S)
        answers = await asyncio.gather(*(self._brokers_of(node, limit_s) for node in self.nodes))
        return max((answer for answer in answers if answer is not None), key=lambda answer: answer.epoch, default=None)

    async def _brokers_of(self, node: Node, timeout_s: float) -> KnownBrokers | None:
        """Returns what a controller knows of the brokers; None if it does not lead, or knows no broker."""

        async def ask(connection: Connection) -> KnownBrokers | None:
            answer = await REQUESTS["state"].ask(connection, BROKER, None)
            if answer.status != SUCCESS:
                return None
            state = REQUESTS["state"].value(BROKER, answer)
            if not state["known"]:
                return None
            return KnownBrokers(
                master=state.get("address"),
                epoch=state["master_epoch"],
                in_sync=sorted(address for _, address, _ in state["in_sync"]),
            )

        return await self.processes.ask(node, timeout_s, ask)
