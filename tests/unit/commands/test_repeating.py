"""A repeated test: its seeds, the number of invalid runs, the worst run's exit code, and the page with links to the runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

import cli
from commands.run.repeating import Repetition, Tally, document_of, repeat
from harness.errors import ExitCode, InfrastructureError, InputError, InterruptedEarly
from harness.outcome import RunOutcome
from harness.randomness import repeat_seed
from harness.verdict import CONTROL_NODE, Part, Verdict
from results.repeats import RepeatFolder
from tests.trials import TOY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commands.run.session import Session

pytestmark = pytest.mark.usefixtures("without_plots")
FORGETS = ("--nemesis", "power-loss:n1", "--fault-on", "1-2", "--fault-off", "1-2", "--forgets")


def session(verdict: Verdict, *more: Part, crossed: Sequence[str] = ()) -> Session:
    """Returns a run with a verdict."""
    parts = [Part(name="linearizable", verdict=verdict, reason="Because."), *more]
    return cast(
        "Session", SimpleNamespace(run=SimpleNamespace(path="r"), outcome=RunOutcome.of(parts, crossed=crossed))
    )


def tally(outcomes: Sequence[Verdict | Exception], *, until_fail: bool = False) -> Tally:
    """Repeats a test whose runs have these verdicts or errors."""
    remaining = iter(outcomes)

    def carry_out(_: int) -> Session:
        outcome = next(remaining)
        if isinstance(outcome, Exception):
            raise outcome
        return session(outcome)

    return repeat(
        carry_out,
        range(len(outcomes)),
        asked=len(outcomes),
        until_fail=until_fail,
        reproduce=str,
        on_run=lambda _: None,
    )


def test_seeds_follow_from_the_first() -> None:
    """The first run has the seed itself, and each run has another one."""
    assert [repeat_seed(7, number) for number in (1, 2, 3)] == [7, repeat_seed(7, 2), repeat_seed(7, 3)]
    assert len({repeat_seed(7, number) for number in range(1, 100)}) == 99


V, X, U, E = Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN, InfrastructureError("no node")


@pytest.mark.parametrize(
    ("outcomes", "code", "sentence"),
    [
        ([V, X, V, V, X], ExitCode.INVALID, "2 of 5 runs are invalid: 11.8% to 76.9% with 95 % confidence (Wilson"),
        ([V, V], ExitCode.VALID, "0 of 2 runs are invalid"),
        ([V, U, E], ExitCode.INTERNAL, "0 of 1 run is invalid: 0.0% to 79.3% with 95 % confidence"),
        ([V, U], ExitCode.UNKNOWN, "Not counted: 1 unknown."),
        ([X, E, U], ExitCode.INVALID, "Not counted: 1 unknown, 1 broken off."),
    ],
)
def test_the_worst_run_decides(outcomes: list[Verdict | Exception], code: ExitCode, sentence: str) -> None:
    """The order is invalid, error, unknown, valid. Only valid and invalid runs are counted."""
    summary = tally(outcomes)
    assert (summary.exit_code, sentence in summary.describe()) == (code, True), summary.describe()


def test_until_fail_stops_at_the_first_invalid_run() -> None:
    """The interval is that of runs which end with the first hit."""
    summary = tally([V, X, V], until_fail=True)
    assert [run.outcome.verdict for run in summary.runs] == [V, X]
    assert summary.interval == pytest.approx((0.0126, 0.975), abs=0.001)
    assert "the exact interval for runs that end with the first hit" in summary.describe()
    assert tally([V, V], until_fail=True).interval == tally([V, V]).interval


def test_an_interruption_ends_it() -> None:
    """The finished runs count, and the exit code is 130."""
    summary = tally([V, InterruptedEarly("no"), X])
    assert (len(summary.runs), summary.exit_code) == (1, ExitCode.INTERRUPTED)
    assert "Interrupted; 2 of 3 runs are left." in summary.describe()


def test_bad_options_are_refused_at_the_first_run() -> None:
    """At a later run, such an error affects only that run."""
    with pytest.raises(InputError, match="no such"):
        tally([InputError("no such"), V])
    assert tally([V, InputError("no room")]).exit_code is ExitCode.INTERNAL


def test_the_page_escapes_foreign_text(tmp_path: Path) -> None:
    """A reason may have any text; the link leads to the report."""
    folder = RepeatFolder.create(tmp_path, "t", datetime(2026, 1, 1, tzinfo=UTC))
    document: dict[str, Any] = {
        "counts": {"runs": 1, "invalid": 1, "valid": 0, "unknown": 0, "error": 0, "crossed": 0, "crossed_behind": 0},
        "test": "t", "valid": False, "asked": 1,
        "reason": "1 of 1", "reproduce": "labrys test", "runs": [{
            "number": 1, "seed": "7", "valid": False, "reason": "<script>alert(1)</script>\u202e", "seconds": 1.0,
            "run": str(tmp_path / "t" / "a b"), "reproduce": "labrys test --seed 7", "crossed": ["<i>"],
            "behind": False}],
    }  # fmt: skip
    folder.save(document)
    page = folder.page.read_text()
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert 'href="../../../t/a%20b/report.html"' in page


def test_runs_in_the_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each run has a report, and the page has links to them; the first run has the given seed."""
    words = ["test", *TOY, *FORGETS, "--seed", "1", "--store", str(tmp_path)]
    assert cli.invoke([*words, "--repeat", "2", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [run["seed"] for run in document["runs"]] == ["1", str(repeat_seed(1, 2))]
    assert document["counts"]["invalid"] >= 1
    assert all((tmp_path / run["run"] / "report.html").is_file() for run in document["runs"])
    (page,) = tmp_path.glob("repeats/*/*/index.html")
    assert page.read_text().count("report.html") == 2
    with pytest.raises(InputError, match="same seed are the same run"):
        cli.invoke([*words, "--repeat", "2", "--same-seed"])
    with pytest.raises(InputError, match="need --repeat"):
        cli.invoke([*words, "--until-fail"])


def test_a_tally_with_an_error_has_no_verdict() -> None:
    """Its only run broke off."""
    run = Repetition(number=1, seed=1, outcome=RunOutcome(judged=None, error="no"), seconds=0.0, run=None, reproduce="")
    assert Tally(runs=[run], asked=1, until_fail=False, interrupted=False).verdict is None


@pytest.mark.parametrize(("behind", "code"), [(False, ExitCode.INVALID), (True, ExitCode.UNKNOWN)])
def test_a_run_that_crosses_a_threshold_decides_the_exit_code(*, behind: bool, code: ExitCode) -> None:
    """Its verdict stays valid, and the confidence interval is of verdicts only."""
    late = Part(name=CONTROL_NODE, verdict=Verdict.UNKNOWN, reason="Late.", extra=True)
    own_session = session(Verdict.VALID, *([late] if behind else []), crossed=["p99_ms < 1: it is 2"])
    counted = repeat(lambda _: own_session, range(2), asked=2, until_fail=False, reproduce=str, on_run=lambda _: None)
    assert counted.exit_code is code
    assert counted.count(Verdict.VALID) == 2
    words = "crossed one with a control node that was behind" if behind else "crossed a threshold"
    assert "0 of 2 runs are invalid: 0.0% to 65.8% with 95 % confidence" in counted.describe()
    assert counted.describe().endswith(f". 2 runs {words}.")
    document = document_of(counted, test="t", seed=1, reproduce="r", folder="f")
    assert [run["crossed"] for run in document["runs"]] == [["p99_ms < 1: it is 2"]] * 2
