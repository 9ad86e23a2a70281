"""Making a run smaller where chance decides whether a run finds something: each step is decided by a sequential test.

First the run is carried out as it is, until it found something three times. Then a smaller candidate is taken if it finds the
same in at least half as many of its runs, as far as the test can tell. The test ends as soon as it is sure, often after two
runs. At the end, further runs say how often the result finds it: those that the search itself needed would say too much, since
they were chosen for their finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.proportions import SequentialTest, interval

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_HITS = 3
FIRST_RUNS = 12
LAST_RUNS = 5
MOST_FREQUENT = 0.5
LEAST_FREQUENT = 0.05
RARER = 5.0  # how many times rarer a find is that does not count
FALSE, MISSES = 0.05, 0.1


@dataclass(slots=True, kw_only=True)
class Chance:
    """How often candidates find something.

    Attributes:
        runs: How many runs there were in all.
        hits_before: How many of the first runs found it.
        runs_before: How many first runs there were.
        frequent: The part of runs that a candidate must reach.
        tried: How many candidates were decided.
        undecided: How many candidates were given up because the time was over.
    """

    runs: int = 0
    hits_before: int = 0
    runs_before: int = 0
    frequent: float = field(default=MOST_FREQUENT)
    tried: int = 0
    undecided: int = 0

    def begin(self, finds: Callable[[], bool], *, enough: Callable[[], bool]) -> bool:
        """Carries out the run as it is, and says whether it finds something at all.

        Args:
            finds: Carries out the run once.
            enough: Says whether the time is over.
        """
        while self.hits_before < FIRST_HITS and self.runs_before < FIRST_RUNS and not enough():
            hit = finds()
            self.hits_before += hit
            self.runs_before += 1
            self.runs += 1
        if self.hits_before:
            part = self.hits_before / self.runs_before
            self.frequent = min(MOST_FREQUENT, max(LEAST_FREQUENT, part / 2))
        return self.hits_before > 0

    def decides(self, finds: Callable[[], bool], *, enough: Callable[[], bool]) -> bool:
        """Says whether a candidate finds it often enough; no, where the time is over before that is known."""
        test = SequentialTest(frequent=self.frequent, rare=self.frequent / RARER, false=FALSE, misses=MISSES)
        while test.decided is None:
            if enough():
                self.undecided += 1
                return False
            test.told(hit=finds())
            self.runs += 1
        self.tried += 1
        return test.decided

    def said(self) -> str:
        """Returns how steps were decided, as sentences."""
        told = (
            f"The run as it was found it in {self.hits_before} of {self.runs_before} runs. "
            f"A sequential test decided {self.tried} steps with {self.runs - self.runs_before} runs. "
            f"It takes a step whose runs find it in {self.frequent:.0%} or more; "
            f"with a chance of at most {MISSES:.0%} it refuses such a step. "
            f"With a chance of at most {FALSE:.0%} it takes a step that finds it in {self.frequent / RARER:.0%} or less."
        )
        return f"{told} The time ended before {self.undecided} step was decided." if self.undecided else told


def confirm(finds: Callable[[], bool], *, enough: Callable[[], bool]) -> str:
    """Carries out further runs of the result, and returns how often they find it, as a sentence."""
    hits = runs = 0
    while runs < LAST_RUNS and not enough():
        hits += finds()
        runs += 1
    if not runs:
        return "There was no time left to count how often the result finds it."
    low, high = interval(hits, runs)
    return f"The result found it in {hits} of {runs} further runs: {low:.0%} to {high:.0%} with 95 % confidence."
