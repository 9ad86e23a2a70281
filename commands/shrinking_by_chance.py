"""Making a run smaller where chance decides whether a run finds something: each step is decided by a sequential test.

First the run is carried out as it is, until it found something three times. Then a smaller candidate is taken if it finds the
same in at least half as many of its runs, as far as the test can tell. The test ends as soon as it is sure, often after two
runs. At the end, further runs say how often the result finds it: those that the search itself needed would say too much, since
they were chosen for their finds. Steps that do not stand these runs are taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.proportions import SequentialTest, interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commands.shrinking import Candidate

FIRST_HITS = 3
FIRST_RUNS = 12
LAST_RUNS = 5
LAST_SHARE = 0.25  # of the time, for the further runs
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

    def describe(self) -> str:
        """Returns how steps were decided, as sentences."""
        told = (
            f"The original run was invalid in {self.hits_before} of {self.runs_before} runs. "
            f"A sequential test decided {self.tried} steps with {self.runs - self.runs_before} runs. "
            f"It takes a step if {self.frequent:.0%} or more of its runs are invalid; "
            f"it misses such a step with a probability of at most {MISSES:.0%}. "
            f"It takes a step with {self.frequent / RARER:.0%} or less with a probability of at most {FALSE:.0%}."
        )
        return f"{told} The time ended before {self.undecided} step was decided." if self.undecided else told


def confirmed(
    taken: Sequence[Candidate],
    finds: Callable[[Candidate], bool],
    *,
    frequent: float,
    enough: Callable[[], bool],
) -> tuple[Candidate, str]:
    """Returns the smallest candidate that keeps its word in further runs, and how often it finds it, as sentences.

    Many steps are tried, so a few are taken by luck, and what is left may find it too seldom. Each candidate has a fixed number
    of further runs, from the smallest on. The first that finds it often enough is the result.

    Args:
        taken: The candidates that were taken, each smaller than the one before; the first is the run as it was.
        finds: Carries out a candidate.
        frequent: The part of runs that has to find it.
        enough: Says whether the time is over.
    """
    for place in range(len(taken) - 1, -1, -1):
        hits = runs = 0
        while runs < LAST_RUNS and not enough():
            hits += finds(taken[place])
            runs += 1
        if runs < LAST_RUNS:
            return taken[place], f"The result was invalid in {hits} of {runs} further runs; then the time was over."
        if place == 0 or hits >= frequent * runs:
            low, high = interval(hits, runs)
            back = len(taken) - 1 - place
            told = (
                f"Too few further runs were invalid after the last {back} steps, so they were undone. " if back else ""
            )
            told += f"The result was invalid in {hits} of {runs} further runs: {low:.0%} to {high:.0%} with 95 % confidence."
            return taken[place], told
    raise ValueError("expected at least the run as it was")
