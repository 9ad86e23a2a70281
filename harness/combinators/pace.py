"""The pace of operations, over all workers together.

A gap counts from the time at which the last operation was due, so a small delay does not slow the pace. After a delay longer
than a gap, at most one operation follows at once, and never a burst.
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
    """Spaces the operations of `child` by random gaps, uniform between 0 and twice the mean."""
    draws = stream(seed, name)
    return _Paced(lambda: draws.uniform(0, 2 * _positive(mean_gap_s)), child)


def poisson(rate_per_s: float, child: Generator, *, seed: int, name: str = "poisson") -> Generator:
    """Spaces the operations of `child` by exponential gaps, as a Poisson process does.

    Workers that wait for answers slow it down. An open loop (`harness.load`) does not slow down.
    """
    draws = stream(seed, name)
    return _Paced(lambda: draws.expovariate(_positive(rate_per_s)), child)


def delay(gap_s: float, child: Generator) -> Generator:
    """Spaces the operations of `child` by equal gaps."""
    return _Paced(lambda: _positive(gap_s), child)


def _positive(number: float) -> float:
    if not number > 0:
        raise InputError(f"a gap or a rate must be above 0, not {number}")
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

    def update(self, event: Op) -> None:
        self._child.update(event)
