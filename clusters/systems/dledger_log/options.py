"""What can be chosen about DLedger's log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class DLedgerLogOptions:
    """How the nodes and their clients are configured."""

    log_read: Literal["barrier", "get"] = option(
        "barrier",
        "How a client reads the log. barrier: it appends a marker, waits until the marker is committed, and gets the entries "
        "below it from the same node; linearizable. get: it gets entries from the node that calls itself the leader, and "
        "nothing more; they may be old or not committed. get is the negative control.",
    )
    routing: Literal["mixed", "pinned", "leader"] = option(
        "mixed", "Whether clients stay at their node, follow the leader, or half and half."
    )
    gets_in_flight: int = option(
        64, "The most requests that a read has in flight; the library gives one entry for each.", low=1, high=4096
    )
    heartbeat_ms: int = option(
        500, "The leader's heartbeat interval; an election starts after three missed ones.", low=20, high=60_000
    )
    data_file_bytes: int = option(4 * 1024 * 1024, "The size of one log file.", low=4096, high=1 << 30)
