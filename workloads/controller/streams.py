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
    from workloads.controller.options import BrokerIdOptions, ElectOptions

HALF = 0.5


class BrokerIdStream:
    """Draws the operations of one stream of the workload of broker ids, one after the other."""

    def __init__(self, options: BrokerIdOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._group = group_of(number, streams, options.ops_per_group)
        self._check = check_code(number)
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


class ElectStream:
    """Draws the operations of one stream of the workload of elections, one after the other; its broker has one id."""

    def __init__(self, options: ElectOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._group = group_of(number, streams, options.ops_per_group)
        self._id = 1 + number % options.brokers
        self._check = check_code(number)
        self._count = 0

    def next(self) -> Invocation:
        """Draws the next operation; the first one in a group asks for the id."""
        kind, place = self._draws.random(), self._draws.random()
        key = self._group.key(self._count)
        is_first = not self._count or key != self._group.key(self._count - 1)
        self._count += 1
        if is_first or kind < self._options.apply_share:
            return Invocation("apply", {"id": self._id, "check": self._check}, key)
        if kind < self._options.apply_share + self._options.replica_share:
            return Invocation("replica", None, key)
        return Invocation("elect", {"id": self._id, "designate": place < HALF}, key)


def check_code(number: int) -> str:
    """Returns the check code of a stream's broker: `address;timestamp`."""
    return f"broker-{number}:10911;{number}"
