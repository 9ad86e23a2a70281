"""What can be chosen about RocketMQ's controllers."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from clusters.systems.dledger.options import Routing
from harness.declare import option
from harness.errors import InputError

WITHOUT_JRAFT = ("5.1.4",)


class Consensus(enum.StrEnum):
    """The library by which controllers agree."""

    DLEDGER = "dledger"
    JRAFT = "jraft"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """How the controllers and their clients are configured."""

    consensus: Consensus = option(Consensus.DLEDGER, "The library by which the controllers agree.")
    rocketmq_version: Literal["5.3.3", "5.2.0", "5.1.4"] = option(
        "5.3.3", "The release of RocketMQ; 5.1.4 has no jraft."
    )
    process_read_event: bool = option(
        default=False,
        help="Whether controllers on dledger put reads and refusals through the log, too; else they answer from memory.",
    )
    routing: Routing = option(
        Routing.MIXED, "pinned: a client stays at its node. leader: it follows the leader. mixed: half of them do each."
    )
    pinned_reads: bool = option(
        default=False,
        help="Whether every client reads at its own node, whoever leads, and follows the leader with all else.",
    )
    snapshot_interval_s: int = option(
        3600, "Seconds between snapshots of controllers on jraft; those on dledger make none.", low=1, high=86_400
    )
    election_timeout_ms: int = option(
        1000, "After this without a leader a controller on jraft stands for election.", low=100, high=60_000
    )
    scan_interval_ms: int = option(
        5000, "How often controllers look for masters that are not alive.", low=100, high=86_400_000
    )

    def __post_init__(self) -> None:
        if self.consensus is Consensus.JRAFT and self.rocketmq_version in WITHOUT_JRAFT:
            raise InputError(
                f"RocketMQ {self.rocketmq_version} has no jraft; take --consensus dledger, or a later release"
            )
        if self.consensus is Consensus.JRAFT and self.process_read_event:
            raise InputError("controllers on jraft put every read through the log; --process-read-event is for dledger")
