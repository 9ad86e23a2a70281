"""The options of the queue workload."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.declare import hold_bounds, option


class Delivery(enum.StrEnum):
    """How often a correct queue delivers an acknowledged value."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"


class Order(enum.StrEnum):
    """The order that a correct queue keeps."""

    NONE = "none"
    PRODUCER = "producer"
    REALTIME = "realtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The options of the queue workload.

    The default of `delivery` is the rule of Jepsen's total-queue: it counts values that come out twice, but does not regard
    them as anomalies.
    """

    delivery: Delivery = option(
        Delivery.AT_LEAST_ONCE,
        "How often the queue must deliver an acknowledged value; at-least-once allows duplicates, and counts them.",
        judges=True,
    )
    order: Order = option(
        Order.NONE,
        "The order that the queue must keep. producer: that of each producer. realtime: that of all enqueues.",
        judges=True,
    )
    queues: int = option(3, "The number of queues; all clients use each of them.", low=1, high=10_000, shrinks_to=1)
    enqueue_share: float = option(
        0.5, "The share of operations that are enqueues; the others are dequeues.", low=0, high=1, above=True
    )

    def __post_init__(self) -> None:
        hold_bounds(self)
