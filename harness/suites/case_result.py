"""The result of a case beside what was expected, and the exit code of a suite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.console.plain import counted_of
from harness.errors import ExitCode, worst_code
from harness.outcome import behind
from harness.suites.expectation import CaseOutcome, Shown
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.outcome import RunOutcome
    from harness.suites.case import Case
    from harness.suites.rates import RateDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of a case.

    Attributes:
        case: The case.
        outcome: The outcome of its run, or of the run that decides. Without a verdict, its error is the end of the command's
            error output.
        code: The exit code of its command if there is no verdict.
        seconds: Its duration.
        run: The folder of the run; None if there is none.
        left_out: The kinds of faults that `all` asked for and that are not in the plan.
        fault_violations: The number of violations during or after a fault; None if it is unknown.
        rate: What all runs of the case say about its rate, if the suite expects one; None: nobody decided.
    """

    case: Case
    outcome: RunOutcome
    code: int
    seconds: float
    run: str | None
    left_out: Sequence[str] = ()
    fault_violations: int | None = None
    rate: RateDecision | None = None

    @property
    def exit_code(self) -> int:
        """Returns the exit code of its verdict; that of its command if there is none."""
        return self.code if self.verdict is None else int(self.verdict.exit_code)

    @property
    def verdict(self) -> Verdict | None:
        """Returns the run's verdict; None if there is none."""
        return self.outcome.verdict

    @property
    def agreement(self) -> CaseOutcome | None:
        """Returns its outcome beside the expected one; None without a verdict."""
        shown = self.shown
        return None if shown is None else self.case.expectation.outcome(shown)

    @property
    def shown(self) -> Shown | None:
        """Returns what its run showed; None without a verdict."""
        shown = self.outcome.shown
        return None if shown is None else replace(shown, fault_violations=self.fault_violations)

    @property
    def decides(self) -> ExitCode:
        """Returns the exit code of a suite with this case alone."""
        if self.passed:
            return ExitCode.VALID
        if self.too_often:
            return ExitCode.INVALID
        if self.undecided:
            return ExitCode.UNKNOWN
        return ExitCode.INTERNAL if self.verdict is None and not self.outcome.crossed else ExitCode.INVALID

    @property
    def ended(self) -> str:
        """Returns how the case ended, with what was expected where that is not `valid`."""
        shown = self.shown
        if shown is None:
            return f"error {self.exit_code}"
        if shown.crossed and not self.too_often:
            return shown.words
        if self.too_often or self.failed_as_known:
            return f"{self.verdict}, {'too often' if self.too_often else 'as known'}"
        if self.verdict is not self.case.expect:
            return f"{self.verdict}, expected {self.case.expect}"
        if self.verdict is Verdict.VALID:
            return str(self.verdict)
        return f"{self.verdict}, {'as expected' if self.passed else 'not as expected'}"

    @property
    def failed_as_known(self) -> bool:
        """Returns whether it is not valid, and only by known failures."""
        return self.agreement is CaseOutcome.KNOWN

    @property
    def passed(self) -> bool:
        """Returns whether it is as expected, or a known failure, and its rate is not too high."""
        return self.agreement in {CaseOutcome.EXPECTED, CaseOutcome.KNOWN} and not self.too_often

    @property
    def unexpected(self) -> bool | None:
        """Returns whether its run alone is unexpected, whatever rate the suite expects; None if the run decides nothing."""
        shown = self.shown
        alone = None if shown is None else self.case.expectation.of_one(shown)
        return None if alone in {None, CaseOutcome.UNDECIDED} else alone is CaseOutcome.UNEXPECTED

    @property
    def too_often(self) -> bool:
        """Returns whether the runs of the case decide that its rate is too high."""
        return self.rate is not None and self.rate.too_high is True

    @property
    def undecided(self) -> bool:
        """Returns whether the result is unknown: by its verdict, or because its control node was behind."""
        return self.agreement is CaseOutcome.UNDECIDED and not self.too_often

    @property
    def without_fault(self) -> str | None:
        """Returns why an invalid verdict does not count: no violation was seen during or after a fault; None if it counts."""
        if not self.case.expect_during_fault or self.verdict is not Verdict.INVALID:
            return None
        if self.fault_violations is None:
            return "invalid, but it is unknown whether a violation was seen during or after a fault"
        return None if self.fault_violations > 0 else "invalid, but no violation was seen during or after a fault"

    @property
    def without_parts(self) -> str | None:
        """Returns why an invalid verdict does not count: an expected part is not invalid; None if it counts."""
        lacking = sorted(self.case.expect_parts.difference(self.outcome.invalid))
        if not lacking or self.verdict is not Verdict.INVALID:
            return None
        return f"invalid, but not by {', '.join(lacking)}"

    @property
    def why(self) -> str:
        """Returns the reason of the verdict, after why it does not count or which threshold it crosses."""
        if self.rate is not None and (self.unexpected or self.too_often):
            return f"{self.rate}. {self._why}"
        return self._why

    @property
    def _why(self) -> str:
        if self.without_fault or self.without_parts:
            return f"{self.without_fault or self.without_parts}: {self.outcome.reason}"
        if not self.outcome.crossed:
            return self.outcome.reason
        thresholds, late = "; and ".join(self.outcome.crossed), behind(self.outcome.parts)
        if late is None:
            return f"crossed the threshold {thresholds}. {self.outcome.reason}"
        return f"it is unknown whether the system keeps the threshold {thresholds}. {late} {self.outcome.reason}"

    @property
    def message(self) -> str:
        """Returns the case's sentence, after the two verdicts if it has another one than was expected."""
        if self.verdict in {None, self.case.expect} or self.failed_as_known:
            return self.why
        return f"{self.verdict}, expected {self.case.expect}: {self.why}"


def standing(*, passed: int, ran: int, selected: int, cases: int) -> str:
    """Returns how many cases of a suite were as expected, in the words of the terminal, of files and of pages.

    Args:
        passed: The number of cases that were as expected.
        ran: The number of cases with a result.
        selected: The number of cases that should run.
        cases: The number of all cases of the suite.
    """
    text = f"{counted_of(passed, selected, 'case', 'were')} as expected"
    text += f"; {selected - ran} did not run" if ran < selected else ""
    return text + (f"; {counted_of(selected, cases, 'case')} selected" if selected < cases else "")


def exit_code(results: Iterable[CaseResult]) -> ExitCode:
    """Returns the exit code of a suite.

    The worst case decides: an unexpected verdict or a crossed threshold, then an error, then an unknown, then valid.
    """
    return worst_code([ExitCode.VALID, *(result.decides for result in results)])
