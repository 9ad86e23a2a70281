"""Decides whether a value is good or bad by runs.

1. In the simulator, a value with which the seed of the run shows the bug is bad. This is certain, because the seed repeats.
2. If the seed does not show it, the value may still have the bug, because another release orders events in another way. So
   further runs have other seeds, and a sequential test (A. Wald, 1945) decides by how many of them are bad. On real nodes,
   all runs have the seed of the run, and the test decides in any case.
3. The rate of bad values is measured first, at the bad end. The test calls a value bad if its rate is half of that or more,
   and good if it is a fifth of that bound or less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from commands.bisect.state import PastRun
from commands.shrink.by_chance import Chance
from harness.builds import BuildFailedError
from harness.console.plain import counted, one_line
from harness.errors import InputError, LabrysError, headline
from harness.outcome import RunOutcome
from harness.randomness import repeat_seed
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commands.bisect.state import State
    from commands.bisect.values import Point
    from commands.run.in_time import Deadline

MAX_NEITHER: Final = 3  # runs in a row that are neither good nor bad
MAX_WHY: Final = 500


class NoTimeError(Exception):
    """The time is over, or a person ended the search."""


class UntestableError(Exception):
    """The runs of a value are neither good nor bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is known of a value.

    Attributes:
        point: The value.
        bad: Whether it is bad; None: it cannot be decided.
        how: The runs that decided, as words.
        error: The probability that the decision is wrong; 0: it is certain. None: nothing bounds it.
        seconds: How long its runs took.
    """

    point: Point
    bad: bool | None
    how: str
    error: float | None
    seconds: float


def shows(outcome: RunOutcome, parts: Sequence[str]) -> tuple[bool | None, str]:
    """Returns whether a run is bad, and why; None: it is neither good nor bad.

    Args:
        outcome: The outcome of the run.
        parts: The parts of the verdict of which one makes a run bad; empty: the verdict itself counts.
    """
    if not parts:
        known = {Verdict.INVALID: True, Verdict.VALID: False}
        bad = None if outcome.verdict is None else known.get(outcome.verdict)
        return bad, ", ".join(outcome.invalid) if bad else outcome.reason
    invalid = [name for name in outcome.invalid if name in parts]
    if invalid:
        return True, ", ".join(invalid)
    if outcome.error is not None:
        return None, outcome.error
    verdicts = {part.name: part.verdict for part in outcome.parts}
    open_parts = [name for name in parts if verdicts.get(name) is not Verdict.VALID]
    if open_parts:
        return None, f"it does not decide {', '.join(open_parts)}"
    return False, f"{', '.join(parts)} valid"


@dataclass(slots=True, kw_only=True)
class Runs:
    """Carries out the runs of a bisection, or takes them from its state.

    Attributes:
        carry_out: Carries out a run of a value with a seed, and returns its outcome; None if a person ended it.
        parts: See `shows`.
        state: The state; each run is added to it.
        deadline: The end of the time.
        say: Is called with a sentence about each run.
        taken: The number of runs so far.
    """

    carry_out: Callable[[Point, int], RunOutcome | None]
    parts: Sequence[str]
    state: State
    deadline: Deadline
    say: Callable[[str], object]
    taken: int = 0
    _longest_s: float = field(default=0.0)

    def of(self, point: Point, seed: int) -> PastRun:
        """Returns the next run.

        Raises:
            NoTimeError: The time is over, or a person ended the run.
            InputError: The state has another run here.
            UntestableError: The options of the run and the value do not fit together.
        """
        if self.taken < len(self.state.runs):
            past = self.state.runs[self.taken]
            if (past.point, past.seed) != (point.name, str(seed)):
                raise InputError(
                    f"{self.state.path}: expected a run of {point.name} with the seed {seed} as run {self.taken + 1}, found "
                    f"one of {past.point[:80]!r} with the seed {past.seed}; leave out --resume"
                )
        else:
            past = self._new(point, seed)
            self.state.add(past)
            result = {True: "bad", False: "good", None: "neither good nor bad"}[past.bad] if past.built else "no build"
            line = f"· run {len(self.state.runs)}: {point.name}, seed {seed}: {result} in {past.seconds:.1f} s"
            self.say(f"{line}: {one_line(past.why)}")
        self.taken += 1
        self._longest_s = max(self._longest_s, past.seconds)
        return past

    def _new(self, point: Point, seed: int) -> PastRun:
        if self.deadline.enough(self._longest_s):
            raise NoTimeError
        began_s = time.monotonic()
        try:
            outcome = self.deadline.carry_out(lambda: self.carry_out(point, seed))
        except BuildFailedError as error:
            return PastRun(
                point=point.name, seed=str(seed), bad=None, why=headline(str(error)).rstrip(":")[:MAX_WHY],
                seconds=time.monotonic() - began_s, built=False,
            )  # fmt: skip
        except InputError as error:
            raise UntestableError(str(error)) from error
        except LabrysError as error:
            outcome = RunOutcome(judged=None, error=str(error))
        if outcome is None:
            raise NoTimeError
        bad, why = shows(outcome, self.parts)
        return PastRun(point=point.name, seed=str(seed), bad=bad, why=why[:MAX_WHY], seconds=time.monotonic() - began_s)


class Decider:
    """Decides values, the bad end first."""

    def __init__(
        self,
        runs: Runs,
        *,
        seed: int,
        simulated: bool,
        seed_alone: bool,
        error: float,
        rates: tuple[float, float] | None,
    ) -> None:
        """Takes the runs.

        Args:
            runs: The runs.
            seed: The seed of the run that shows the bug.
            simulated: Whether its runs repeat.
            seed_alone: Whether the seed alone decides each value.
            error: The most probable error of one test, in each direction.
            rates: The rates of good and of bad values; None: they are measured at the bad end.
        """
        self.decisions: list[Decision] = []
        self._runs = runs
        self._seed = seed
        self._simulated = simulated
        self._seed_alone = seed_alone
        self._error = error
        self._chance = Chance(false=error, misses=error)
        self._measured = rates is not None
        if rates is not None:
            self._chance.rare, self._chance.frequent = rates
        self._numbers: dict[str, int] = {}

    @property
    def rates(self) -> tuple[float, float]:
        """Returns the rates of good and of bad values that the tests tell apart."""
        return self._chance.too_seldom, self._chance.frequent

    @property
    def tests(self) -> int:
        """Returns the number of sequential tests that decided a value."""
        return self._chance.tried

    def is_bad(self, point: Point, *, last: bool = False) -> bool | None:
        """Decides a value; None: it cannot be decided.

        Args:
            point: The value.
            last: Whether it is the bad end, where rates are measured.

        Raises:
            NoTimeError: The time is over, or a person ended the search.
            InputError: The state is of other runs.
        """
        first = self._runs.taken
        try:
            bad, how, error = self._decide(point, last=last)
        except UntestableError as why:
            bad, how, error = None, f"cannot be tested: {one_line(str(why))}", None
        seconds = sum(run.seconds for run in self._runs.state.runs[first : self._runs.taken])
        self.decisions.append(Decision(point=point, bad=bad, how=how, error=error, seconds=seconds))
        word = {True: "bad", False: "good", None: "skipped"}[bad]
        self._runs.say(f"{point.name}: {word}, {how}")
        return bad

    def _decide(self, point: Point, *, last: bool) -> tuple[bool, str, float | None]:
        by_seed = self._simulated and self._hit(point)
        if self._simulated:
            if by_seed and (self._seed_alone or self._measured):
                return True, "the seed shows the bug", 0.0
            if self._seed_alone:
                return False, "the seed does not show the bug", None
        if last and not self._measured:
            self._measured = True
            return self._measure(point, by_seed=by_seed)
        before = self._runs.taken
        bad = self._chance.decides(lambda: self._hit(point), enough=lambda: False)
        past = self._runs.state.runs[before : self._runs.taken]
        return bad, f"{_share(past)}, and the test decides", self._error

    def _measure(self, point: Point, *, by_seed: bool) -> tuple[bool, str, float | None]:
        """Measures the rate at the bad end."""
        before = self._runs.taken
        is_hit = self._chance.begin(lambda: self._hit(point), enough=lambda: False)
        share = _share(self._runs.state.runs[before : self._runs.taken])
        if is_hit:
            return True, share, 0.0
        if by_seed:
            self._seed_alone = True
            return (
                True,
                f"the seed shows the bug, and {share}, so it is too rare for a test; the seed alone decides",
                0.0,
            )
        return False, share, None

    def _hit(self, point: Point) -> bool:
        """Carries out the next run of a value that is good or bad, and returns whether it is bad."""
        for _ in range(MAX_NEITHER):
            number = self._numbers[point.name] = self._numbers.get(point.name, 0) + 1
            seed = repeat_seed(self._seed, number) if self._simulated else self._seed
            past = self._runs.of(point, seed)
            if past.bad is not None:
                return past.bad
            if self._seed_alone or not past.built:
                raise UntestableError(past.why)
        raise UntestableError(f"{counted(MAX_NEITHER, 'run')} in a row are neither good nor bad; the last: {past.why}")


def _share(past: Sequence[PastRun]) -> str:
    decided = [run for run in past if run.bad is not None]
    text = f"{sum(bool(run.bad) for run in decided)} of {counted(len(decided), 'run')} bad"
    neither = len(past) - len(decided)
    return f"{text}, {neither} more neither" if neither else text
