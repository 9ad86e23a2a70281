"""Shrinks a run that is invalid only with some probability: a sequential test decides each step.

1. The original run is repeated until three runs are invalid.
2. A step is taken if its candidate is invalid at least half as often, as far as the test can tell. The test often ends after
   two runs.
3. Further runs measure how often the result is invalid. Runs of the search do not count here, because they were selected for
   being invalid. A step whose candidate is invalid too seldom in the further runs is undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.suites.proportions import SequentialTest, interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commands.shrink.steps import Candidate

FIRST_HITS = 3
FIRST_RUNS = 12
LAST_RUNS = 5
LAST_SHARE = 0.25  # of the time: for the further runs
MAX_FREQUENT = 0.5
MIN_FREQUENT = 0.05
RARER = 5.0  # a candidate that is invalid this many times less often is not taken
FALSE, MISSES = 0.05, 0.1


@dataclass(slots=True, kw_only=True)
class Chance:
    """Decides steps by how often candidates are invalid.

    Attributes:
        runs: The number of all runs.
        hits_before: The number of invalid runs among the original runs.
        runs_before: The number of original runs.
        frequent: The share of invalid runs that a candidate must reach.
        tried: The number of decided candidates.
        undecided: The number of candidates that the end of the time left undecided.
        false: The probability to take a candidate that is invalid too seldom.
        misses: The probability to miss a candidate that is invalid often enough.
        rare: The share of invalid runs up to which a candidate is invalid too seldom; None: a part of `frequent`.
    """

    runs: int = 0
    hits_before: int = 0
    runs_before: int = 0
    frequent: float = field(default=MAX_FREQUENT)
    tried: int = 0
    undecided: int = 0
    false: float = FALSE
    misses: float = MISSES
    rare: float | None = None

    @property
    def too_seldom(self) -> float:
        """Returns the share of invalid runs up to which a candidate is invalid too seldom."""
        return self.frequent / RARER if self.rare is None else self.rare

    def begin(self, finds: Callable[[], bool | None], *, enough: Callable[[], bool]) -> bool:
        """Repeats the original run, and returns whether it is ever invalid.

        Args:
            finds: Carries out the run once, and returns whether it is invalid; None if it was ended before its verdict.
            enough: Returns whether there is no time for a run.
        """
        while self.hits_before < FIRST_HITS and self.runs_before < FIRST_RUNS and not enough():
            hit = finds()
            if hit is None:
                break
            self.hits_before += hit
            self.runs_before += 1
            self.runs += 1
        if self.hits_before:
            part = self.hits_before / self.runs_before
            self.frequent = min(MAX_FREQUENT, max(MIN_FREQUENT, part / 2))
        return self.hits_before > 0

    def decides(self, finds: Callable[[], bool | None], *, enough: Callable[[], bool]) -> bool:
        """Returns whether a candidate is invalid often enough; False if the time ends before the decision."""
        test = SequentialTest(frequent=self.frequent, rare=self.too_seldom, false=self.false, misses=self.misses)
        while test.decided is None:
            hit = None if enough() else finds()
            if hit is None:
                self.undecided += 1
                return False
            test.add(hit=hit)
            self.runs += 1
        self.tried += 1
        return test.decided

    def describe(self) -> str:
        """Returns how the steps were decided, as sentences."""
        text = (
            f"The original run was invalid in {self.hits_before} of {self.runs_before} runs. "
            f"A sequential test decided {self.tried} steps with {self.runs - self.runs_before} runs. "
            f"It takes a step if {self.frequent:.0%} or more of its runs are invalid; "
            f"it misses such a step with a probability of at most {self.misses:.0%}. "
            f"It takes a step with {self.too_seldom:.0%} or less with a probability of at most {self.false:.0%}."
        )
        return f"{text} The time ended before {self.undecided} step was decided." if self.undecided else text


def confirmed(
    taken: Sequence[Candidate],
    finds: Callable[[Candidate], bool | None],
    *,
    frequent: float,
    enough: Callable[[Candidate], bool],
) -> tuple[Candidate, str]:
    """Returns the smallest candidate that is often invalid in further runs, and how often, as sentences.

    The search tries many steps, so it takes a few by luck, and its result may be invalid too seldom. Each candidate has
    `LAST_RUNS` further runs, the smallest candidate first. The first candidate that is invalid often enough is the result.

    Args:
        taken: The candidates that were taken, each smaller than the one before; the first is the original run.
        finds: Carries out a candidate, and returns whether it is invalid; None if the run was ended before its verdict.
        frequent: The share of runs that must be invalid.
        enough: Returns whether there is no time for a run of a candidate.

    Raises:
        ValueError: `taken` is empty.
    """
    for index in range(len(taken) - 1, -1, -1):
        hits = runs = 0
        while runs < LAST_RUNS and not enough(taken[index]):
            hit = finds(taken[index])
            if hit is None:
                break
            hits += hit
            runs += 1
        if runs < LAST_RUNS:
            return taken[index], f"The result was invalid in {hits} of {runs} further runs; then the time was over."
        if index == 0 or hits >= frequent * runs:
            low, high = interval(hits, runs)
            back = len(taken) - 1 - index
            text = (
                f"Too few further runs were invalid after the last {back} steps, so they were undone. " if back else ""
            )
            text += f"The result was invalid in {hits} of {runs} further runs: {low:.0%} to {high:.0%} with 95 % confidence."
            return taken[index], text
    raise ValueError("expected at least the original run")
