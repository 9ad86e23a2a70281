"""The options of the simulated store."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusters.systems.sim_txn.bugs import TABLE, Bug
from harness.declare import option


class Isolation(enum.StrEnum):
    """The level of transactions on the leader."""

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"
    READ_COMMITTED = "read-committed"


class ReadsFrom(enum.StrEnum):
    """The node that a transaction which only reads asks."""

    LEADER = "leader"
    REPLICA = "replica"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimTxnOptions:
    """How the nodes and the clients of Labrys are configured."""

    isolation: Isolation = option(
        Isolation.SERIALIZABLE,
        "serializable: a commit checks all keys of the transaction, for strict serializability. snapshot: those that it wrote, "
        "for snapshot isolation. read-committed: each read sees the last commits.",
    )
    reads_from: ReadsFrom = option(
        ReadsFrom.LEADER,
        "leader: each transaction runs on the leader. replica: a transaction that only reads asks one node, which may be "
        "behind.",
    )
    heartbeat_ms: int = option(
        50,
        "The time between two messages of a leader to each other node. A node without one for four to eight times as long "
        "asks for votes.",
        low=1,
        high=60_000,
    )
    answer_ms: int = option(300, "The time that a client of Labrys waits for an answer.", low=1, high=60_000)
    commit_attempts: int = option(
        3, "How often a client sends a commit until it has an answer.", low=1, high=100, hunted=(1, 3)
    )
    bug: Bug = option(
        Bug.NONE,
        "The planted bug; clusters/systems/sim_txn/README.md describes them.",
        needs={bug: planted.needs for bug, planted in TABLE.items()},
    )
