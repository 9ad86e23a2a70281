"""The operations of one stream, drawn from the seed.

The n-th operation of stream `i` depends only on the seed, `i` and `n`, and not on other streams or on the system. So each
operation takes the same number of draws from the stream, in the same order. Only the expected value of a compare-and-set on
unique values is not known before the run: it is the latest value in an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from harness.randomness import stream
from workloads.register.options import Values

if TYPE_CHECKING:
    from workloads.register.options import RegisterOptions

SMALL_DOMAIN = 5
# A stream has at least so many operations on a key, so that the operations of several streams overlap there.
MIN_OPS_PER_STREAM = 5


class Draw(NamedTuple):
    """One operation, as far as it is known before the run.

    Attributes:
        f: `read`, `write` or `cas`.
        key: The key.
        value: The written value of a write or a cas; None for a read.
        expected: The expected value of a cas on small values; None if the run determines it.
    """

    f: str
    key: str
    value: int | None
    expected: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of streams that share their keys.

    Attributes:
        number: The number of this group.
        groups: The number of groups.
        share: The number of operations of a stream on each key that is not hot.
    """

    number: int
    groups: int
    share: int

    def key(self, cold: int) -> str:
        """Returns the key of a stream's n-th operation on a key that is not hot."""
        return f"k{cold // self.share * self.groups + self.number}"


def group_of(number: int, streams: int, ops_per_key: int) -> Group:
    """Returns the group of a stream.

    As many streams share a key as the number of operations per key allows. Neighbouring streams are in one group, since they
    use different nodes.
    """
    size = min(streams, max(1, ops_per_key // MIN_OPS_PER_STREAM))
    groups = -(-streams // size)
    return Group(number=number * groups // streams, groups=groups, share=max(1, ops_per_key // (-(-streams // groups))))


class Stream:
    """Draws the operations of one stream."""

    def __init__(self, options: RegisterOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._number = number
        self._streams = streams
        self._group = group_of(number, streams, options.ops_per_key)
        read, write, cas = options.parts
        total = read + write + cas
        self._read_below = read / total
        self._write_below = (read + write) / total
        self._hot_below = options.hot_share if options.hot_keys else 0.0
        self._count = 0
        self._cold = 0

    def next(self) -> Draw:
        """Draws the next operation."""
        options, random = self._options, self._draws.random
        place, kind = random(), random()
        if place < self._hot_below:
            key = f"h{min(int(place / self._hot_below * options.hot_keys), options.hot_keys - 1)}"
        else:
            key = self._group.key(self._cold)
            self._cold += 1
        f = "read" if kind < self._read_below else "write" if kind < self._write_below else "cas"
        value, expected = self._values()
        self._count += 1
        if f == "read":
            return Draw(f, key, None)
        return Draw(f, key, value, expected if f == "cas" else None)

    def _values(self) -> tuple[int, int | None]:
        if self._options.values is Values.UNIQUE:
            # Above 0, and unique over all streams and operations.
            return self._count * self._streams + self._number + 1, None
        return int(self._draws.random() * SMALL_DOMAIN), int(self._draws.random() * SMALL_DOMAIN)
