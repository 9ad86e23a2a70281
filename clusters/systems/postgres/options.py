"""The options of PostgreSQL's servers and clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.declare import option


class Level(enum.StrEnum):
    """The isolation level of the transactions on the primary."""

    SERIALIZABLE = "serializable"
    REPEATABLE_READ = "repeatable-read"
    READ_COMMITTED = "read-committed"

    @property
    def sql(self) -> str:
        """Returns its name in SQL."""
        return self.value.replace("-", " ").upper()


class Asks(enum.StrEnum):
    """The server that a transaction which only reads asks."""

    PRIMARY = "primary"
    STANDBY = "standby"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """How the servers and the clients are configured."""

    isolation: Level = option(
        Level.SERIALIZABLE,
        "The isolation level of each transaction. A standby has no serializable transactions; there, it is repeatable-read.",
    )
    reads_from: Asks = option(
        Asks.PRIMARY,
        "primary: each transaction runs on the primary. standby: a transaction that only reads runs on a hot standby, which "
        "may be behind.",
    )
    deadlock_ms: int = option(
        200,
        "Milliseconds that a transaction waits for a lock before a server looks for a deadlock.",
        low=1,
        high=60_000,
    )
    synchronous_commit: bool = option(
        default=True,
        help="Whether a server syncs the log before it acknowledges a COMMIT. Otherwise a crash loses the last transactions.",
    )
