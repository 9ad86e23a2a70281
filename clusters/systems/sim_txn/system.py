"""The simulated store as a system under test: the first node is the primary, and all others are replicas."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.sim.system import STATUS_TIMEOUT_S, SimSystem
from clusters.systems.sim_txn import messages
from clusters.systems.sim_txn.client import SimTxnClient
from clusters.systems.sim_txn.options import ReadsFrom, SimTxnOptions
from clusters.systems.sim_txn.outcomes import ANSWERS
from clusters.systems.sim_txn.primary import ROLE as PRIMARY
from clusters.systems.sim_txn.primary import Primary
from clusters.systems.sim_txn.replica import ROLE as REPLICA
from clusters.systems.sim_txn.replica import Replica
from clusters.systems.transactions import LIST_APPEND, RW_REGISTER
from harness.service import NodeStatus, first_status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.sim.cluster import SimCluster
    from clusters.sim.host import Factory, Host, Process
    from harness.node import Node
    from harness.node_states import NodeState


class SimTxn(SimSystem):
    """Nodes of Labrys' own transactional store in the simulator."""

    name = "sim-txn"
    summary = "The transactional store of Labrys for the simulator, with levels of isolation, correct or with one planted bug."
    Options = SimTxnOptions
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        dict.fromkeys(
            (LIST_APPEND, RW_REGISTER),
            "txn is a request for each micro-operation and one for the commit, at the primary",
        )
    )
    answers = ANSWERS

    def __init__(self, cluster: SimCluster, options: SimTxnOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options
        first, *rest = (node.name for node in cluster.nodes)
        self._primary = first
        self._replicas = rest
        self._clients = itertools.count()

    def factory(self, node: Node) -> Factory:
        """Returns the function that makes the process of a node."""
        options, primary = self._options, self._primary

        def make(host: Host) -> Process:
            return Primary(host, options) if node.name == primary else Replica(host, options, primary)

        return make

    def client(self, process: int, node: Node, *, pinned: bool = False) -> SimTxnClient:  # noqa: ARG002 - by turn
        """Returns the client of a process. Its replica is the next one in turn."""
        replicas = self._replicas if self._options.reads_from is ReadsFrom.REPLICA else []
        place = next(self._clients)
        return SimTxnClient(
            connection=self.connect(process),
            node=node,
            primary=self._primary,
            replica=replicas[place % len(replicas)] if replicas else None,
            options=self._options,
        )

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a node's status; none if it does not answer in time."""
        status = await self.ask(node, messages.AskStatus(), timeout_s)
        if not isinstance(status, messages.Status):
            return ()
        return (NodeStatus(node=node.name, role=status.role, leader=status.leader, applied_index=status.applied),)

    def node_state(self, node: Node, key: str | None) -> NodeState:
        """Returns the state of a node, with the number of its last commit."""
        basic = super().node_state(node, key)
        match self.world.machines[node.name].process:
            case Primary(store=store):
                return replace(basic, role=PRIMARY, last=len(store.records))
            case Replica(store=store):
                return replace(basic, role=REPLICA, last=len(store.records))
        return basic

    async def lacking(self, nodes: Sequence[Node]) -> str | None:
        """Returns which nodes do not answer; None: all do."""
        statuses = await asyncio.gather(*(first_status(self, node, STATUS_TIMEOUT_S) for node in nodes))
        silent = [node.name for node, status in zip(nodes, statuses, strict=True) if status is None]
        return f"{', '.join(silent)} does not answer" if silent else None
