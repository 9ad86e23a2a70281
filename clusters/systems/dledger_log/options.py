"""What can be chosen about DLedger's log."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusters.systems.dledger.options import Routing
from harness.declare import option


class LogRead(enum.StrEnum):
    """How a client reads the log. `get` promises nothing: it is the negative control."""

    BARRIER = "barrier"
    GET = "get"


@dataclass(frozen=True, slots=True, kw_only=True)
class DLedgerLogOptions:
    """How the nodes and their clients are configured."""

    log_read: LogRead = option(
        LogRead.BARRIER,
        "How a client reads the log: barrier gets the entries below a committed marker of its own, and is linearizable; get "
        "takes what the node that calls itself leader has, old or not committed, and is the negative control.",
    )
    gets_in_flight: int = option(
        64, "The most requests that a read has in flight; the library gives out one entry for each.", low=1, high=4096
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
    data_file_bytes: int = option(4 * 1024 * 1024, "The size of one log file.", low=4096, high=1 << 30)
