"""The operations of one stream, drawn from the seed.

The n-th operation of stream `i` depends only on the seed, `i` and `n`, and not on other streams or on the system. So each
operation takes the same number of draws. Only the highest known offset depends on the run. A draw has the distance between it
and the start of a read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.randomness import stream

if TYPE_CHECKING:
    from workloads.log.options import LogOptions


class Draw(NamedTuple):
    """One operation, as far as it is known before the run.

    Attributes:
        key: The log; None if there is only one.
        value: The appended value; None for a read.
        back: The number of offsets between the start of a read and the highest known offset.
        length: The number of offsets of a range read; None for a read of a single offset.
    """

    key: str | None
    value: int | None
    back: int
    length: int | None


class Stream:
    """Draws the operations of one stream."""

    def __init__(self, options: LogOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._number = number
        self._streams = streams
        self._count = 0

    def next(self) -> Draw:
        """Draws the next operation."""
        options, random = self._options, self._draws.random
        place, kind, ranged, back, length = random(), random(), random(), random(), random()
        key = None if options.keys == 1 else f"l{int(place * options.keys)}"
        # Above 0, and unique over all streams and operations.
        value = self._count * self._streams + self._number + 1
        self._count += 1
        if kind >= options.read_share:
            return Draw(key, value, 0, None)
        covered = 1 + int(length * options.range_length) if ranged < options.range_share else None
        return Draw(key, None, int(back * options.recent), covered)
