"""The expectation of a suite for a case, and the outcome of a run beside it.

A suite passes its expectation to each run, and `test.json` has it. So later readers, such as trends over many nights, judge the
run as the suite did.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection


class Outcome(enum.StrEnum):
    """The outcome of a run beside its expectation."""

    EXPECTED = "as-expected"
    KNOWN = "known-failure"
    UNDECIDED = "undecided"
    UNEXPECTED = "unexpected"

    @property
    def severity(self) -> int:
        """Returns 0 for as expected and for a known failure, 1 for undecided, 2 for unexpected."""
        return {Outcome.UNDECIDED: 1, Outcome.UNEXPECTED: 2}.get(self, 0)

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict on the case: valid if the run is as expected or a known failure."""
        return {0: Verdict.VALID, 1: Verdict.UNKNOWN, 2: Verdict.INVALID}[self.severity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The expectation for a run.

    Attributes:
        verdict: The expected verdict; a negative control expects `invalid`.
        during_fault: Whether a violation must be during or after a fault; only if `invalid` is expected.
        known_failures: Parts with their verdicts, `name=verdict`, that do not count if `valid` is expected.
        parts: The parts of the verdict that must be invalid; only if `invalid` is expected.
    """

    verdict: Verdict = Verdict.VALID
    during_fault: bool = False
    known_failures: frozenset[str] = field(default_factory=frozenset)
    parts: frozenset[str] = field(default_factory=frozenset)

    def outcome(self, verdict: Verdict, failures: Collection[str], fault_violations: int | None) -> Outcome:
        """Returns the outcome of a run.

        Args:
            verdict: The run's verdict.
            failures: The parts that count for it and are not valid, as `name=verdict`.
            fault_violations: The number of violations during or after a fault; None if it is not known.
        """
        if verdict is self.verdict:
            invalid = {part for part in self.parts if f"{part}={Verdict.INVALID}" in failures}
            shown = invalid == self.parts and (not self.during_fault or (fault_violations or 0) > 0)
            return Outcome.EXPECTED if shown else Outcome.UNEXPECTED
        if self.verdict is Verdict.VALID and failures and self.known_failures.issuperset(failures):
            return Outcome.KNOWN
        return Outcome.UNDECIDED if verdict is Verdict.UNKNOWN else Outcome.UNEXPECTED


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
