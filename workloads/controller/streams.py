"""The operations of one stream, as the seed says.

The law: the n-th operation of stream `i` depends on the seed, `i` and `n` alone. A stream is one broker: in each group it asks
for ids with a check code of its own, so that two streams never own an id together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.op import Invocation
from harness.randomness import stream
from workloads.register.streams import group_of

if TYPE_CHECKING:
    from workloads.controller.options import BrokerIdOptions


class Stream:
    """Draws the operations of one stream, one after the other."""

    def __init__(self, options: BrokerIdOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._group = group_of(number, streams, options.ops_per_group)
        self._check = f"broker-{number}:10911;{number}"
        self._count = 0

    def next(self) -> Invocation:
        """Draws the next operation."""
        kind, place = self._draws.random(), self._draws.random()
        key = self._group.key(self._count)
        self._count += 1
        if kind < self._options.next_share:
            return Invocation("next", None, key)
        if kind < self._options.next_share + self._options.replica_share:
            return Invocation("replica", None, key)
        return Invocation("apply", {"id": 1 + int(place * self._options.ids), "check": self._check}, key)
