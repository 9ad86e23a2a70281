"""The expectation of a suite for a case, and the outcome of a run beside it.

A suite passes its expectation to each run, and `test.json` has it. So later readers, such as trends over many nights, judge the
run as the suite did. `Expectation.outcome` is the only place that decides an outcome. Terminals, files, pages and exit codes
follow it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection


class CaseOutcome(enum.StrEnum):
    """The outcome of a run beside its expectation."""

    EXPECTED = "as-expected"
    KNOWN = "known-failure"
    UNDECIDED = "undecided"
    UNEXPECTED = "unexpected"

    @property
    def severity(self) -> int:
        """Returns 0 for as expected and for a known failure, 1 for undecided, 2 for unexpected."""
        return {CaseOutcome.UNDECIDED: 1, CaseOutcome.UNEXPECTED: 2}.get(self, 0)

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict on the case: valid if the run is as expected or a known failure."""
        return {0: Verdict.VALID, 1: Verdict.UNKNOWN, 2: Verdict.INVALID}[self.severity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a run showed, as far as its outcome depends on it.

    Attributes:
        verdict: The run's verdict.
        failures: The parts that count for it and are not valid, as `name=verdict`.
        fault_violations: The number of violations during or after a fault; None if it is not known.
        crossed: A sentence for each crossed threshold.
        behind: Whether the control node was behind, so that the numbers of the run are not the system's.
    """

    verdict: Verdict
    failures: Collection[str] = ()
    fault_violations: int | None = None
    crossed: Collection[str] = ()
    behind: bool = False

    @property
    def alone(self) -> Verdict:
        """Returns the verdict with the thresholds, as if no suite expected another verdict: a colour, and the exit code."""
        return Expectation().outcome(self).verdict

    @property
    def words(self) -> str:
        """Returns the verdict, and whether a threshold is crossed."""
        if not self.crossed:
            return str(self.verdict)
        return f"{self.verdict}, {'thresholds unknown' if self.behind else 'crossed a threshold'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The expectation for a run.

    Attributes:
        verdict: The expected verdict; a negative control expects `invalid`.
        during_fault: Whether a violation must be during or after a fault; only if `invalid` is expected.
        known_failures: Parts with their verdicts, `name=verdict`, that do not count if `valid` is expected.
        parts: The parts of the verdict that must be invalid; only if `invalid` is expected.
        rate: The share of runs that may be unexpected; None: none may. One run alone is a known failure then, and the suite
            decides by all runs of the case; see `harness.suites.rates`.
    """

    verdict: Verdict = Verdict.VALID
    during_fault: bool = False
    known_failures: frozenset[str] = field(default_factory=frozenset)
    parts: frozenset[str] = field(default_factory=frozenset)
    rate: float | None = None

    def outcome(self, shown: Shown) -> CaseOutcome:
        """Returns the outcome of a run; with a rate, an unexpected one is a known failure."""
        alone = self.of_one(shown)
        return CaseOutcome.KNOWN if self.rate is not None and alone is CaseOutcome.UNEXPECTED else alone

    def of_one(self, shown: Shown) -> CaseOutcome:
        """Returns the outcome of a run, whatever rate is expected.

        A run that crosses a threshold is unexpected with any verdict. If its control node was behind, the crossed threshold
        decides nothing, and the outcome is undecided unless the verdict is unexpected.
        """
        by_verdict = self._by_verdict(shown)
        if not shown.crossed or by_verdict is CaseOutcome.UNEXPECTED:
            return by_verdict
        return CaseOutcome.UNDECIDED if shown.behind else CaseOutcome.UNEXPECTED

    def _by_verdict(self, shown: Shown) -> CaseOutcome:
        if shown.verdict is self.verdict:
            invalid = {part for part in self.parts if f"{part}={Verdict.INVALID}" in shown.failures}
            is_met = invalid == self.parts and (not self.during_fault or (shown.fault_violations or 0) > 0)
            return CaseOutcome.EXPECTED if is_met else CaseOutcome.UNEXPECTED
        if self.verdict is Verdict.VALID and shown.failures and self.known_failures.issuperset(shown.failures):
            return CaseOutcome.KNOWN
        return CaseOutcome.UNDECIDED if shown.verdict is Verdict.UNKNOWN else CaseOutcome.UNEXPECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCase:
    """The case of a suite that a run belongs to.

    Attributes:
        suite: The suite's name.
        case: The case's name, e.g. `partitions[nemesis=bridge]#2`.
        line: The case's name without the number of its repetition; trends compare runs of one line.
        expectation: The expectation of the suite.
    """

    suite: str
    case: str
    line: str
    expectation: Expectation
