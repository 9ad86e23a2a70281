"""The options of ZooKeeper's nodes and clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from harness.declare import option


class Reads(enum.StrEnum):
    """What a client does before a node answers its read from the node's own state."""

    SYNC = "sync"
    QUORUM = "quorum"
    LOCAL = "local"


class Checks(enum.StrEnum):
    """Which znodes of a transaction a multi checks."""

    ALL = "all"
    WRITTEN = "written"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperOptions:
    """How the nodes and their clients are configured."""

    zookeeper_version: Literal["3.9.3", "3.9.5", "3.9.4", "3.9.2", "3.8.4", "3.4.12", "3.4.11"] = option(
        "3.9.3", "The release of ZooKeeper.", releases=True
    )
    zookeeper_reads: Reads = option(
        Reads.SYNC,
        "sync: a node catches up with the leader before a read. quorum: a write of the client precedes its read. local: a node "
        "answers from its own state, which may be old; a negative control.",
    )
    zookeeper_checks: Checks = option(
        Checks.ALL,
        "What a transaction of list-append or rw-register checks at its end. all: the version of every key that it read, for "
        "strict serializability. written: of the keys that it writes; it loses no update, and reads are of different moments.",
    )
    force_sync: bool = option(
        default=True,
        help="Whether a node syncs its log to the disk before it acknowledges a change; without it, a power loss of all nodes "
        "loses acknowledged writes.",
    )
    trust_empty_snapshot: bool = option(
        default=False,
        help="Whether a node starts that has a log and no snapshot. Without it, an early power loss can end a node for good.",
    )
    fencing: bool = option(
        default=True,
        help="Whether an acquire of a lock returns the number of the holder's child, as a fencing token.",
    )
    tick_ms: int = option(
        200, "Milliseconds of a tick; sessions last at most 20 ticks, and a leader waits 10 ticks.", low=50, high=10_000
    )
    snapshot_count: int = option(
        10_000, "The approximate number of changes between snapshots of a node.", low=10, high=1_000_000_000
    )
