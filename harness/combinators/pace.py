"""How fast operations follow each other, over all workers together.

The gap to the next operation is counted from when the last one was due, so that a small lateness does not slow the pace; but an
operation that is later than a whole gap is followed by one at once at most, never by a burst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.generator import Later
from harness.op import Invocation
from harness.randomness import stream
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.generator import Answer, Asker, Generator
    from harness.op import Op


def stagger(mean_gap_s: float, child: Generator, *, seed: int, name: str = "stagger") -> Generator:
    """Lets operations of `child` follow each other at gaps drawn evenly between 0 and twice the mean."""
    draws = stream(seed, name)
    return _Paced(lambda: draws.uniform(0, 2 * _positive(mean_gap_s)), child)


def poisson(rate_per_s: float, child: Generator, *, seed: int, name: str = "poisson") -> Generator:
    """Lets operations of `child` follow each other as a Poisson process does: at exponential gaps.

    Workers that wait for their answers slow it down; an open loop (`harness.load`) is not slowed.
    """
    draws = stream(seed, name)
    return _Paced(lambda: draws.expovariate(_positive(rate_per_s)), child)


def delay(gap_s: float, child: Generator) -> Generator:
    """Lets operations of `child` follow each other at equal gaps."""
    return _Paced(lambda: _positive(gap_s), child)


def _positive(number: float) -> float:
    if not number > 0:
        raise InputError(f"a gap or a rate has to be above 0, not {number}")
    return number


class _Paced:
    def __init__(self, draw_gap_s: Callable[[], float], child: Generator) -> None:
        self._draw_gap_s = draw_gap_s
        self._child = child
        self._due_ns: int | None = None

    def ask(self, asker: Asker) -> Answer:
        if self._due_ns is None:
            self._due_ns = asker.now_ns
        if asker.now_ns < self._due_ns:
            return Later(self._due_ns)
        answer = self._child.ask(asker)
        if isinstance(answer, Invocation):
            self._due_ns = max(self._due_ns + round(self._draw_gap_s() * NS_PER_S), asker.now_ns)
        return answer

    def told(self, event: Op) -> None:
        self._child.told(event)
