"""DLedger with registers as a system under test."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.systems.dledger.client import DLedgerClient
from clusters.systems.dledger.nodes import DLedgerNodes
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.outcomes import ANSWERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.cluster import Cluster
    from harness.node import Node
    from harness.system import NodeStatus, ReplicaState


class DLedgerSystem(DLedgerNodes):
    """DLedger nodes with registers, on a cluster."""

    name = "dledger"
    summary = "Registers replicated by DLedger, a Raft library in Java."
    Options = DLedgerOptions
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"register": "read, write and cas are GET, PUT and CAS of a replicated map from texts to 64-bit integers"}
    )
    dumps_replicas = True
    answers = ANSWERS

    def __init__(self, cluster: Cluster, options: DLedgerOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options

    def arguments(self) -> Sequence[str]:
        """Returns the arguments that turn on snapshots, if the options do."""
        threshold = self._options.snapshot_threshold
        return ("--snapshot-threshold", str(threshold)) if threshold else ()

    def client(self, process: int, node: Node, *, pinned: bool = False) -> DLedgerClient:
        """Returns the client of a process."""
        follows = not pinned and self._options.routing.follows(process, len(self.group.nodes))
        return DLedgerClient(group=self.group, node=node, read_mode=self._options.read_mode, follows=follows)

    async def status(self, node: Node, timeout_s: float) -> NodeStatus | None:
        """Returns a node's status; None if it does not answer in time."""
        return await self.ask(node, timeout_s, lambda peer: peer.status())

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the registers of a node; None if it does not answer in time."""
        return await self.ask(node, timeout_s, lambda peer: peer.dump())

    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether this leader has committed an entry of its own term. Its status has this as `readyTerm`."""
        return status.details is not None and status.details.get("readyTerm") == status.term
