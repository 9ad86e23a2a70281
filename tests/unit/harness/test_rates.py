"""An expected rate: a sequential test over the runs of a case decides whether they are unexpected too often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import ExitCode, InputError
from harness.randomness import stream
from harness.suites.case import Case
from harness.suites.case_result import exit_code
from harness.suites.rates import decide, rate_from
from harness.verdict import Verdict
from tests.cases import case_result

FLAKY = Case(
    reproduce="labrys suite s.toml", name="flaky", test="flaky", options={}, seed=7, expect=Verdict.VALID, expect_rate=0.05
)  # fmt: skip
INVALID, VALID, UNKNOWN = (int(verdict.exit_code) for verdict in (Verdict.INVALID, Verdict.VALID, Verdict.UNKNOWN))


@pytest.mark.parametrize(("text", "limit"), [("<= 0.05", 0.05), (" <=.3 ", 0.3), (None, None)])
def test_a_limit_is_read(text: str | None, limit: float | None) -> None:
    """Only an upper limit makes sense."""
    assert rate_from("s.toml", text) == limit


@pytest.mark.parametrize("text", ["0.05", "< 0.05", "<= 0", "<= 0.5", "<= 1", "<= 5 %", 0.05, ["<= 0.05"]])
def test_another_limit_is_refused(text: object) -> None:
    """The error names the place and a limit that fits."""
    with pytest.raises(InputError, match=r"s\.toml: expect-rate takes a limit up to 0\.3"):
        rate_from("s.toml", text)


@pytest.mark.parametrize(("rate", "wrong", "most"), [(0.1, True, 0.05), (0.3, False, 0.1)])
def test_a_rate_is_decided_with_its_errors(rate: float, wrong: bool, most: float) -> None:
    """The first decision about a rate at the limit, and about one of three times as much, is seldom wrong."""
    random = stream(4, f"rate/{rate}")
    errors = 0
    for _ in range(400):
        runs: list[bool] = []
        while (decision := decide(0.1, runs)).too_high is None:
            runs.append(random.random() < rate)
        errors += decision.too_high is wrong
    assert errors / 400 <= most + 0.03


def test_a_rate_that_changes_is_decided_again() -> None:
    """After a decision the test begins anew, in both directions."""
    early, late = [False] * 60, [True, False] * 10
    assert decide(0.05, early).too_high is False
    assert decide(0.05, [*early, *late]).too_high is True
    assert decide(0.05, [*early, *late, *early]).too_high is False


def test_one_unexpected_run_within_its_rate_passes() -> None:
    """It is a known failure; an unknown run is undecided as before."""
    one = replace(case_result(FLAKY, INVALID, "Stale.", failures=["linearizable=invalid"]), rate=decide(0.05, [True]))
    assert (one.passed, one.unexpected, one.ended, one.decides) == (True, True, "invalid, as known", ExitCode.VALID)
    assert "1 of 1 run was unexpected, and too few runs decide on the limit of 0.05" in one.why
    unknown = case_result(FLAKY, UNKNOWN, failures=["progress=unknown"])
    assert (unknown.passed, unknown.unexpected, unknown.undecided) == (False, None, True)


def test_a_rate_that_is_too_high_fails_each_case_of_its_line() -> None:
    """The exit code of the suite is 1, also if the last run is as expected."""
    decided = decide(0.05, [True, False] * 10)
    results = [
        replace(case_result(FLAKY, code, failures=failures), rate=decided)
        for code, failures in ((INVALID, ["linearizable=invalid"]), (VALID, []))
    ]
    assert [result.ended for result in results] == ["invalid, too often", "valid, too often"]
    assert exit_code(results) is ExitCode.INVALID
    assert "its rate is higher than the limit of 0.05" in results[1].why
