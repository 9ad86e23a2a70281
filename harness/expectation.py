"""What a suite expects of a case, and whether a run came out like that.

A suite gives each run its expectation, and `test.json` keeps it. So whoever looks at the run later, such as trends over many
nights, says of it what the suite said.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection


class Outcome(enum.StrEnum):
    """How a run came out beside what was expected of it."""

    EXPECTED = "as-expected"
    KNOWN = "known-failure"
    UNDECIDED = "undecided"
    UNEXPECTED = "unexpected"

    @property
    def severity(self) -> int:
        """Returns how bad it is: 0 for what is as expected or known, 1 for undecided, 2 for unexpected."""
        return {Outcome.UNDECIDED: 1, Outcome.UNEXPECTED: 2}.get(self, 0)

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict on the run as a case: valid if it is as expected or known."""
        return {0: Verdict.VALID, 1: Verdict.UNKNOWN, 2: Verdict.INVALID}[self.severity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is expected of a run.

    Attributes:
        verdict: The verdict that is a success; a negative control expects `invalid`.
        during_fault: Whether a violation must be seen during or after a fault; for an expected `invalid` only.
        known_failures: Parts of the verdict, `name=verdict`, that may come out like that where `valid` is expected.
        parts: The parts of the verdict that must be invalid; for an expected `invalid` only.
    """

    verdict: Verdict = Verdict.VALID
    during_fault: bool = False
    known_failures: frozenset[str] = field(default_factory=frozenset)
    parts: frozenset[str] = field(default_factory=frozenset)

    def outcome(self, verdict: Verdict, failures: Collection[str], fault_violations: int | None) -> Outcome:
        """Returns how a run came out.

        Args:
            verdict: The run's verdict.
            failures: The parts that decide it and are not valid, as `name=verdict`.
            fault_violations: How many violations were seen during or after a fault; None if that is not known.
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
    """Which case of which suite a run is.

    Attributes:
        suite: The suite's name.
        case: The case's name, e.g. `partitions[nemesis=bridge]#2`.
        line: The case's name without the number of its repetition: runs of one line are compared with each other.
        expectation: What the suite expects of it.
    """

    suite: str
    case: str
    line: str
    expectation: Expectation
