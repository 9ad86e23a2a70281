"""Nothing that a program starts outlives it, and no program outlives the harness, however both end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.pipes.child import Child
from clusters.pipes.cluster import PipesCluster
from clusters.pipes.keeper import Keeper
from clusters.pipes.kernel import letters_of
from harness.children import Left
from harness.errors import InfrastructureError, NodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_S = 20.0
# A program that leaves a child in its own session, and one that has left it by a double fork and closed its pipes. It writes
# the ids of all three into files of its folder.
LEAVING = """
import os, signal, sys, time
def note(name): os.rename(open(name + "-", "w").name, name + "-" + str(os.getpid()))
def stay():
    for number in range(3): os.close(number)
    time.sleep(600)
if os.fork() == 0:
    note("child"); stay()
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        note("daemon"); stay()
    os._exit(0)
note("program")
sys.stdin.read()
"""
# A harness that starts such a program and then waits. With an argument, a process that it has forked holds all its files open.
HARNESS = """
import os, sys, time
from pathlib import Path
from clusters.pipes.keeper import Keeper
folder = Path(sys.argv[1])
keeper = Keeper(folder)
kept = keeper.start([sys.executable, "-c", sys.argv[2]], folder, dict(os.environ))
if sys.argv[3] == "forked" and os.fork() == 0:
    Path(sys.argv[4]).write_text(str(os.getpid()))
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


def until(condition: Callable[[], object], what: str) -> None:
    """Waits for a condition."""
    deadline_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.01)


def pids_in(folder: Path) -> dict[str, int]:
    """Waits until the program has noted all ids; returns them by name."""
    until(lambda: len(list(folder.glob("*-[0-9]*"))) == 3, "the program did not start all of it")
    return {path.name.partition("-")[0]: int(path.name.partition("-")[2]) for path in folder.glob("*-[0-9]*")}


def state_of(pid: int) -> str:
    """Returns the state of a process; empty if there is none."""
    return "".join(letters_of(pid)).strip("ZX")


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    """A keeper whose folder is `run`."""
    (tmp_path / "run").mkdir()
    made = Keeper(tmp_path / "run")
    yield made
    made.close()


@pytest.mark.parametrize("how", ["alone", "forked"])
def test_a_program_ends_with_a_harness_that_was_killed(how: str, tmp_path: Path) -> None:
    """Also what has left its session, and also if a process that the harness has forked still lives. The folder is gone."""
    folder = tmp_path / "run"
    folder.mkdir()
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(folder), LEAVING, how, str(tmp_path / "forked")])
    forked = 0
    try:
        pids = pids_in(folder)
        if how == "forked":
            until(lambda: (tmp_path / "forked").exists() and (tmp_path / "forked").read_text(), "nothing was forked")
            forked = int((tmp_path / "forked").read_text())
        harness.kill()
        until(lambda: not any(state_of(pid) for pid in pids.values()), f"left: {pids}")
        until(lambda: not folder.exists(), "the folder is left")
    finally:
        harness.kill()
        harness.wait()
        if forked:
            os.kill(forked, signal.SIGKILL)


def test_a_kill_and_a_pause_reach_what_has_left_the_session(keeper: Keeper, tmp_path: Path) -> None:
    """A kill of a machine leaves none of its processes, and a pause stops all of them."""
    child = Child(keeper, [sys.executable, "-c", LEAVING], tmp_path / "run", {})
    pids = pids_in(tmp_path / "run")
    assert pids["program"] == child.pid
    child.pause()
    assert [state_of(pid) for pid in pids.values()] == ["T"] * 3
    child.resume()
    until(lambda: [state_of(pid) for pid in pids.values()] == ["S"] * 3, "one of them did not go on")
    child.kill()
    assert [state_of(pid) for pid in pids.values()] == [""] * 3
    assert child.wait(0.0) == -signal.SIGKILL


def test_no_system_is_blamed_for_the_keeper(keeper: Keeper, tmp_path: Path) -> None:
    """It begins with the first program of a run, and ends with the cluster."""
    left = Left()
    child = Child(keeper, [sys.executable, "-c", LEAVING], tmp_path / "run", {})
    pids = pids_in(tmp_path / "run")
    assert left.end() == []
    assert all(state_of(pid) for pid in pids.values())
    child.kill()


def test_a_program_that_kills_its_guard_is_killed_too(keeper: Keeper, tmp_path: Path) -> None:
    """What it has left ends with the run."""
    hostile = LEAVING.replace("sys.stdin.read()", "sys.stdin.readline(); os.kill(os.getppid(), 9); time.sleep(600)")
    child = Child(keeper, [sys.executable, "-c", hostile], tmp_path / "run", {})
    pids = pids_in(tmp_path / "run")
    child.write(b"go on\n")
    assert child.wait(LIMIT_S) == -signal.SIGKILL
    until(lambda: not state_of(pids["program"]), "the program still runs")
    child.kill()
    keeper.close()
    assert [state_of(pid) for pid in pids.values()] == [""] * 3


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 11)", -11)])
def test_the_status_is_that_of_the_program(code: str, status: int, keeper: Keeper, tmp_path: Path) -> None:
    """Negative for a signal, and known after the kill too."""
    child = Child(keeper, [sys.executable, "-c", code], tmp_path / "run", {})
    assert child.wait(LIMIT_S) == status
    child.kill()
    assert child.wait(0.0) == status


def test_a_program_has_no_other_files(keeper: Keeper, tmp_path: Path) -> None:
    """It cannot hold its own lifeline or that of another program open."""
    other = Child(keeper, ["/bin/cat"], tmp_path / "run", {})
    child = Child(keeper, ["/bin/cat"], tmp_path / "run", {})

    def files() -> list[str]:
        return sorted(path.name for path in Path(f"/proc/{child.pid}/fd").iterdir())

    until(
        lambda: files() == ["0", "1", "2"], "the program has more files"
    )  # while it is loaded, it has its library open
    child.kill()
    other.kill()


def test_signals_have_their_default_actions(keeper: Keeper, tmp_path: Path) -> None:
    """A write into a closed pipe ends a program, as in a shell. Python ignores that signal, and its children inherit it."""
    child = Child(keeper, ["/bin/sh", "-c", "kill -PIPE $$; sleep 600"], tmp_path / "run", {})
    assert child.wait(LIMIT_S) == -signal.SIGPIPE
    child.kill()


def test_a_program_that_cannot_be_started_is_an_error(keeper: Keeper, tmp_path: Path) -> None:
    """It says which program, and why."""
    (tmp_path / "text").write_text("no program")
    with pytest.raises(InfrastructureError, match="text cannot be started: it cannot be executed: Permission denied"):
        keeper.start([str(tmp_path / "text")], tmp_path / "run", {})
    with pytest.raises(InfrastructureError, match="/bin/true cannot be started: its folder cannot be entered: No such"):
        keeper.start(["/bin/true"], tmp_path / "none", {})


def test_a_link_in_place_of_a_folder_leads_nowhere(tmp_path: Path) -> None:
    """A program can rename its folder. What is behind a link in its place belongs to others, so nothing there is removed."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("other")
    cluster = PipesCluster(["n0"], 1)
    try:
        folder = cluster.directory("n0")
        folder.rename(folder.with_name("moved"))
        folder.symlink_to(kept)
        with pytest.raises(NodeError, match="something else in the place of its folder"):
            cluster.directory("n0")
        with pytest.raises(NodeError):
            cluster.world.wipe_files("n0")
        cluster.wipe("n0")
        assert (kept / "file").read_text() == "other"
    finally:
        cluster.close()
    assert (kept / "file").read_text() == "other"
