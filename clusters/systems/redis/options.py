"""The options of Redis' servers, sentinels and clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.declare import option


class Asks(enum.StrEnum):
    """The server that a client asks."""

    MASTER = "master"
    OWN = "own"


class QueueBy(enum.StrEnum):
    """The type of Redis that holds a queue."""

    LIST = "list"
    STREAM = "stream"


class TransactionsBy(enum.StrEnum):
    """How a client carries out a transaction."""

    SCRIPT = "script"
    COMMANDS = "commands"


class Fsync(enum.StrEnum):
    """When a server writes its append-only file to the disk."""

    ALWAYS = "always"
    EVERYSEC = "everysec"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """How the servers, the sentinels and the clients are configured."""

    asks: Asks = option(
        Asks.MASTER,
        "master: a client asks a sentinel for the master, and goes there. own: it stays at its node; a replica answers reads "
        "from its own state, and refuses writes.",
    )
    replicas_acknowledge: int = option(
        0,
        "The number of replicas that must have a write before it counts as acknowledged (WAIT); with fewer it is info.",
        low=0,
        high=8,
    )
    min_replicas: int = option(
        0,
        "The number of connected replicas without which a master refuses writes (min-replicas-to-write).",
        low=0,
        high=8,
    )
    fsync: Fsync = option(Fsync.EVERYSEC, "When a server writes its append-only file to the disk (appendfsync).")
    fencing: bool = option(
        default=True, help="Whether an acquire of a lock returns a token, from a counter beside the lock."
    )
    queue_by: QueueBy = option(
        QueueBy.LIST,
        "list: a queue is a list; a dequeue removes the value before the client has it. stream: a queue is a stream with a "
        "group of consumers; a client acknowledges a value after it has it.",
    )
    transactions_by: TransactionsBy = option(
        TransactionsBy.SCRIPT,
        "script: a transaction is one script, and no other command runs in between. commands: each micro-operation is a "
        "command of its own; a negative control.",
    )
    down_after_ms: int = option(
        1000, "Milliseconds without an answer after which a sentinel takes a server for down.", low=100, high=60_000
    )
    failover_ms: int = option(5000, "Milliseconds of sentinels for one failover.", low=500, high=600_000)
