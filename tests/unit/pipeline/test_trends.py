"""Runs beside the runs before them: what is a regression, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from harness.suites.expectation import CaseOutcome
from harness.verdict import Verdict
from results.pipeline.measure.trends import BY_OPERATIONS, BY_RUN, trends
from results.pipeline.schema import RUNS, TRENDS

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


def of_case(run: str, line: str = "faults[nemesis=kill]", **said: Any) -> dict[str, Any]:
    """Returns what is known of a run of a suite's case, whose test has a name of its own for each repetition."""
    return of(
        run,
        **{
            "test": f"s-{run}", "suite": "s", "line": line, "suite_case": f"{line}#{run}", "expects": "valid",
            "known_failures": [], "expects_parts": [], "said_failures": [], "said_verdict": "valid", **said,
        },
    )  # fmt: skip


def test_runs_are_compared_with_those_of_their_line() -> None:
    """Repetitions of one case are one line, whatever their tests are called; other cases and other suites are others."""
    rows = [of_case(f"{number}", p99_ms=1.0) for number in range(6)]
    rows += [of_case("6", "faults[nemesis=pause]", p99_ms=9.0), of_case("7", suite="t", p99_ms=9.0)]
    assert not marked(rows)
    assert marked([*rows, of_case("8", p99_ms=9.0)]) == {"8": ["p99_ms"]}
    assert {(row["suite"], row["line"]) for row in trends([*rows, of("9")])} == {
        ("s", "faults[nemesis=kill]"),
        ("s", "faults[nemesis=pause]"),
        ("t", "faults[nemesis=kill]"),
        (None, "t"),
    }


@pytest.mark.parametrize(
    ("keys", "said", "outcome"),
    [
        (Verdict.VALID, {}, CaseOutcome.EXPECTED),
        (Verdict.VALID, {"expects": "invalid"}, CaseOutcome.UNEXPECTED),
        (Verdict.INVALID, {"expects": "invalid"}, CaseOutcome.EXPECTED),
        (Verdict.UNKNOWN, {"expects": "invalid"}, CaseOutcome.UNDECIDED),
        # Only the run itself sees parts beside its keys.
        (Verdict.VALID, {"said_verdict": "invalid", "said_failures": ["recovered=invalid"]}, CaseOutcome.UNEXPECTED),
        (
            Verdict.VALID,
            {
                "said_verdict": "invalid",
                "said_failures": ["recovered=invalid"],
                "known_failures": ["recovered=invalid"],
            },
            CaseOutcome.KNOWN,
        ),
        # What the job finds of the keys and the run did not is known to nobody.
        (
            Verdict.INVALID,
            {
                "said_verdict": "invalid",
                "said_failures": ["recovered=invalid"],
                "known_failures": ["recovered=invalid"],
            },
            CaseOutcome.UNEXPECTED,
        ),
        (
            Verdict.INVALID,
            {
                "said_verdict": "invalid",
                "said_failures": ["elections=invalid"],
                "known_failures": ["elections=invalid"],
            },
            CaseOutcome.KNOWN,
        ),
        (
            Verdict.INVALID,
            {"expects": "invalid", "expects_in_fault": True, "said_verdict": "invalid", "said_fault_violations": 0},
            CaseOutcome.UNEXPECTED,
        ),
        (Verdict.VALID, {"said_crossed": ["p99_ms < 1: it is 2"]}, CaseOutcome.UNEXPECTED),
        (Verdict.VALID, {"said_crossed": ["p99_ms < 1: it is 2"], "said_behind": "late"}, CaseOutcome.UNDECIDED),
    ],
)
def test_an_outcome_is_that_of_the_run_and_of_its_keys(
    keys: Verdict, said: dict[str, Any], outcome: CaseOutcome
) -> None:
    """The worse of both counts, beside what the suite expects."""
    (row,) = trends([of_case("1", severity=keys.severity, **said)])
    assert row["outcome"] == str(outcome)
    assert row["verdict"] == str(keys)


def test_a_run_that_says_nothing_and_was_not_judged_has_no_outcome() -> None:
    """A run without a suite is expected to be valid."""
    (nothing, unfit) = trends([of("1", severity=None), of("2", severity=None, said_verdict="invalid")])
    assert (nothing["outcome"], unfit["outcome"]) == (None, "unexpected")


def test_a_control_that_turns_valid_is_marked() -> None:
    """Its being invalid is not, night for night."""
    wrong, right = Verdict.INVALID.severity, Verdict.VALID.severity
    rows = [of_case(f"{number}", expects="invalid", severity=wrong) for number in range(3)]
    assert not marked(rows)
    assert marked([*rows, of_case("3", expects="invalid", severity=right)]) == {"3": ["verdict"]}


def test_figures_of_a_run_whose_control_node_was_behind_are_not_compared() -> None:
    """Neither with those before it, nor those after it with its own."""
    rows = [of_case(f"{number}", p99_ms=1.0) for number in range(4)]
    rows += [of_case(f"{number}", p99_ms=9.0, said_behind="late") for number in range(4, 8)]
    rows += [of_case("8", p99_ms=9.0)]
    assert marked(rows) == {"8": ["p99_ms"]}
    assert [row["behind"] for row in trends(rows)] == [False] * 4 + [True] * 4 + [False]
