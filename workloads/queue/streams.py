"""The operations of one stream, drawn from the seed.

The n-th operation of stream `i` depends only on the seed, `i` and `n`, and not on other streams or on the system.
So each operation takes the same number of draws from the stream, in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.op import Invocation
from harness.randomness import stream

if TYPE_CHECKING:
    from workloads.queue.options import QueueOptions


class Stream:
    """Draws the operations of one stream."""

    def __init__(self, options: QueueOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._number = number
        self._streams = streams
        self._count = 0

    def next(self) -> Invocation:
        """Draws the next operation. All enqueued values are distinct."""
        options, random = self._options, self._draws.random
        place, kind = random(), random()
        key = f"q{min(int(place * options.queues), options.queues - 1)}"
        # Above 0, and unique over all streams and operations.
        value = self._count * self._streams + self._number + 1
        self._count += 1
        if kind < options.enqueue_share:
            return Invocation("enqueue", value, key)
        return Invocation("dequeue", None, key)
