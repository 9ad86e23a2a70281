"""JVMs between two runs: a broken one is ended, and its files are removed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from clusters.sim.jvm import idle
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_broken_jvm_has_no_further_run() -> None:
    """A program that has ended cannot end its run. The next run gets another one."""
    broken = idle.take(["true"])
    assert broken.directory.is_dir()
    with pytest.raises(
        InfrastructureError, match="the JVM of the simulator ended with status 0; it has printed nothing"
    ):
        idle.give_back(broken)
    assert not broken.directory.exists()
    other = idle.take(["true"])
    assert other is not broken
    with pytest.raises(InfrastructureError):
        idle.give_back(other)


def test_a_program_that_cannot_start() -> None:
    """The error names it, and no folder stays."""
    before = set(idle.MEMORY.glob("labrys-sim-*"))
    with pytest.raises(InfrastructureError, match="cannot start /nonexistent/java: No such file or directory"):
        idle.take(["/nonexistent/java"])
    assert set(idle.MEMORY.glob("labrys-sim-*")) <= before


def test_folders_of_dead_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was killed leaves its folder; the next one removes it, and no other folder."""
    monkeypatch.setattr(idle, "MEMORY", tmp_path)
    dead = subprocess.Popen(["true"])
    dead.wait()
    kept = [tmp_path / f"labrys-sim-{os.getpid()}-a", tmp_path / "labrys-sim-x-y", tmp_path / f"other-{dead.pid}-a"]
    for path in (*kept, tmp_path / f"labrys-sim-{dead.pid}-a"):
        path.mkdir()
    taken = idle.take(["true"])
    assert sorted(tmp_path.iterdir()) == sorted([*kept, taken.directory])
    with pytest.raises(InfrastructureError):
        idle.give_back(taken)


ENDS = "import os; head = os.read(0, 4); os.read(0, 99); os.write(1, bytes([0, 0, 0, 20, *bytes(19), 1]))"


def test_another_jvm_has_the_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """After many runs, the JVM for a few is ended, and one with the other command line takes its place and stays."""
    monkeypatch.setattr(idle, "MANY_RUNS", 2)
    few, many = [sys.executable, "-c", f"while True: {ENDS}"], [sys.executable, "-c", f"while 1: {ENDS}"]
    taken = []
    for _ in range(4):
        taken.append(idle.take(few, many))
        idle.give_back(taken[-1])
    assert [jvm.command == tuple(many) for jvm in taken] == [False, False, True, True]
    assert taken[0] is taken[1]
    assert taken[2] is taken[3]
    assert not taken[0].directory.exists()
    idle.close_all()
    assert not taken[2].directory.exists()


@pytest.mark.parametrize(("runs", "lasts"), [(idle.MANY_RUNS - 1, False), (idle.MANY_RUNS, True)])
def test_who_expects_many_runs_has_a_jvm_for_them(runs: int, *, lasts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first JVM is the one that lasts, and the later runs have it too."""
    monkeypatch.setattr(idle, "_many_follow", not lasts)
    few, many = [sys.executable, "-c", f"while True: {ENDS}"], [sys.executable, "-c", f"while 1: {ENDS}"]
    idle.expect(runs)
    taken = []
    for _ in range(2):
        taken.append(idle.take(few, many))
        idle.give_back(taken[-1])
    assert [jvm.command == tuple(many) for jvm in taken] == [lasts, lasts]
    idle.close_all()
