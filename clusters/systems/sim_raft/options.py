"""What can be chosen about the simulated Raft."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusters.systems.sim_raft.bugs import Bug
from harness.declare import option


class Reads(enum.StrEnum):
    """How a leader makes sure that a read is recent; see `reads`."""

    READ_INDEX = "read-index"
    LEASE = "lease"
    LOG = "log"


class Routing(enum.StrEnum):
    """Which clients leave their node when it does not lead."""

    PINNED = "pinned"
    LEADER = "leader"
    MIXED = "mixed"

    def follows(self, process: int, nodes: int) -> bool:
        """Returns whether the client of `process` follows the leader; with `mixed`, each node has both kinds of clients."""
        turn = process if nodes % 2 else process + process // nodes
        return self is Routing.LEADER or (self is Routing.MIXED and turn % 2 == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimRaftOptions:
    """How the nodes and their clients are configured."""

    reads: Reads = option(
        Reads.READ_INDEX,
        "How a leader makes sure that a read is recent: it asks a quorum whether it leads, it trusts a lease, or the read "
        "takes the way through the log.",
    )
    pre_vote: bool = option(
        default=True, help="Whether a node asks for votes only after a majority said it would get them."
    )
    heartbeat_ms: int = option(100, "Milliseconds between a leader's heartbeats.", low=1, high=60_000)
    election_ms: int = option(
        400,
        "The least time without a leader before an election; it may be twice as long.",
        low=2,
        high=600_000,
    )
    snapshot_entries: int = option(40, "Log entries between snapshots; 0 makes none.", low=0, high=1_000_000)
    batch: int = option(16, "The most entries in one message.", low=1, high=1000)
    routing: Routing = option(Routing.MIXED, "Whether clients stay at their node, follow the leader, or half and half.")
    retry_ms: int = option(
        500, "Milliseconds after which a client sends a request again that got no answer.", low=1, high=60_000
    )
    attempts: int = option(3, "How often a client sends one request, at most.", low=1, high=100)
    bug: Bug = option(Bug.NONE, "The mistake that the system makes; see docs/sim-raft.md.")

    def __post_init__(self) -> None:
        if self.election_ms < 2 * self.heartbeat_ms:
            raise ValueError(
                f"expected an election timeout of at least two heartbeats, not {self.election_ms} ms with a heartbeat each "
                f"{self.heartbeat_ms} ms"
            )
