"""The outcome of a run beside the expectation of its suite."""

from __future__ import annotations

import pytest

from harness.suites.expectation import CaseOutcome, Expectation, Shown
from harness.verdict import Verdict

VALID, INVALID, UNKNOWN = Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN
CONTROL = Expectation(verdict=INVALID)
CONTROL_OF_FAULT = Expectation(verdict=INVALID, during_fault=True)
CONTROL_BY_PART = Expectation(verdict=INVALID, parts=frozenset({"linearizable"}))
KNOWN = Expectation(known_failures=frozenset({"recovered=invalid", "progress=unknown"}))


@pytest.mark.parametrize(
    ("expectation", "verdict", "failures", "in_fault", "outcome"),
    [
        (Expectation(), VALID, (), 0, CaseOutcome.EXPECTED),
        (Expectation(), UNKNOWN, ("progress=unknown",), 0, CaseOutcome.UNDECIDED),
        (Expectation(), INVALID, ("linearizable=invalid",), 3, CaseOutcome.UNEXPECTED),
        (CONTROL, INVALID, ("linearizable=invalid",), 0, CaseOutcome.EXPECTED),
        (CONTROL, VALID, (), 0, CaseOutcome.UNEXPECTED),
        (CONTROL, UNKNOWN, ("progress=unknown",), 0, CaseOutcome.UNDECIDED),
        (CONTROL_OF_FAULT, INVALID, ("linearizable=invalid",), 1, CaseOutcome.EXPECTED),
        (CONTROL_OF_FAULT, INVALID, ("linearizable=invalid",), 0, CaseOutcome.UNEXPECTED),
        (CONTROL_OF_FAULT, INVALID, ("linearizable=invalid",), None, CaseOutcome.UNEXPECTED),
        (CONTROL_BY_PART, INVALID, ("linearizable=invalid", "progress=unknown"), 0, CaseOutcome.EXPECTED),
        (CONTROL_BY_PART, INVALID, ("linearizable=unknown", "recovered=invalid"), 0, CaseOutcome.UNEXPECTED),
        (KNOWN, INVALID, ("recovered=invalid", "progress=unknown"), 0, CaseOutcome.KNOWN),
        (KNOWN, UNKNOWN, ("progress=unknown",), 0, CaseOutcome.KNOWN),
        (KNOWN, INVALID, ("recovered=invalid", "linearizable=invalid"), 0, CaseOutcome.UNEXPECTED),
        (KNOWN, INVALID, (), 0, CaseOutcome.UNEXPECTED),
        (KNOWN, VALID, (), 0, CaseOutcome.EXPECTED),
        (Expectation(verdict=UNKNOWN), UNKNOWN, ("progress=unknown",), 0, CaseOutcome.EXPECTED),
        (Expectation(verdict=UNKNOWN), VALID, (), 0, CaseOutcome.UNEXPECTED),
    ],
)
def test_an_outcome(
    expectation: Expectation, verdict: Verdict, failures: tuple[str, ...], in_fault: int | None, outcome: CaseOutcome
) -> None:
    """An expected verdict or a known failure passes, and an unknown is undecided."""
    assert expectation.outcome(Shown(verdict=verdict, failures=failures, fault_violations=in_fault)) is outcome


@pytest.mark.parametrize(
    ("expectation", "verdict", "behind", "outcome"),
    [
        (Expectation(), VALID, False, CaseOutcome.UNEXPECTED),
        (Expectation(), VALID, True, CaseOutcome.UNDECIDED),
        (Expectation(), UNKNOWN, False, CaseOutcome.UNEXPECTED),
        (Expectation(), INVALID, True, CaseOutcome.UNEXPECTED),
        (CONTROL, INVALID, False, CaseOutcome.UNEXPECTED),
        (CONTROL, INVALID, True, CaseOutcome.UNDECIDED),
        (KNOWN, INVALID, False, CaseOutcome.UNEXPECTED),
    ],
)
def test_a_run_that_crosses_a_threshold_is_not_as_expected(
    expectation: Expectation, verdict: Verdict, *, behind: bool, outcome: CaseOutcome
) -> None:
    """It is unexpected with any verdict, and undecided if its control node was behind."""
    failures = ("recovered=invalid",) if verdict is INVALID else ()
    shown = Shown(verdict=verdict, failures=failures, crossed=("p99_ms < 1: it is 2",), behind=behind)
    assert expectation.outcome(shown) is outcome


def test_only_an_unexpected_outcome_counts_as_invalid() -> None:
    """This verdict is the colour of the page."""
    assert [outcome.verdict for outcome in CaseOutcome] == [VALID, VALID, UNKNOWN, INVALID]
