"""The options of DLedger's log."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from clusters.kit.routing import Routing
from clusters.systems.dledger import mends
from harness.declare import option


class LogRead(enum.StrEnum):
    """How a client reads the log. `get` has no guarantee, as a negative control."""

    BARRIER = "barrier"
    GET = "get"


@dataclass(frozen=True, slots=True, kw_only=True)
class DLedgerLogOptions:
    """How the nodes and their clients are configured."""

    log_read: LogRead = option(
        LogRead.BARRIER,
        "How a client reads the log. barrier: it appends a marker and reads the entries below, which is linearizable. get: it "
        "reads what the leader has, perhaps stale or uncommitted, as a negative control.",
    )
    gets_in_flight: int = option(
        64, "The maximum number of requests in flight of one read; each request returns one entry.", low=1, high=4096
    )
    routing: Routing = option(
        Routing.MIXED, "pinned: a client stays at its node. leader: it follows the leader. mixed: half of them do each."
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
    library_version: Literal["0.4.0", "0.3.1.2"] = option(
        "0.4.0",
        "The version of DLedger. RocketMQ 5.3.3 uses 0.3.1.2; the node has its remoting too.",
        releases=True,
    )
    mend: str = option(
        "", mends.DLEDGER.help, repairs=mends.DLEDGER.further, patch=mends.patch, metavar="FINDINGS", shown=False
    )

    def __post_init__(self) -> None:
        mends.BY_VERSION[self.library_version].chosen(self.mend)
