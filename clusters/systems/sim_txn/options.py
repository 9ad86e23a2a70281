"""The options of the simulated store."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusters.systems.sim_txn.bugs import TABLE, Bug
from harness.declare import option


class Isolation(enum.StrEnum):
    """The level of transactions on the primary."""

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"
    READ_COMMITTED = "read-committed"


class ReadsFrom(enum.StrEnum):
    """The node that a transaction which only reads asks."""

    PRIMARY = "primary"
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
        ReadsFrom.PRIMARY,
        "primary: each transaction runs on the primary. replica: a transaction that only reads asks a replica, which may be "
        "behind.",
    )
    fetch_ms: int = option(50, "The time between two requests of a replica for commits.", low=1, high=60_000)
    answer_ms: int = option(300, "The time that a client of Labrys waits for an answer.", low=1, high=60_000)
    commit_attempts: int = option(
        3, "How often a client sends a commit until it has an answer.", low=1, high=100, hunted=(1, 3)
    )
    bug: Bug = option(
        Bug.NONE,
        "The planted bug; docs/sim-txn.md describes them.",
        needs={bug: planted.needs for bug, planted in TABLE.items()},
    )
