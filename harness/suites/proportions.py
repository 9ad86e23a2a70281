"""Estimates a proportion from a number of runs: confidence intervals, changes, and a sequential test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def chance_of_none(hits: int, runs: int, further: int) -> float:
    """Returns the probability that further runs have no hit by chance, given the hits of earlier runs.

    Each proportion is equally likely before the first run, so that the few hits of a few runs leave it open. The probability is
    the predictive one of T. Bayes, "An essay towards solving a problem in the doctrine of chances" (1763): B(h+1, n-h+1+m) /
    B(h+1, n-h+1) for h hits of n runs and m further runs.
    """
    misses = runs - hits
    terms = (math.lgamma(misses + 1 + further), -math.lgamma(misses + 1), math.lgamma(runs + 2))
    return min(1.0, math.exp(sum(terms) - math.lgamma(runs + 2 + further)))


def chance_of_difference(hits: int, runs: int, other_hits: int, other_runs: int) -> float:
    """Returns the probability that chance alone makes two shares of hits differ so much, or more.

    Algorithm: the exact test of R. A. Fisher, "On the interpretation of chi-squared from contingency tables" (1922), two-sided:
    the sum over all tables with the same margins that are no more likely.
    """
    both, all_runs = hits + other_hits, runs + other_runs

    def log_likely(first: int) -> float:
        return _log_choose(runs, first) + _log_choose(other_runs, both - first) - _log_choose(all_runs, both)

    bound = log_likely(hits) + 1e-9
    tables = (log_likely(first) for first in range(max(0, both - other_runs), min(runs, both) + 1))
    return min(1.0, sum(math.exp(logarithm) for logarithm in tables if logarithm <= bound))


def _log_choose(whole: int, part: int) -> float:
    return math.lgamma(whole + 1) - math.lgamma(part + 1) - math.lgamma(whole - part + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a share of hits between two of several successive groups of runs.

    Attributes:
        since: The number of the first group after the change.
        before: The hits and the runs before it.
        after: The hits and the runs since then.
        chance: The probability that chance alone shows such a change anywhere, or a greater one.
    """

    since: int
    before: tuple[int, int]
    after: tuple[int, int]
    chance: float


def change_of(groups: Sequence[tuple[int, int]]) -> Change | None:
    """Returns the clearest change of a share of hits; None if there are fewer than two groups.

    The split with the smallest probability of `chance_of_difference` counts. This probability is multiplied by the number of
    splits (C. E. Bonferroni, 1936), because the smallest of several is small by chance.

    Args:
        groups: The hits and the runs of each group, e.g. of each night, in the order of time.
    """
    best: Change | None = None
    for index in range(1, len(groups)):
        before, after = _sum(groups[:index]), _sum(groups[index:])
        chance = min(1.0, chance_of_difference(*before, *after) * (len(groups) - 1))
        if best is None or chance < best.chance:
            best = Change(since=index, before=before, after=after, chance=chance)
    return best


def _sum(groups: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(hits for hits, _ in groups), sum(runs for _, runs in groups)


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
