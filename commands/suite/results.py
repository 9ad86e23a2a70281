"""The result of a case of a suite, from the end of its process."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.console.plain import counted_of
from harness.errors import ExitCode
from harness.outcome import RunOutcome, behind, failures
from harness.suites.case_result import CaseResult
from harness.verdict import CONTROL_NODE, Part, Verdict
from results.measure.outcome import crossed, fault_violations
from results.stored.reading import parts_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.op import Value
    from harness.suites.case import Case

REASON_LINES = 3
ERROR_PREFIX = "labrys: "  # of each error that a command writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of the process of a case.

    Attributes:
        code: Its exit code.
        output: Its standard output.
        lines: The lines of its standard error.
        seconds: Its duration.
    """

    code: int
    output: str
    lines: Sequence[str]
    seconds: float


def result_of(case: Case, ended: Ended) -> CaseResult:
    """Returns the result of a case."""
    errors = [number for number, line in enumerate(ended.lines) if line.startswith(ERROR_PREFIX)]
    ending = ended.lines[errors[-1] :][:REASON_LINES] if errors else ended.lines[-REASON_LINES:]
    document = _document(ended.output)
    if case.runs > 1 and "runs" in document:
        return how_often(case, document, seconds=ended.seconds)
    reason = str(document.get("reason") or " / ".join(ending) or "the command printed nothing")
    parts = parts_from(document) if "parts" in document else []
    outcome = RunOutcome(
        judged=Verdict.from_json(document.get("valid")),
        sentence=reason,
        parts=counting_parts(failures(parts), behind(parts)),
        crossed=crossed(document),
    )
    code = ended.code
    # A Python that cannot start also ends with 1, and a negative control must not pass by that.
    if outcome.alone is None or outcome.exit_code != code:
        outcome = replace(outcome, judged=None, error=reason)
        code = int(ExitCode.INTERNAL) if code in {int(verdict.exit_code) for verdict in Verdict} else code
    return CaseResult(
        case=case,
        outcome=outcome,
        code=code if outcome.verdict is None else int(outcome.verdict.exit_code),
        seconds=ended.seconds,
        run=document.get("run"),
        left_out=tuple(document.get("left_out", ())),
        fault_violations=fault_violations(document),
    )


def how_often(case: Case, document: Mapping[str, Value], *, seconds: float) -> CaseResult:
    """Returns the result of a case with several runs: as expected if at least `at_least` runs are.

    Otherwise the worst of the other runs decides, in the order invalid, error, unknown, valid.

    Args:
        case: The case.
        document: The JSON output of `labrys test --repeat`.
        seconds: The duration of all runs.
    """
    runs = document["runs"]
    hits = [
        run
        for run in runs
        if Verdict.from_json(run["valid"]) is case.expect and case.expect_parts.issubset(run["invalid"])
    ]
    others = [run for run in runs if run not in hits]
    enough = len(hits) >= case.at_least
    shown: Mapping[str, Value] = next(iter(hits if enough else _worst_first(others)), {})
    text = f"{counted_of(len(hits), len(runs), 'run', 'are')} {case.expect}"
    text += f" by {', '.join(sorted(case.expect_parts))}" if case.expect_parts else ""
    verdict = Verdict.from_json(shown.get("valid"))
    reason = f"{text}, and at least {case.at_least} of {case.runs} should be. {shown.get('reason') or 'None ran.'}"
    return CaseResult(
        case=case,
        outcome=RunOutcome(
            judged=verdict,
            sentence=reason,
            parts=counting_parts([f"{name}={Verdict.INVALID}" for name in shown.get("invalid", ())], None),
            error=reason if verdict is None else None,
        ),
        code=int(ExitCode.INTERNAL),
        seconds=seconds,
        run=shown.get("run"),
    )


def counting_parts(failures: Iterable[str], late: str | None) -> tuple[Part, ...]:
    """Returns the parts of a run that a suite counts, without their reasons.

    Args:
        failures: The parts that decide the run and are not valid, as `name=verdict`.
        late: The sentence that the control node was behind; None if it kept up, or if it is unknown.

    Raises:
        ValueError: A failure has another form.
    """
    named = (failure.rpartition("=") for failure in failures)
    parts = [Part(name=name, verdict=Verdict(verdict), reason="") for name, _, verdict in named]
    if late is not None:
        parts.append(Part(name=CONTROL_NODE, verdict=Verdict.UNKNOWN, reason=late, extra=True))
    return tuple(parts)


def _worst_first(runs: Sequence[Mapping[str, Value]]) -> list[Mapping[str, Value]]:
    """Returns runs in the order invalid, error, unknown, valid."""
    order = {Verdict.INVALID: 0, None: 1, Verdict.UNKNOWN: 2, Verdict.VALID: 3}
    return sorted(runs, key=lambda run: order[Verdict.from_json(run["valid"])])


def _document(output: str) -> Mapping[str, Value]:
    try:
        document = json.loads(output)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
