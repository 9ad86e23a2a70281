"""The simulated store as a system under test: nodes that elect a leader, which carries out the transactions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.kit.contracts import served
from clusters.sim import asking
from clusters.sim.system import EVERY_NODE_RETURNS, ONE_LEADER, SimSystem
from clusters.systems.sim_txn import messages
from clusters.systems.sim_txn.client import CLIENTS
from clusters.systems.sim_txn.node import StoreNode
from clusters.systems.sim_txn.options import SimTxnOptions
from clusters.systems.sim_txn.outcomes import ANSWERS
from clusters.systems.sim_txn.promises import promises
from harness.promise import Handling, OnDamage
from harness.service import NodeStatus
from harness.traits import Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.sim.cluster import SimCluster
    from clusters.sim.host import Factory, Host, Process
    from clusters.systems.sim_txn.client import SimTxnTransactions
    from harness.node import Node
    from harness.node_states import NodeState
    from harness.promise import Promise


class SimTxn(SimSystem):
    """Nodes of Labrys' own transactional store in the simulator."""

    name = "sim-txn"
    summary = "The transactional store of Labrys for the simulator, with levels of isolation, correct or with one planted bug."
    tier = Tier.BENCH
    Options = SimTxnOptions
    options: SimTxnOptions
    serves = served(CLIENTS)
    answers = ANSWERS
    # A process ends by an error of its disk. It writes all files again when it starts.
    lacks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    on_damage = OnDamage(
        handling=Handling.REFUSES,
        sentence="A node verifies the checksums of its files, and repairs a file from its copy. If both are damaged, it "
        "takes no part any more.",
        source="Labrys, sim-txn, clusters/systems/sim_txn/README.md",
    )
    every_node_returns = EVERY_NODE_RETURNS
    one_leader_per_term = ONE_LEADER

    def __init__(self, cluster: SimCluster, options: SimTxnOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._clients = itertools.count()

    @classmethod
    def promises(cls, options: SimTxnOptions) -> Mapping[str, Promise]:
        """Returns what Labrys' transactional store promises to each workload."""
        return promises(options)

    def factory(self, node: Node) -> Factory:  # noqa: ARG002 - the same on all nodes
        """Returns the function that makes the process of a node."""

        def make(host: Host) -> Process:
            return StoreNode(host, self.options)

        return make

    def client(self, process: int, node: Node, *, pinned: bool = False) -> SimTxnTransactions:  # noqa: ARG002 - by turn
        """Returns the client of a process. It asks the next node in turn first."""
        return CLIENTS[self.workload](
            connection=self.connect(process),
            node=node,
            nodes=[other.name for other in self.cluster.nodes],
            first=next(self._clients),
            options=self.options,
        )

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a node's status; none if it does not answer in time."""
        status = await self.ask_for(node, asking.AskStatus(), messages.Status, timeout_s)
        if status is None:
            return ()
        return (
            NodeStatus(
                node=node.name,
                role=status.role,
                term=status.term,
                leader=status.leader,
                committed_index=status.committed,
                last_index=status.last,
            ),
        )

    def node_state(self, node: Node, key: str | None) -> NodeState:
        """Returns the state of a node, with its term and its last record."""
        basic = super().node_state(node, key)
        process = self.world.machines[node.name].process
        if not isinstance(process, StoreNode):
            return basic
        last, last_term = process.store.last_record()
        return replace(
            basic,
            role=process.role,
            term=process.store.term,
            last=last,
            last_term=last_term,
            committed=process.committed,
        )
