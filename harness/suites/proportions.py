"""Estimates a proportion from a number of runs: confidence intervals, and a sequential test."""

from __future__ import annotations

import math
from dataclasses import dataclass

CONFIDENCE = 0.95
_Z = 1.959964  # the quantile of the normal distribution for a confidence of 95 %


def interval(hits: int, runs: int) -> tuple[float, float]:
    """Returns the confidence interval (95 %) of the proportion of hits, if the number of runs was fixed before.

    Algorithm: Wilson's score interval (E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    1927), which is also right for few hits and few runs.
    """
    if not runs:
        return 0.0, 1.0
    part, square = hits / runs, _Z * _Z
    middle = (part + square / (2 * runs)) / (1 + square / runs)
    half = _Z * math.sqrt(part * (1 - part) / runs + square / (4 * runs * runs)) / (1 + square / runs)
    return max(0.0, middle - half), min(1.0, middle + half)


def interval_of_first_hit(runs: int) -> tuple[float, float]:
    """Returns the confidence interval (95 %) of the proportion of hits, if the runs ended with the first hit.

    `interval` is wrong here, because chance decides the number of runs. This number has a geometric distribution. For the
    proportions at the ends of the interval, so few runs, or so many, have a probability of 2.5 % (C. J. Clopper and
    E. S. Pearson, "The use of confidence or fiducial limits", 1934, for this distribution).

    Args:
        runs: The number of runs including the hit; 1 or more.
    """
    tail = (1 - CONFIDENCE) / 2
    high = 1.0 if runs == 1 else 1 - tail ** (1 / (runs - 1))
    return 1 - (1 - tail) ** (1 / runs), high


@dataclass(slots=True, kw_only=True)
class SequentialTest:
    """Decides from as few runs as possible whether hits are frequent or rare.

    Source: A. Wald, "Sequential tests of statistical hypotheses" (1945): the sequential probability ratio test for a
    proportion. If the true proportion is `frequent` or more, the test decides for rare with a probability of at most `misses`.
    If it is `rare` or less, the test decides for frequent with a probability of at most `false`.

    Attributes:
        frequent: The proportion from which hits count as frequent.
        rare: The proportion, below `frequent`, up to which hits count as rare.
        false: The probability to take rare hits for frequent ones.
        misses: The probability to take frequent hits for rare ones.
        hits: The hits so far.
        runs: The runs so far.
    """

    frequent: float
    rare: float
    false: float = 0.05
    misses: float = 0.1
    hits: int = 0
    runs: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rare < self.frequent < 1:
            raise ValueError(f"expected 0 < rare < frequent < 1, not {self.rare:g} and {self.frequent:g}")

    def add(self, *, hit: bool) -> None:
        """Adds the result of a run."""
        self.runs += 1
        self.hits += hit

    @property
    def decided(self) -> bool | None:
        """Returns True if hits are frequent, False if they are rare, None if more runs are needed."""
        ratio = self.hits * math.log(self.frequent / self.rare)
        ratio += (self.runs - self.hits) * math.log((1 - self.frequent) / (1 - self.rare))
        if ratio >= math.log((1 - self.misses) / self.false):
            return True
        return False if ratio <= math.log(self.misses / (1 - self.false)) else None
