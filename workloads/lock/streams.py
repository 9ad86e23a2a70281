"""The turns of one stream, drawn from the seed.

The n-th turn of stream `i` depends only on the seed, `i` and `n`, and not on other streams or on the system. So each turn takes
the same number of draws from the stream, in the same order. The run determines the number of turns and the times of the
releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.randomness import stream

if TYPE_CHECKING:
    from workloads.lock.options import LockOptions


class Turn(NamedTuple):
    """One turn of a client without a lock.

    Attributes:
        f: `acquire`, or `release` for a release that must fail.
        key: The lock.
        hold_ms: The time to hold the lock after the acquire.
    """

    f: str
    key: str
    hold_ms: float


class Stream:
    """Draws the turns of one stream."""

    def __init__(self, options: LockOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._count = 0
        # All streams use the same locks, so that they contend. Each goes to new locks after its share of turns.
        per_lock = options.ops_per_lock
        self._share = None if per_lock is None else max(1, per_lock * options.locks // streams)

    def next(self) -> Turn:
        """Draws the next turn."""
        options, random = self._options, self._draws.random
        place, kind, hold = random(), random(), random()
        number = min(int(place * options.locks), options.locks - 1)
        if self._share is not None:
            number += self._count // self._share * options.locks
        self._count += 1
        return Turn("release" if kind < options.stray_share else "acquire", f"l{number}", 2 * hold * options.hold_ms)
