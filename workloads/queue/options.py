"""What can be chosen about the queue workload."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


class Delivery(enum.StrEnum):
    """How often an acknowledged value comes out of a correct queue."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"


class Order(enum.StrEnum):
    """Which order a correct queue keeps."""

    NONE = "none"
    PRODUCER = "producer"
    REALTIME = "realtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The options of the queue workload.

    The default of `delivery` is what Jepsen's total-queue holds a queue to: a value that comes out twice is counted, and is no
    anomaly.
    """

    delivery: Delivery = option(
        Delivery.AT_LEAST_ONCE,
        "How often an acknowledged value must come out; with at-least-once, a value that comes out twice is only counted.",
        judges=True,
    )
    order: Order = option(
        Order.NONE,
        "The order that the queue must keep: none, that of each producer, or that of all enqueues in real time.",
        judges=True,
    )
    queues: int = option(3, "Queues that are used, each by all clients.", low=1, high=10_000)
    enqueue_share: float = option(
        0.5, "The share of operations that are enqueues; the others are dequeues.", low=0, high=1, above=True
    )

    def __post_init__(self) -> None:
        if self.queues < 1 or not 0 < self.enqueue_share <= 1:
            raise InputError(
                f"expected one queue or more, and a share of enqueues above 0 and up to 1, not {self.queues} and "
                f"{self.enqueue_share}; without enqueues nothing can be seen"
            )
