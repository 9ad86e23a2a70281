"""Runs beside the runs before them: what is a regression, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from harness.verdict import Verdict
from results.pipeline.measure.trends import BY_OPERATIONS, BY_RUN, TRENDS, trends
from results.pipeline.schema import RUNS

NOTHING = {**dict.fromkeys((*RUNS.names, *TRENDS.names)), "measured_s": None, "healed": 0, "unseen": 0}


def of(run: str, **said: Any) -> dict[str, Any]:
    """Returns what is known of a run."""
    return {
        **NOTHING,
        "test": "t",
        "system": "s",
        "severity": Verdict.VALID.severity,
        "run": run,
        "started": run,
        **said,
    }


def marked(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Returns the runs that have regressions, and which."""
    return {row["run"]: row["regressions"] for row in trends(rows) if row["regressions"]}


def test_a_regression_is_worse_than_the_median_by_the_rule() -> None:
    """One slow run is marked, ordinary noise is not, nor what follows it; and too short a past marks nothing."""
    p99 = [10.0, 50.0, 10.2, 9.9, 10.1, 10.0, 30.0, 10.0, 10.9, 12.0]
    rows = [
        of(
            f"{number}",
            availability=0.5 if number == 8 else 1.0,
            # Recovery as a run says it is often shorter than that which operations show; the two are not compared.
            **{"said_recovery_s": 1.0} if number < 5 else {"measured_s": 9.0, "healed": 1},
            p50_ms=1.0,
            p99_ms=ms,
        )
        for number, ms in enumerate(p99)
    ]
    assert marked(rows) == {"6": ["p99_ms"], "8": ["availability"], "9": ["p99_ms"]}
    assert [row["recovery_from"] for row in trends(rows)] == [BY_RUN] * 5 + [BY_OPERATIONS] * 5


@pytest.mark.parametrize(
    ("before", "is_marked"), [(Verdict.VALID, True), (Verdict.UNKNOWN, True), (Verdict.INVALID, False), (None, False)]
)
def test_an_invalid_verdict_after_another_one_is_a_regression(before: Verdict | None, *, is_marked: bool) -> None:
    """What counts is the run right before; one that was not judged says nothing."""
    rows = [
        of("1", severity=Verdict.VALID.severity),
        of("2", severity=None if before is None else before.severity),
        of("3", severity=Verdict.INVALID.severity),
        of("3", test="another", severity=Verdict.INVALID.severity),
    ]
    assert (marked(rows).get("3") == ["verdict"]) is is_marked


def test_only_the_last_ten_runs_count_in_the_order_of_their_starts() -> None:
    """A run that does not say when it started is before all others; the order of the rows says nothing."""
    old = [of(f"{number:02}", p50_ms=1.0) for number in range(10)]
    new = [of(f"{number:02}", p50_ms=5.0) for number in range(10, 21)]
    unknown = of("zz", started=None, p50_ms=100.0)
    rows = [*reversed(new), unknown, *old]
    assert [row["run"] for row in trends(rows)] == ["zz", *(f"{number:02}" for number in range(21))]
    assert marked(rows) == {f"{number}": ["p50_ms"] for number in range(10, 15)}
