"""DLedger's own log as a system under test: plain servers of the library, without a state machine.

A plain server reports less than a node of the system `dledger`. It reports its leader and its term, but not its commit index,
and only a leader returns entries. So:

- a leader serves once it has committed a marker, which readers skip;
- a follower shows its entries only as leader, so the final reads go through each node as leader;
- replicas cannot be compared at rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.kit.contracts import served
from clusters.systems.dledger.nodes import DLedgerNodes
from clusters.systems.dledger.protocol import SUCCESS
from clusters.systems.dledger_log.client import ANSWER_TIMEOUT_S, CLIENTS
from clusters.systems.dledger_log.entries import BARRIER
from clusters.systems.dledger_log.options import DLedgerLogOptions, LogRead
from clusters.systems.dledger_log.promises import promises
from harness.errors import InputError
from harness.service import NodeStatus
from harness.traits import Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.protocol import Peer
    from clusters.systems.dledger_log.client import EntryClient
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise


class DLedgerLogSystem(DLedgerNodes):
    """Plain servers of the library, on a cluster."""

    name = "dledger-log"
    summary = "The log of DLedger, a Raft library in Java, without a state machine."
    tier = Tier.FINDING
    Options = DLedgerLogOptions
    simulator_class = "clusters.systems.dledger_log.simulated:SimDLedgerLog"
    serves = served(CLIENTS)

    def __init__(self, cluster: Cluster, options: DLedgerLogOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options

    @classmethod
    def promises(cls, options: DLedgerLogOptions) -> Mapping[str, Promise]:
        """Returns what the log of DLedger promises to each workload."""
        return promises(options)

    def refuse_options(self) -> None:
        """Refuses reads that follow the log.

        A client asks for many offsets at once, so a read can lack an entry that was committed a moment later, and have a higher
        one.

        Raises:
            InputError: Reads must follow the log.
        """
        if getattr(self.workload_options, "follow", False):
            raise InputError(
                "a client of dledger-log does not read a range in the order of its offsets; leave out --follow"
            )

    def arguments(self) -> Sequence[str]:
        """Returns the arguments that turn off the state machine."""
        return ("--state-machine", "none")

    def client(self, process: int, node: Node, *, pinned: bool = False) -> EntryClient:
        """Returns the client of a process."""
        return CLIENTS[self.workload](
            group=self.group,
            node=node,
            barrier=self._options.log_read is LogRead.BARRIER,
            window=self._options.gets_in_flight,
            follows=not pinned and self._options.routing.follows(process, len(self.group.nodes)),
        )

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a node's term and the leader that it knows; none if it does not answer in time.

        Its role follows from the leader: a node that names itself believes that it is the leader.
        """

        async def view(peer: Peer) -> NodeStatus:
            term = await peer.term()
            while True:
                leader = await peer.leader()
                before, term = term, await peer.term()
                if before == term:  # so the leader belongs to this term
                    break
            role = "leader" if leader == node.name else "candidate" if leader is None else "follower"
            return NodeStatus(node=node.name, role=role, term=term, leader=leader)

        status = await self.ask(node, timeout_s, view)
        return () if status is None else (status,)

    async def is_serving(self, status: NodeStatus) -> bool:
        """Appends a marker, and returns whether the leader commits it."""
        answer = await self.ask(self.node(status.node), ANSWER_TIMEOUT_S, lambda peer: peer.append(BARRIER))
        return answer is not None and answer.body.get("code") == SUCCESS
