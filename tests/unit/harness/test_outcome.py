"""The outcome of a run, from its parts and its error."""

from __future__ import annotations

import pytest

from harness.errors import ExitCode, worst_code
from harness.outcome import RunOutcome, worst
from harness.verdict import CONTROL_NODE, Part, Verdict

V, X, U = Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN
LATE = Part(name=CONTROL_NODE, verdict=U, reason="Late.", extra=True)


def outcome(verdict: Verdict, *more: Part, error: str | None = None, interrupted: bool = False) -> RunOutcome:
    """Returns the outcome of a run whose first part has a verdict."""
    first = Part(name="linearizable", verdict=verdict, reason="Because.", details={"operations": 3})
    return RunOutcome.of([first, *more], error=error, interrupted=interrupted)


@pytest.mark.parametrize(
    ("found", "verdict", "reason", "code"),
    [
        (outcome(V), V, "Because.", ExitCode.VALID),
        (outcome(U), U, "Because.", ExitCode.UNKNOWN),
        (outcome(X), X, "Because.", ExitCode.INVALID),
        (outcome(X, error="the disk is full"), X, "Because.", ExitCode.INVALID),
        (outcome(U, error="the disk is full"), None, "the disk is full", ExitCode.INTERNAL),
        (outcome(V, error="the disk is full"), None, "the disk is full", ExitCode.INTERNAL),
        (outcome(V, interrupted=True), V, "Because.", ExitCode.INTERRUPTED),
        (RunOutcome(judged=None, error="no node"), None, "no node", ExitCode.INTERNAL),
        (RunOutcome(judged=None, interrupted=True), None, "", ExitCode.INTERRUPTED),
    ],
)
def test_an_error_never_masks_an_invalid_verdict(
    found: RunOutcome, verdict: Verdict | None, reason: str, code: ExitCode
) -> None:
    """An error takes any other verdict away, and an interruption decides the exit code alone."""
    assert (found.verdict, found.reason, found.exit_code) == (verdict, reason, code)
    assert (found.shown is None) is (verdict is None)


@pytest.mark.parametrize(
    ("verdict", "more", "code"),
    [
        (V, (), ExitCode.INVALID),
        (V, (LATE,), ExitCode.UNKNOWN),
        (U, (), ExitCode.INVALID),
        (X, (LATE,), ExitCode.INVALID),
    ],
)
def test_a_crossed_threshold_decides_the_exit_code(verdict: Verdict, more: tuple[Part, ...], code: ExitCode) -> None:
    """The verdict stays. If the control node was behind, the threshold is unknown."""
    parts = [Part(name="linearizable", verdict=verdict, reason="Because."), *more]
    outcome_of_parts = RunOutcome.of(parts, crossed=["p99_ms < 1: it is 2"])
    assert (outcome_of_parts.verdict, outcome_of_parts.exit_code, outcome_of_parts.behind) == (
        verdict,
        code,
        bool(more),
    )


def test_a_brief_outcome_has_no_details() -> None:
    """Names, verdicts and reasons of the parts stay, and so does all that follows from them."""
    whole = outcome(X, LATE)
    brief = whole.brief()
    assert [part.details for part in brief.parts] == [{}, {}]
    assert (brief.shown, brief.invalid, brief.reason) == (whole.shown, ("linearizable",), whole.reason)


def test_the_worst_code_is_that_of_decision_7() -> None:
    """An interruption is first, then invalid, errors, unknown and valid. Nothing is unknown."""
    order = [ExitCode.INTERRUPTED, ExitCode.INVALID, ExitCode.INTERNAL, ExitCode.BAD_ARGUMENTS, ExitCode.UNKNOWN]
    for index, code in enumerate(order):
        assert worst_code([ExitCode.VALID, *reversed(order[index:])]) is code
    assert worst_code([]) is ExitCode.UNKNOWN
    assert worst([outcome(V), outcome(U, error="no"), outcome(U)]) is ExitCode.INTERNAL
