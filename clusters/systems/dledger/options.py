"""What can be chosen about DLedger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class DLedgerOptions:
    """How the nodes and their clients are configured."""

    read_mode: Literal["read-index", "raft-log", "unsafe"] = option(
        "read-index", "How a node makes sure that a read is recent; unsafe does not, and is the negative control."
    )
    routing: Literal["mixed", "pinned", "leader"] = option(
        "mixed", "Whether clients stay at their node, follow the leader, or half and half."
    )
    snapshot_threshold: int = option(0, "Log entries between snapshots; 0 makes none.", low=0, high=1_000_000)
    heartbeat_ms: int = option(
        500, "The leader's heartbeat interval; an election starts after three missed ones.", low=20, high=60_000
    )
    data_file_bytes: int = option(4 * 1024 * 1024, "The size of one log file.", low=4096, high=1 << 30)
