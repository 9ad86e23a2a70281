"""A suite goes on from an earlier run: after an interruption, or with the cases that failed; `labrys.toml` beside it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import cli
from harness.errors import ExitCode
from tests.examples import DEFAULT, SIMULATED

SUITE = f"""
[defaults]
cluster = "sim"
system = "{SIMULATED}"
[[test]]
name = "a"
[[test]]
name = "b"
[[test]]
name = "c"
"""
# Ends with 1 and an invalid verdict for each case that a file names, and writes the words of each case.
COMMAND = """#!/bin/sh
name=$(echo "$*" | sed 's/.*--name s-\\([a-z]*\\).*/\\1/')
echo "$*" >>words-$name
[ ! -e break-$name ] || exit 130
if [ -e fail-$name ]; then
  echo '{"valid": false, "reason": "Bad.", "parts": {}}'; exit 1
fi
echo '{"valid": true, "reason": "Good.", "parts": {}}'
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in a folder with a suite of three cases."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SUITE)
    (tmp_path / "command").write_text(COMMAND)
    (tmp_path / "command").chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "command"))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    """Runs the suite; returns its exit code, the cases that ran, and standard error."""
    for file in Path().glob("words-*"):
        file.unlink()
    with pytest.raises(SystemExit) as ended:
        cli.main(["suite", "s.toml", "--jobs", "1", *words])
    assert isinstance(ended.value.code, int)
    return ended.value.code, sorted(file.name[6:] for file in Path().glob("words-*")), capsys.readouterr().err


def newest() -> tuple[Path, dict[str, Any]]:
    """Returns the folder of the newest run of the suite, and its `suite.json`."""
    path = max(Path("store/suites/s").iterdir())
    return path, json.loads((path / "suite.json").read_text())


def test_the_last_failed_cases_run_again_with_their_seed(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """Then only those of them that failed again; when none is left, nothing runs."""
    assert run(capsys, "--last-failed")[0] == ExitCode.BAD_ARGUMENTS
    for name in ("a", "c"):
        (folder / f"fail-{name}").touch()
    code, ran, _ = run(capsys, "--seed", "7")
    assert (code, ran) == (ExitCode.INVALID, ["a", "b", "c"])
    first = (folder / "words-a").read_text()
    (folder / "fail-c").unlink()
    code, ran, err = run(capsys, "--last-failed")
    assert (code, ran) == (ExitCode.INVALID, ["a", "c"])
    assert "repeats    2 of 2 failed cases of store/suites/s/" in err
    assert (folder / "words-a").read_text().split()[:6] == first.split()[:6]
    assert newest()[1]["seed"] == "7"
    assert "1 of 2 cases was as expected; 2 of 3 cases selected" in err
    assert "1 of 2 cases was as expected; 2 of 3 cases selected" in (newest()[0] / "summary.md").read_text()
    code, ran, err = run(capsys, "--last-failed", "--only", "c")
    assert (code, ran) == (ExitCode.BAD_ARGUMENTS, [])
    assert "none is selected; the first are a" in err
    (folder / "fail-a").unlink()
    assert run(capsys, "--last-failed")[:2] == (ExitCode.VALID, ["a"])
    code, ran, err = run(capsys, "--last-failed")
    assert (code, ran) == (ExitCode.VALID, [])
    assert "all cases were as expected; nothing to run" in err
    assert run(capsys, "--last-failed", "--resume", "store")[0] == ExitCode.BAD_ARGUMENTS


def test_a_case_without_a_result_was_not_as_expected(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """`--last-failed` runs it, because nobody saw it pass."""
    (folder / "break-b").touch()
    assert run(capsys)[:2] == (ExitCode.INTERRUPTED, ["a", "b"])
    (folder / "break-b").unlink()
    assert run(capsys, "--last-failed")[:2] == (ExitCode.VALID, ["b", "c"])


def test_a_file_that_changed_since_is_noticed(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """A changed case runs again, a new one runs, the result of one that is gone is left out, and a line names each."""
    (folder / "break-c").touch()
    assert run(capsys, "--seed", "7")[:2] == (ExitCode.INTERRUPTED, ["a", "b", "c"])
    (folder / "break-c").unlink()
    suite_folder = str(newest()[0])
    changed = SUITE.replace('name = "a"', 'name = "a"\nrate = 5').replace('name = "b"', 'name = "d"')
    (folder / "s.toml").write_text(changed)
    code, ran, err = run(capsys, "--resume", suite_folder)
    assert (code, ran) == (ExitCode.VALID, ["a", "c", "d"])
    assert "changed in the suite's file: a; the earlier results of these cases do not count" in err
    assert "new in the suite's file: d\n" in err
    assert "gone from the suite's file: b; the results of these cases are left out" in err
    assert set(newest()[1]["results"]) == {"a", "c", "d"}
    code, ran, err = run(capsys, "--resume", suite_folder)
    assert (code, ran) == (ExitCode.VALID, [])
    assert "the suite's file" not in err


def test_an_expectation_that_changed_since_is_noticed(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """The case has the same command; so has one whose plan has another content."""
    plan = folder / "p.json"
    plan.write_text('{"faults": []}')
    (folder / "s.toml").write_text(SUITE.replace('name = "b"', 'name = "b"\nplan = "p.json"'))
    assert run(capsys, "--seed", "7")[:2] == (ExitCode.VALID, ["a", "b", "c"])
    suite_folder = str(newest()[0])
    plan.write_text('{"faults": [], "seed": 1}')
    edited = (folder / "s.toml").read_text().replace('name = "c"', 'name = "c"\nexpect = "invalid"')
    (folder / "s.toml").write_text(edited)
    code, ran, err = run(capsys, "--resume", suite_folder)
    assert (code, ran) == (ExitCode.INVALID, ["b", "c"])
    assert "changed in the suite's file: b, c;" in err


def test_a_resumed_selection_stays(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """Without `--only`, a run goes on with the cases that it selected; with none of them left, it is refused."""
    (folder / "break-b").touch()
    assert run(capsys, "--only", "a or b", "--seed", "7")[:2] == (ExitCode.INTERRUPTED, ["a", "b"])
    (folder / "break-b").unlink()
    suite_folder = str(newest()[0])
    code, ran, err = run(capsys, "--resume", suite_folder)
    assert (code, ran) == (ExitCode.VALID, ["b"])
    assert "2 of 2 cases were as expected; 2 of 3 cases selected" in err
    (folder / "s.toml").write_text(f'[[test]]\nname = "other"\ncluster = "sim"\nsystem = "{SIMULATED}"\n')
    code, ran, err = run(capsys, "--resume", suite_folder)
    assert (code, ran) == (ExitCode.BAD_ARGUMENTS, [])
    assert "s.toml has none of the cases that" in err


def test_defaults_of_another_system_are_left_out_with_a_line(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """`labrys.toml` may be for another system; the suite's file alone decides its own. Common defaults stay."""
    defaults = f'system = "{DEFAULT}"\nread-mode = "unsafe"\ncluster = "local"\nrate = 30\nrepeat = 5\n'
    (folder / "labrys.toml").write_text(f"[test]\n{defaults}")
    code, ran, err = run(capsys, "--only", "a")
    assert (code, ran) == (ExitCode.VALID, ["a"])
    assert "labrys.toml: of [test], these do not apply to this suite: cluster, read-mode, repeat, system." in err
    assert "--config labrys.toml" in (folder / "words-a").read_text()
    (folder / "labrys.toml").write_text("[test]\nread-mod = 3\n")
    code, _, err = run(capsys, "--only", "a")
    assert code == ExitCode.BAD_ARGUMENTS
    assert "[test] has no option 'read-mod'" in err
