"""Results of cases of a suite by the exit code of their command, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.outcome import RunOutcome
from harness.suites.case_result import CaseResult
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.suites.case import Case


def case_result(
    case: Case,
    code: int,
    reason: str = "",
    *,
    seconds: float = 1.0,
    failures: Sequence[str] = (),
    fault_violations: int | None = None,
) -> CaseResult:
    """Returns the result of a case with a verdict, or with an error if the exit code is not that of a verdict.

    Args:
        case: The case.
        code: The exit code.
        reason: The reason of the verdict, or the error.
        seconds: The duration.
        failures: The parts that are not valid, as `name=verdict`.
        fault_violations: The number of violations during or after a fault.
    """
    verdict = next((candidate for candidate in Verdict if candidate.exit_code == code), None)
    named = [failure.split("=") for failure in failures]
    return CaseResult(
        case=case,
        outcome=RunOutcome(
            judged=verdict,
            sentence=reason,
            parts=[Part(name=name, verdict=Verdict(word), reason="") for name, word in named],
            error=reason if verdict is None else None,
        ),
        code=code,
        seconds=seconds,
        run=None,
        fault_violations=fault_violations,
    )
