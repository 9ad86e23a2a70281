"""DLedger with registers as a system under test."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.kit.contracts import served
from clusters.kit.jvm import STATUS_TIMEOUT_S
from clusters.systems.dledger import mends
from clusters.systems.dledger.client import CLIENTS
from clusters.systems.dledger.nodes import LINES, LOG, DLedgerNodes
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.outcomes import ANSWERS
from clusters.systems.dledger.promises import promises
from harness.process_clock import asked
from harness.service import first_status
from harness.slowness import slowed
from harness.traits import LogLine, Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.client import DLedgerRegisters
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.process_clock import ClockReading
    from harness.promise import Promise
    from harness.service import NodeStatus, ReplicaState


MAX_MILLIS = 2**53  # a larger answer is none that a clock gives


class DLedgerSystem(DLedgerNodes):
    """DLedger nodes with registers, on a cluster."""

    name = "dledger"
    summary = "Registers replicated by DLedger, a Raft library in Java."
    tier = Tier.FINDING
    Options = DLedgerOptions
    simulator_class = "clusters.systems.dledger.simulated:SimDLedger"
    serves = served(CLIENTS)
    log_lines: ClassVar[Mapping[str, LogLine]] = MappingProxyType(
        {
            **LINES,
            "snapshot": LogLine(
                path=LOG,
                pattern="RegisterStateMachine: begins to save a snapshot ",
                meaning="a node begins to save a snapshot; the state machine of Labrys' node logs this, not the library",
            ),
            "snapshot-saved": LogLine(
                path=LOG,
                pattern=r"SnapshotManager: Snapshot .* saved successfully",
                meaning="a node has saved a snapshot, and now drops the entries in it",
            ),
            "snapshot-loaded": LogLine(
                path=LOG,
                pattern=r"SnapshotManager: Snapshot .* loaded successfully",
                meaning="a node has loaded a snapshot, its own or one of the leader",
            ),
        }
    )
    raft_invariants = (
        "In Raft, what a process has committed or applied stays so while it runs, and stays in its log. "
        "A node stores its term."
    )
    stores_term = True
    dumps_replicas = True
    answers = ANSWERS

    def __init__(self, cluster: Cluster, options: DLedgerOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options

    @classmethod
    def promises(cls, options: DLedgerOptions) -> Mapping[str, Promise]:
        """Returns what DLedger promises to each workload."""
        return promises(options)

    def arguments(self) -> Sequence[str]:
        """Returns the arguments that turn on snapshots, if the options do."""
        threshold, least_ms = self._options.snapshot_threshold, self._options.snapshot_ms
        if not threshold:
            return ()
        return ("--snapshot-threshold", str(threshold), *(("--snapshot-ms", str(least_ms)) if least_ms else ()))

    def client(self, process: int, node: Node, *, pinned: bool = False) -> DLedgerRegisters:
        """Returns the client of a process."""
        follows = not pinned and self._options.routing.follows(process, len(self.group.nodes))
        return CLIENTS[self.workload](group=self.group, node=node, read_mode=self._options.read_mode, follows=follows)

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a node's status; none if it does not answer in time.

        The status has the end of the log only with the mend of finding 1. Without it, most elections make the logs of the
        followers lose committed entries for a while.
        """
        status = await self.ask(node, timeout_s, lambda peer: peer.status())
        if status is None:
            return ()
        return (
            status
            if mends.DROPPED_LOGS in mends.DLEDGER.chosen(self._options.mend)
            else replace(status, last_index=None),
        )

    async def clock(self, node: Node, timeout_s: float) -> ClockReading | None:
        """Asks a node for the wall clock of its process."""

        async def ask() -> float | None:
            status = await first_status(self, node, timeout_s)
            said = None if status is None or status.details is None else status.details.get("wallClockMillis")
            return said / 1000 if isinstance(said, int) and abs(said) <= MAX_MILLIS else None

        return await asked(ask, source="its answer to STATUS", resolution_s=0.001)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the registers of a node; None if it does not answer in time."""
        return await self.ask(node, timeout_s, lambda peer: peer.dump())

    async def lead_promptly(self, node: Node, timeout_s: float) -> bool:
        """Moves the leadership like `lead`, after the node has turned off the waits of an ordinary election.

        If the node does not answer that request, the leadership moves at the speed of the library.
        """
        await self.ask(node, slowed(STATUS_TIMEOUT_S), lambda peer: peer.be_prompt())
        return await self.lead(node, timeout_s)

    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether this leader has committed an entry of its own term. Its status has this as `readyTerm`."""
        return status.details is not None and status.details.get("readyTerm") == status.term
