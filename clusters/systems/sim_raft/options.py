"""The options of the simulated Raft."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusters.kit.routing import Routing
from clusters.systems.sim_raft.bugs import TABLE, Bug
from harness.declare import option


class Reads(enum.StrEnum):
    """How a leader makes sure that a read is recent; see `reads`."""

    READ_INDEX = "read-index"
    LEASE = "lease"
    LOG = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimRaftOptions:
    """How the nodes and their clients are configured."""

    reads: Reads = option(
        Reads.READ_INDEX,
        "How a leader makes sure that a read is recent. read-index: it asks a quorum whether it still leads. lease: it trusts "
        "its lease. log: it appends the read to the log.",
    )
    pre_vote: bool = option(
        default=True, help="A node starts an election only if a majority would vote for it.", hunted=(True, False)
    )
    heartbeat_ms: int = option(100, "The heartbeat interval of the leader.", low=1, high=60_000)
    election_ms: int = option(
        400,
        "The minimum election timeout; each timeout is random, up to twice as long.",
        low=2,
        high=600_000,
    )
    snapshot_entries: int = option(
        20, "The number of log entries between snapshots; 0: no snapshots.", low=0, high=1_000_000, hunted=(5, 20, 100)
    )
    batch: int = option(16, "The maximum number of entries in one message.", low=1, high=1000)
    routing: Routing = option(
        Routing.MIXED, "pinned: a client stays at its node. leader: it follows the leader. mixed: half of them do each."
    )
    retry_ms: int = option(
        500, "The time without an answer after which a client repeats its request.", low=1, high=60_000
    )
    attempts: int = option(3, "The maximum number of times that a client sends one request.", low=1, high=100)
    patience_ms: int = option(
        0,
        "The time for which a client repeats a request that nodes refuse because they do not lead.",
        low=0,
        high=600_000,
        hunted=(0, 300, 1000),
    )
    bug: Bug = option(
        Bug.NONE,
        "The planted bug; clusters/systems/sim_raft/README.md describes them.",
        needs={bug: planted.needs for bug, planted in TABLE.items()},
    )

    @property
    def bugs(self) -> frozenset[Bug]:
        """Returns the planted bugs; at most one here."""
        return frozenset({self.bug} - {Bug.NONE})

    def __post_init__(self) -> None:
        if self.election_ms < 2 * self.heartbeat_ms:
            raise ValueError(
                f"expected an election timeout of at least two heartbeat intervals, found {self.election_ms} ms with an "
                f"interval of {self.heartbeat_ms} ms"
            )
