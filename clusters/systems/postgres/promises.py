"""What PostgreSQL promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.transactions import LIST_APPEND, RW_REGISTER
from clusters.systems.postgres.options import Asks, Level, PostgresOptions
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

ISOLATION: Final = (
    "PostgreSQL 15 documentation, 13.2 Transaction Isolation, https://www.postgresql.org/docs/15/transaction-iso.html"
)
# PostgreSQL's repeatable read is snapshot isolation.
LEVELS: Final = {
    Level.SERIALIZABLE: "serializable",
    Level.REPEATABLE_READ: "snapshot-isolation",
    Level.READ_COMMITTED: "read-committed",
}


def promises(options: PostgresOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    isolation = options.isolation
    standby = ""
    if options.reads_from is Asks.STANDBY:
        standby = " A standby shows a state that the primary had, and has no serializable transactions."
        isolation = Level.REPEATABLE_READ if isolation is Level.SERIALIZABLE else isolation
    level = LEVELS[isolation]
    lost = (
        "" if options.synchronous_commit else " A crash loses the last transactions, although they were acknowledged."
    )
    promise = Promise(
        sentence=f"Transactions of the level {options.isolation.sql} are {level}.{standby}{lost}",
        source=ISOLATION,
        options={"consistency_model": level},
    )
    return dict.fromkeys((LIST_APPEND, RW_REGISTER), promise)
