"""Decides causes by experiments in the simulator: a run as it was, and the same run with one known defect repaired.

The simulator repeats a run by its seed, so one replay shows whether the run is still as it was. If it is not, as after a change
of Labrys, the experiment says so and decides nothing. A repair changes the program, and so the order of events: a run can then
be as expected by luck. So the repairs of runs that are alike are tried first, and several runs of a group are decided.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from commands.run.in_time import Deadline
from commands.run.trial import attempt
from harness.console.plain import counted, one_line
from harness.errors import InputError, InterruptedEarly, LabrysError
from harness.option_values import repairs
from harness.outcome import RunOutcome
from results.causes.grouping import Decided

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commands.options.compose import Settled
    from results.causes.cases import Case


class Replays:
    """Carries out experiments within a budget.

    Attributes:
        runs: The number of runs so far.
        seconds: Their time so far.
        refused: Why experiments were not possible, with their numbers.
    """

    def __init__(
        self, settled_of: Callable[[Case], Settled], budget_s: float, say: Callable[[str], object] = lambda _: None
    ) -> None:
        """Takes the runs.

        Args:
            settled_of: Returns the options that carry out a run again.
            budget_s: The most seconds for all experiments. A run that goes on at their end is ended, and decides nothing.
            say: Is called with a sentence for each experiment.
        """
        self.runs = 0
        self.seconds = 0.0
        self.refused: Counter[str] = Counter()
        self._settled_of = settled_of
        self._budget_s = budget_s
        self._say = say
        self._deadline = Deadline(0.0)

    def decide(self, case: Case, first: Sequence[str]) -> Decided | None:
        """Returns the result for a run; see `results.causes.grouping.Experiments`.

        Raises:
            KeyboardInterrupt: A person ended a run.
        """
        began_s = time.monotonic()
        self._deadline.until_s = began_s + self._budget_s - self.seconds
        if self._deadline.enough(0.0):
            return None
        try:
            decided = self._decide(case, first)
        except _Ended:
            self._say(f"{case.name}: the budget ended during its experiment, so it is not decided")
            return None
        finally:
            self.seconds += time.monotonic() - began_s
        self._say(decided.why)
        return decided

    def _decide(self, case: Case, first: Sequence[str]) -> Decided:
        try:
            settled = self._settled_of(case)
        except LabrysError as error:
            return self._refused(case, f"it cannot be carried out again: {one_line(str(error))}")
        if not self._shows(settled, case):
            return self._refused(case, "a replay does not show it")
        known = repairs(settled.options.system.type.Options, settled.options.values())
        tried = 0
        for name in dict.fromkeys([*first, *known]):
            if name not in known:
                continue
            try:
                shows = self._shows(settled.having(known[name]), case)
            except InputError:
                continue  # the build has no such repair
            tried += 1
            if not shows:
                why = f"{case.name}: a replay shows it, and one with {name} repaired does not; {counted(tried, 'repair')} tried"
                return Decided(cause=name, why=why)
        why = f"{case.name}: a replay shows it, and so do {counted(tried, 'replay')} with a known defect repaired"
        return Decided(cause=None, why=why)

    def _refused(self, case: Case, why: str) -> Decided:
        self.refused[why] += 1
        return Decided(cause=None, why=f"{case.name}: {why}")

    def _shows(self, settled: Settled, case: Case) -> bool:
        """Returns whether a run ends as the case did, in one of its parts.

        Raises:
            InputError: The options do not fit together.
            KeyboardInterrupt: A person ended the run.
            _Ended: The budget ended it.
        """
        self.runs += 1
        outcome = self._deadline.carry_out(lambda: _outcome(settled))
        if outcome is not None:
            return shows(outcome, case)
        if self._deadline.interrupted:
            raise KeyboardInterrupt
        raise _Ended

    def sentence(self) -> str:
        """Returns what the experiments took; empty if there were none."""
        if not self.runs and not self.refused:
            return ""
        text = f"Experiments took {counted(self.runs, 'run')} and {self.seconds:.0f} s of {self._budget_s:.0f} s."
        if self._deadline.ended_early:
            text += " The budget ended before all doubts were decided."
        for why, number in self.refused.most_common(2):
            text += f" {counted(number, 'experiment')} decided nothing: {why}."
        return text


class _Ended(Exception):  # noqa: N818 - no error: the caller has its answer
    """The budget ended a run."""


def _outcome(settled: Settled) -> RunOutcome:
    try:
        return attempt(settled).outcome
    except (InputError, InterruptedEarly):
        raise
    except LabrysError as error:
        return RunOutcome(judged=None, error=str(error))


def shows(outcome: RunOutcome, case: Case) -> bool:
    """Returns whether an outcome is that of a case, in one of its parts."""
    parts, ended = {*case.signature.parts}, case.signature.ended
    if ended == "invalid":
        return not parts.isdisjoint(outcome.invalid)
    if ended == "broken off":
        return outcome.error is not None and outcome.verdict is None
    return ended == "unknown" and not parts.isdisjoint(outcome.undecided)


def repairs_of(options: type, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the known defects of a build that a rebuild can repair; none if the values are not valid."""
    try:
        return tuple(repairs(options, values))
    except (InputError, TypeError, ValueError):
        return ()  # a foreign record; a replay would refuse it with the reason
