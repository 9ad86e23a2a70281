"""The operations of the set workload's main phase, stream by stream.

The n-th operation of stream `i` depends only on the seed, `i`, the number of streams and `n`, and not on the system.
Elements are unique integers above 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.op import Invocation
from harness.randomness import stream

if TYPE_CHECKING:
    from harness.generator import Answer, Asker
    from harness.op import Op
    from workloads.set.options import SetOptions


class Stream:
    """Draws the operations of one stream."""

    def __init__(self, options: SetOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._number = number
        self._streams = streams
        self._count = 0
        self._added = [0] * options.keys

    def next(self) -> Invocation:
        """Draws the next operation: sometimes a read, otherwise an add of a new element."""
        options = self._options
        kind, place = self._draws.random(), int(self._draws.random() * options.keys)
        key = f"s{place}" if options.keys > 1 else None
        self._count += 1
        # All streams add to the same sets, so this is about the number of elements, and the size of a read's result.
        elements = self._added[place] * self._streams
        gap = max(options.reads_every, elements / options.read_cost)
        if kind * (gap + 1) < 1:
            return Invocation("read", None, key)
        self._added[place] += 1
        return Invocation("add", self._count * self._streams + self._number + 1, key)


class SetGenerator:
    """Gives each worker the operations of its stream, without end."""

    def __init__(self, options: SetOptions, *, seed: int, streams: int) -> None:
        self._streams = [Stream(options, seed=seed, number=number, streams=streams) for number in range(streams)]

    def ask(self, asker: Asker) -> Answer:
        """Returns the next operation of the asker's stream."""
        return self._streams[asker.worker].next()

    def update(self, event: Op) -> None:
        """Does nothing: the operations do not depend on answers."""
