"""Tests that hang or die cost themselves and no other test, are named, and leave no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.children import PROC

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]
# A child, one that leaves its parent, and one in a session of its own.
CHILDREN = 'subprocess.Popen("sleep 301 & setsid sleep 302 & exec sleep 303", shell=True)\n    time.sleep(0.3)\n'
IMPORTS = "import os, signal, subprocess, time, pytest\n"
PLAIN = "def test_one(): pass\ndef test_two(): pass\ndef test_three(): pass\n"


def run(folder: Path, files: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Runs tests with this project's conftest and limits of a second or so."""
    for name, text in files.items():
        path = folder / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(IMPORTS + text)
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\ntimeout = 60\ntimeout_method = signal\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "conftest",
            "--import-mode=importlib",
            *options,
        ],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def left(folder: Path) -> list[str]:
    """Returns the commands of processes that work in a folder."""
    commands = []
    for process in PROC.iterdir():
        try:
            if process.name.isdecimal() and (process / "cwd").readlink().is_relative_to(folder):
                commands.append((process / "cmdline").read_text())
        except OSError:  # it has ended
            continue
    return commands


def test_a_test_that_kills_its_process_fails_and_all_others_run_once(tmp_path: Path) -> None:
    """Its process had finished other files, and one waited there. With the scheduler of xdist, such a run waits for ever."""
    deadly = f"def test_before(): pass\ndef test_deadly():\n    {CHILDREN}    os.kill(os.getpid(), 9)\ndef test_after(): pass\n"
    files = {f"unit/test_{number}.py": PLAIN for number in range(8)}
    ended = run(tmp_path, {**files, "integration/test_deadly.py": deadly, "unit/test_4.py": deadly}, "-n2")
    assert " 2 failed, 25 passed" in ended.stdout
    assert "crashed while running 'tests/unit/test_4.py::test_deadly'" in ended.stdout
    assert "has died. It ran tests/integration/test_deadly.py::test_deadly, begun" in ended.stderr
    assert left(tmp_path) == []


@pytest.mark.parametrize("processes", [[], ["-n2"]])
def test_a_test_that_takes_too_long_fails_with_its_stacks(tmp_path: Path, processes: list[str]) -> None:
    """The next tests run in the same process."""
    slow = f"@pytest.mark.timeout(1)\ndef test_slow():\n    {CHILDREN}    time.sleep(50)\n"
    ended = run(tmp_path, {"unit/test_slow.py": slow + PLAIN}, *processes)
    assert "this test took longer than 1 s" in ended.stdout
    assert 'test_slow.py", line 6 in test_slow' in ended.stdout
    assert "`sleep 301`" in ended.stdout
    assert " 1 failed, 3 passed" in ended.stdout
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    "body",
    [
        "sum(range(10**13))",  # native code that holds the lock of the interpreter
        "while True:\n        try: time.sleep(50)\n        except BaseException: pass",
    ],
)
@pytest.mark.parametrize("processes", [[], ["-n2"]])
def test_a_process_that_cannot_end_its_test_is_killed(tmp_path: Path, processes: list[str], body: str) -> None:
    """It writes its stacks first. With several processes, another one runs the other tests."""
    stuck = f"@pytest.mark.timeout(1)\ndef test_stuck():\n    {CHILDREN}    {body}\n"
    ended = run(tmp_path, {"unit/test_stuck.py": stuck + PLAIN}, "--limit-grace=1", *processes)
    assert "does not end tests/unit/test_stuck.py::test_stuck, begun" in ended.stderr
    assert "whose limit is 1 s. It is killed." in ended.stderr
    assert "in test_stuck" in ended.stderr
    assert "`sleep 301`" in ended.stderr
    if processes:
        assert " 1 failed, 3 passed" in ended.stdout
        assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    else:
        assert ended.returncode == -signal.SIGKILL
    assert left(tmp_path) == []


@pytest.mark.parametrize(("limit_s", "processes"), [(6, []), (20, ["-n2"])])
def test_a_run_has_a_limit(tmp_path: Path, limit_s: int, processes: list[str]) -> None:
    """It then shows what runs, with stacks, and what has failed until then."""
    files = {
        "unit/test_a.py": "def test_wrong(): assert False\n",
        "unit/test_b.py": f"def test_long():\n    {CHILDREN}    time.sleep(100)\n",
    }
    ended = run(tmp_path, files, f"--run-limit={limit_s}", *processes)
    assert f"the run takes longer than {limit_s} s, and ends. This still runs:" in ended.stderr
    assert "runs tests/unit/test_b.py::test_long, begun" in ended.stderr
    assert "in test_long" in ended.stderr
    assert "1 failed" in ended.stdout
    assert ended.returncode == pytest.ExitCode.INTERRUPTED
    assert left(tmp_path) == []
