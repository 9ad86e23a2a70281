"""The options of RocketMQ's controllers."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from clusters.kit.routing import Routing
from clusters.systems.rocketmq import mends
from harness.declare import option
from harness.errors import InputError

WITHOUT_JRAFT = ("5.1.4",)


class Consensus(enum.StrEnum):
    """The consensus library of the controllers."""

    DLEDGER = "dledger"
    JRAFT = "jraft"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """How the controllers and their clients are configured."""

    consensus: Consensus = option(Consensus.DLEDGER, "The consensus library of the controllers.")
    rocketmq_version: Literal["5.3.3", "5.5.0", "5.2.0", "5.1.4"] = option(
        "5.3.3", "The release of RocketMQ; 5.1.4 has no jraft.", releases=True
    )
    process_read_event: bool = option(
        default=False,
        help="Controllers on dledger also write reads and refusals to the log; without it, they answer these from memory.",
    )
    routing: Routing = option(
        Routing.MIXED, "pinned: a client stays at its node. leader: it follows the leader. mixed: half of them do each."
    )
    pinned_reads: bool = option(
        default=False,
        help="Every client reads at its own node, and sends all other requests to the leader.",
    )
    snapshot_interval_s: int = option(
        3600, "The seconds between snapshots with jraft; dledger makes no snapshots.", low=1, high=86_400
    )
    election_timeout_ms: int = option(
        1000, "With jraft, the time without a leader after which a controller starts an election.", low=100, high=60_000
    )
    scan_interval_ms: int = option(
        5000, "The interval at which controllers look for dead masters.", low=100, high=86_400_000
    )
    mend: str = option(
        "", mends.CONTROLLER.help, repairs=mends.CONTROLLER.further, patch=mends.patch, metavar="FINDINGS", shown=False
    )

    def __post_init__(self) -> None:
        if mends.CONTROLLER.chosen(self.mend) and self.consensus is Consensus.JRAFT:
            raise InputError("--mend is for --consensus dledger; no finding on jraft has a mend")
        if self.consensus is Consensus.JRAFT and self.rocketmq_version in WITHOUT_JRAFT:
            raise InputError(
                f"RocketMQ {self.rocketmq_version} lacks jraft; use --consensus dledger, or a later release"
            )
        if self.consensus is Consensus.JRAFT and self.process_read_event:
            raise InputError(
                "--process-read-event is for --consensus dledger; controllers on jraft always write reads to the log"
            )
