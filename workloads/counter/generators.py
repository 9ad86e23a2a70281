"""The operations of the counter workload's main phase, stream by stream.

The n-th operation of stream `i` depends only on the seed, `i` and `n`, and not on the system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.op import Invocation
from harness.randomness import stream

if TYPE_CHECKING:
    from harness.generator import Answer, Asker
    from harness.op import Op
    from workloads.counter.options import CounterOptions


class Stream:
    """Draws the operations of one stream. Each operation takes the same number of draws."""

    def __init__(self, options: CounterOptions, *, seed: int, number: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")

    def next(self) -> Invocation:
        """Draws the next operation."""
        options, random = self._options, self._draws.random
        kind, place, amount, sign = (
            random(),
            int(random() * options.keys),
            1 + int(random() * options.largest),
            random(),
        )
        key = f"c{place}" if options.keys > 1 else None
        if kind < options.read_share:
            return Invocation("read", None, key)
        return Invocation("add", -amount if sign < options.negative_share else amount, key)


class CounterGenerator:
    """Gives each worker the operations of its stream, without end."""

    def __init__(self, options: CounterOptions, *, seed: int, streams: int) -> None:
        self._streams = [Stream(options, seed=seed, number=number) for number in range(streams)]

    def ask(self, asker: Asker) -> Answer:
        """Returns the next operation of the asker's stream."""
        return self._streams[asker.worker].next()

    def update(self, event: Op) -> None:
        """Does nothing: the operations do not depend on answers."""
