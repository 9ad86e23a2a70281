"""The options of bookies, of their metadata and of the client processes."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Literal

from harness.declare import hold_bounds, option
from harness.errors import InputError

MOST_ENTRIES: Final = 1000  # of a ledger, so that offsets of a log tell the ledger and the entry


class Digest(enum.StrEnum):
    """How a client protects each entry against changes."""

    CRC32C = "crc32c"
    CRC32 = "crc32"
    MAC = "mac"
    DUMMY = "dummy"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookKeeperOptions:
    """How bookies and clients are configured."""

    bookkeeper_version: Literal["4.17.3", "4.17.2"] = option("4.17.3", "The release of BookKeeper.", releases=True)
    ensemble: int = option(3, "The bookies of a fragment.", low=1, high=9)
    write_quorum: int = option(3, "The bookies that get each entry.", low=1, high=9)
    ack_quorum: int = option(2, "The bookies that must have an entry before it is acknowledged.", low=1, high=9)
    digest: Digest = option(Digest.CRC32C, "The checksum of each entry.")
    journal_sync: bool = option(
        default=True,
        help="Whether a bookie syncs its journal before it acknowledges an entry; without it, a power loss can lose "
        "acknowledged entries.",
    )
    journal_data: bool = option(
        default=True,
        help="Whether entries are in the journal; without it, a bookie acknowledges entries in its memory.",
    )
    memtable_bytes: int = option(
        4_194_304,
        "The bytes of entries that a bookie sorts in memory before it writes them; adds wait while twice as many are there.",
        low=1024,
        high=33_554_432,
    )
    delay_ensemble_change: bool = option(
        default=False, help="Whether a writer keeps a failed bookie until its entries lack an ack quorum."
    )
    ledger_entries: int = option(
        MOST_ENTRIES,
        "The entries of a ledger of a log, after which its writer begins the next.",
        low=1,
        high=MOST_ENTRIES,
    )
    take_over: float = option(
        0.01, "The share of appends before which a client recovers the log and becomes its writer.", low=0, high=1
    )
    zookeepers: Literal["1", "3"] = option("1", "The servers of ZooKeeper, on the first nodes.")
    client_nodes: int = option(2, "The client processes, on the last nodes; bookies are on all others.", low=1, high=9)
    zookeeper_timeout_ms: int = option(
        4000, "The session of bookies and clients in milliseconds.", low=400, high=60_000
    )

    zookeeper_apart: bool = option(
        default=False,
        help="Whether the nodes of ZooKeeper have no bookie, so that a fault can cut a node off from ZooKeeper only.",
    )
    auto_recovery: int = option(
        0, "The processes that copy what lost bookies had, on the first nodes with bookies.", low=0, high=9
    )
    auto_recovery_grace_ms: int = option(
        2000, "How long auto-recovery leaves an open ledger with a lost bookie to its writer.", low=0, high=600_000
    )

    def __post_init__(self) -> None:
        hold_bounds(self)
        if not self.ensemble >= self.write_quorum >= self.ack_quorum:
            raise InputError(
                "BookKeeper needs --ensemble >= --write-quorum >= --ack-quorum, found "
                f"{self.ensemble}, {self.write_quorum} and {self.ack_quorum}"
            )
