"""The options of RocketMQ's brokers and of their clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clusters.kit.routing import Routing
from clusters.systems.rocketmq.bodies import Sizes, parse_sizes
from clusters.systems.rocketmq.broker_outcomes import REFUSED, REFUSED_BY_DLEDGER
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from harness.declare import option
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Mode(enum.StrEnum):
    """How the brokers replicate."""

    CONTROLLER = "controller"
    DLEDGER_COMMITLOG = "dledger-commitlog"


class Sends(enum.StrEnum):
    """How a producer sends its messages."""

    PLAIN = "plain"
    BATCHES = "batches"
    TRANSACTIONS = "transactions"


class Flush(enum.StrEnum):
    """When a broker syncs a message to its disk."""

    ASYNC = "async"
    SYNC = "sync"


@dataclass(frozen=True, slots=True, kw_only=True)
class RocketMQOptions:
    """How the brokers, their controllers and their clients are configured."""

    rocketmq_version: Literal["5.3.3", "5.5.0", "5.2.0", "5.1.4"] = option(
        "5.3.3", "The release of RocketMQ; the controllers of 5.1.4 have no jraft.", releases=True
    )
    mode: Mode = option(
        Mode.CONTROLLER,
        "controller: controllers elect the master, which replicates to its sync set. dledger-commitlog: the commit log of the "
        "brokers is a DLedger group, and there are no controllers.",
    )
    consensus: Consensus = option(Consensus.DLEDGER, "The consensus library of the controllers.")
    flush: Flush = option(
        Flush.ASYNC,
        "async: a broker syncs messages to its disk in the background, so a power loss of the whole sync set can lose "
        "acknowledged ones. sync: it does so before it answers.",
    )
    min_in_sync_replicas: int = option(
        2,
        "The members of the sync set, with the master, without which a master refuses messages; with 1, acknowledged messages "
        "can be on the master alone.",
        low=1,
        high=9,
    )
    transient_store_pool: bool = option(
        default=False,
        help="Whether a master first keeps messages in memory of its own. They are lost if its process ends before they are in "
        "the file.",
    )
    message_queues: int = option(
        4, "The message queues of each queue; a producer always sends to the same one.", low=1, high=100
    )
    body_bytes: str = option(
        "0",
        "The size of the body of a message in bytes: a number, or a range such as 100-65536. 0: as short as possible.",
        metavar="BYTES|LOW-HIGH",
    )
    routing: Routing = option(
        Routing.MIXED,
        "pinned: a client stays at the broker of its node. leader: it goes to the master in its route. mixed: half of them do "
        "each.",
    )
    route_interval_s: float = option(
        30.0, "The seconds after which a client asks a name server for the route again.", low=0.1, high=3600
    )

    sends: Sends = option(
        Sends.PLAIN,
        "plain: each message in a request of its own. batches: the clients that follow the route share batches. transactions: "
        "a half message, and then the commit; each fifth one is rolled back.",
    )
    hold_ms: int = option(
        20,
        "The milliseconds for which a batch collects messages, or between a half message and the end of its transaction.",
        low=0,
        high=10_000,
    )

    def __post_init__(self) -> None:
        self.of_controllers()  # it refuses what does not go together
        self.sizes()
        if self.mode is Mode.DLEDGER_COMMITLOG:
            self._refuse_other_modes()

    def _refuse_other_modes(self) -> None:
        """Raises an `InputError` if an option has a value that has no effect on a commit log on DLedger."""
        of_controller_mode = {
            "--consensus": self.consensus is not Consensus.DLEDGER,
            "--flush": self.flush is not Flush.ASYNC,
            "--min-in-sync-replicas": self.min_in_sync_replicas != 2,
            "--transient-store-pool": self.transient_store_pool,
        }
        given = [name for name, is_set in of_controller_mode.items() if is_set]
        if given:
            raise InputError(
                f"{given[0]} is for --mode controller; a commit log on DLedger has no sync set and no controllers, and DLedger "
                "itself writes it to the disk"
            )

    def refusals(self) -> Mapping[int, Sequence[str]]:
        """Returns the refusals of a send that are certain; see `broker_outcomes`."""
        return REFUSED_BY_DLEDGER if self.mode is Mode.DLEDGER_COMMITLOG else REFUSED

    def sizes(self) -> Sizes:
        """Returns the sizes of bodies.

        Raises:
            InputError: They are not sizes.
        """
        return parse_sizes(self.body_bytes)

    def of_controllers(self) -> ControllerOptions:
        """Returns the options of the controllers.

        Raises:
            InputError: The release lacks the library.
        """
        return ControllerOptions(consensus=self.consensus, rocketmq_version=self.rocketmq_version)
