"""The options of DLedger."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from clusters.kit.routing import Routing
from clusters.systems.dledger import mends
from harness.declare import option
from harness.errors import InputError

VERSION: Final = "0.4.0"  # of the library that has registers, and whose findings have mends


class ReadMode(enum.StrEnum):
    """How a node makes sure that a read is recent. `unsafe` skips this, as a negative control."""

    READ_INDEX = "read-index"
    RAFT_LOG = "raft-log"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True, kw_only=True)
class DLedgerOptions:
    """How the nodes and their clients are configured."""

    read_mode: ReadMode = option(
        ReadMode.READ_INDEX,
        "How a node makes sure that a read is recent; unsafe skips this, as a negative control.",
    )
    routing: Routing = option(
        Routing.MIXED, "pinned: a client stays at its node. leader: it follows the leader. mixed: half of them do each."
    )
    snapshot_threshold: int = option(
        0, "The number of log entries between snapshots; 0: no snapshots.", low=0, high=1_000_000
    )
    snapshot_ms: int = option(
        0,
        "The least time in which a node saves a snapshot, as one with a large state does. Meanwhile it applies no entry.",
        low=0,
        high=60_000,
    )
    heartbeat_ms: int = option(
        500,
        "The heartbeat interval of the leader; an election starts after three missed heartbeats.",
        low=20,
        high=60_000,
    )
    vote_ms: int = option(
        1000,
        "The maximum wait of a candidate before its next vote, in milliseconds; the minimum is 0.3 of it. Slow nodes need "
        "more, or their elections never end.",
        low=20,
        high=600_000,
    )
    data_file_bytes: int = option(4 * 1024 * 1024, "The size of one log file.", low=4096, high=1 << 30)
    mend: str = option(
        "", mends.DLEDGER.help, repairs=mends.DLEDGER.further, patch=mends.patch, metavar="FINDINGS", shown=False
    )

    @property
    def library_version(self) -> str:
        """Returns the version of the library; earlier ones have neither the reads nor the answers that registers need."""
        return VERSION

    def __post_init__(self) -> None:
        mends.DLEDGER.chosen(self.mend)
        if self.snapshot_ms and not self.snapshot_threshold:
            raise InputError("--snapshot-ms needs --snapshot-threshold, the number of entries between snapshots")
