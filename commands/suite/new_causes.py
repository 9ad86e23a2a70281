"""The causes by which a suite with `--fail-on new` fails: new ones, and those that came back, of the runs of this suite."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ExitCode, worst_code
from results.causes.grouping import grouped
from results.causes.known import read_known
from results.causes.reading import read_stores
from results.causes.standing import causes_of
from results.causes.texts import rate_of, state_of, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.suites.case_result import CaseResult
    from results.causes.standing import Cause

_CODES = {"broken off": ExitCode.INTERNAL, "unknown": ExitCode.UNKNOWN}


def causes_of_suite(store: Path, results: Sequence[CaseResult], known: Path) -> list[Cause]:
    """Returns the causes of the runs of a suite that are not as expected; earlier runs of the store say which are new.

    Args:
        store: The store, which has the runs of the suite.
        results: The results of the suite.
        known: The folder of known causes.

    Raises:
        InputError: A known cause is malformed.
    """
    own = {Path(result.run).resolve() for result in results if result.run is not None and not result.passed}
    seen = read_stores([store])
    groups = [
        group
        for group in grouped(seen.cases)
        if any(case.trial.run is not None and case.trial.run.path.resolve() in own for case in group.cases)
    ]
    return causes_of(seen, groups, read_known(known), datetime.now(UTC).date())


def exit_code(causes: Sequence[Cause], results: Sequence[CaseResult]) -> ExitCode:
    """Returns the exit code of a suite by its causes: only new ones and those that came back count.

    A case without a run has no cause, and counts as without `--fail-on`.
    """
    lost = [result.decides for result in results if result.run is None]
    codes = [_CODES.get(cause.ended, ExitCode.INVALID) for cause in causes if cause.fails]
    return worst_code([ExitCode.VALID, *lost, *codes])


def lines_of(causes: Sequence[Cause]) -> Iterator[str]:
    """Yields a line for each cause, what is new first."""
    for cause in causes:
        yield f"{state_of(cause)}  {told(cause)}  {rate_of(cause)}"
