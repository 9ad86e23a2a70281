"""Thresholds of `labrys test`: in results.json, the report, the reproduce line, the exit code, and a replay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import cli
from commands.options.run_options import RunOptions, Sources
from commands.run.test import run_test
from commands.shrink.regressions import write_regression
from commands.suite.contexts import known_options
from harness.errors import ExitCode
from harness.suites.suite import load_suite
from results.store.store import Store
from tests.examples import SIMULATED
from tests.trials import TOY

if TYPE_CHECKING:
    from pathlib import Path

CROSSED, KEPT = "max_ms < 0.001", "availability > 0.1"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Carries out a command line; returns its exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def thresholds(folder: Path) -> list[dict[str, Any]]:
    """Returns the thresholds in the results of the newest run of a store."""
    rows: list[dict[str, Any]] = json.loads(Store(folder).runs()[0].results_json.read_text())["thresholds"]
    return rows


def test_a_crossed_threshold_ends_a_test_with_1_and_is_kept_by_a_replay(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict stays valid. `labrys.toml` and a variable can have thresholds, too."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "test", *TOY, "--seed", "1", "--threshold", CROSSED, "--threshold", KEPT)
    assert code == ExitCode.INVALID, err
    assert "✗ valid, crossed a threshold" in out
    assert f"--threshold '{CROSSED}' --threshold '{KEPT}'" in out
    assert [row["kept"] for row in thresholds(tmp_path / "store")] == [False, True]
    first = Store(tmp_path / "store").runs()[0]
    assert json.loads(first.results_json.read_text())["valid"] is True
    assert f"threshold {KEPT}" in first.junit_xml.read_text().replace("&gt;", ">")

    system = next(word for word in TOY if ":" in word and word.startswith("tests."))
    code, _, err = run(capsys, "replay", "latest", "--system", system, "--store", str(tmp_path / "store"))
    assert code == ExitCode.INVALID, err
    assert len(Store(tmp_path / "store").runs()) == 2
    assert [row["threshold"] for row in thresholds(tmp_path / "store")] == [CROSSED, KEPT]

    (tmp_path / "labrys.toml").write_text(f'[test]\nthreshold = ["{CROSSED}"]\n')
    assert run(capsys, "test", *TOY, "--seed", "1", "--store", "a")[0] == ExitCode.INVALID
    assert run(capsys, "test", *TOY, "--seed", "1", "--store", "b", "--threshold", KEPT)[0] == ExitCode.VALID
    monkeypatch.setenv("LABRYS_TEST_THRESHOLD", f"{KEPT}, ok > 0")
    assert run(capsys, "test", *TOY, "--seed", "1", "--store", "c")[0] == ExitCode.VALID
    assert [row["threshold"] for row in thresholds(tmp_path / "c")] == [KEPT, "ok > 0"]


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("p99_ms is fine", "expected a threshold such as"),
        ("p9_ms < 3", "Did you mean"),
        ("raed.p99_ms < 3", "names the function 'raed', and the workload register has the functions cas, read, write"),
    ],
)
def test_a_threshold_that_no_run_could_keep_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, message: str
) -> None:
    """Before anything starts, and in `labrys plan` too."""
    monkeypatch.chdir(tmp_path)
    for command in ("test", "plan"):
        code, out, err = run(capsys, command, *TOY, "--threshold", limit)
        assert (code, out) == (ExitCode.BAD_ARGUMENTS, "")
        assert message in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_regression_of_a_run_has_no_thresholds(tmp_path: Path) -> None:
    """It expects a verdict, and a suite has its thresholds under another key."""
    with cli.labrys.make_context("labrys", ["test"]) as root:
        test = run_test.make_context("test", ["--cluster", "sim", "--system", SIMULATED, "--seed", "1"], parent=root)
        options = RunOptions.of({**test.params, "threshold": (CROSSED,), "nodes": 5})
        written = write_regression(
            options,
            Sources.of(test),
            plan="{}",
            part="linearizable",
            path=tmp_path / "found",
            by_chance=False,
        )
    assert "threshold" not in written.read_text()
    assert load_suite(written, seed=1, known=known_options).cases
