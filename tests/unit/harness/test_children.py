"""Processes that foreign code leaves on this machine are named and ended, and no others."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from harness import children
from harness.children import Left, Process, below, end, own_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

SLEEPS = ("sleep", "300")
DEAF = ("sh", "-c", "trap '' TERM; echo deaf; sleep 300; sleep 300")


@contextlib.contextmanager
def started(*commands: tuple[str, ...], stdin: bool = False) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Starts commands, and ends what is left of them."""
    given = subprocess.PIPE if stdin else None
    processes = [subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE) for command in commands]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def until_there(command: str, count: int = 1) -> set[Process]:
    """Waits until so many processes with a command are below this one, and returns them."""
    end_s = time.monotonic() + 30.0
    while time.monotonic() < end_s:
        processes = {process for process in below() if children._command(process.pid) == command}
        if len(processes) == count:
            return processes
        time.sleep(0.02)
    raise TimeoutError(command)


def runs(pid: int) -> bool:
    """Returns whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_began_in_between_is_named_and_ended() -> None:
    """A process that ignores SIGTERM gets SIGKILL, and its own child ends too."""
    with started(SLEEPS) as earlier:
        left = Left()
        with started(SLEEPS, DEAF) as processes:
            assert processes[1].stdout is not None
            processes[1].stdout.readline()
            until_there("sleep 300", 3)
            left.note()
            with started(SLEEPS) as later:
                names = left.end()
                assert runs(later[0].pid)
            assert f"{processes[0].pid} (`sleep 300`)" in names
            assert any(name.startswith(f"{processes[1].pid} (`sh -c trap") for name in names)
            assert len(names) == 3
            assert not runs(processes[0].pid)
            assert not runs(processes[1].pid)
        assert runs(earlier[0].pid)


def test_what_has_ended_by_itself_is_not_named() -> None:
    """An installation may use processes."""
    left = Left()
    with started(("true",)) as (process,):
        process.wait()
        assert left.end() == []


@pytest.mark.parametrize(
    "command", ["setsid sleep 401 & exit", "(sleep 401 &)", "(setsid sh -c 'setsid sleep 401 & exit' &)"]
)
def test_what_leaves_its_parent_and_its_session_is_ended(command: str) -> None:
    """A subreaper gets it. Then this process is none any more."""
    left = Left()
    subprocess.run(["sh", "-c", command], check=True)
    (orphan,) = until_there("sleep 401")
    assert left.end() == [f"{orphan.pid} (`sleep 401`)"]
    assert not runs(orphan.pid)
    assert not children._be_subreaper(is_one=False)


def test_what_a_noted_process_starts_later_is_ended() -> None:
    """Also if it leaves that process and its session."""
    left = Left()
    with started(("sh", "-c", "read -r _; setsid sleep 402 & exec sleep 403"), stdin=True) as (process,):
        left.note()
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        until_there("sleep 402")
        until_there("sleep 403")
        assert sorted(name.partition(" ")[2] for name in left.end()) == ["(`sleep 402`)", "(`sleep 403`)"]


def test_a_later_process_of_labrys_is_not_ended() -> None:
    """It began after the system, and is in the session of this process."""
    left = Left()
    left.note()
    with started(SLEEPS) as (process,):
        assert left.end() == []
        assert runs(process.pid)


def test_a_process_of_labrys_itself_is_not_ended() -> None:
    """A simulator begins when the system is installed, and programs of its nodes are below it."""
    left = Left()
    tree = subprocess.Popen(["sh", "-c", "sleep 404 & sleep 404; :"], env=own_environment(), start_new_session=True)
    try:
        programs = until_there("sleep 404", 2)
        assert left.end() == []
        assert all(runs(process.pid) for process in programs)
    finally:
        end([*programs, children.found(tree.pid) or Process(0, "")])
        tree.wait()


def test_another_process_with_the_same_pid_is_not_ended() -> None:
    """The kernel gives a pid again."""
    with started(SLEEPS) as (process,):
        assert end([Process(process.pid, "1")]) == []
        assert runs(process.pid)


def test_what_an_orphan_leaves_is_no_zombie() -> None:
    """Each would have a pid until Labrys ends, and a hunt has many runs."""
    left, earlier = Left(), below()
    before = set(children._children(os.getpid()) or ())  # e.g. what another test has started in this process
    subprocess.run(["sh", "-c", "setsid sh -c : & setsid sh -c : & exit"], check=True)
    end_s = time.monotonic() + 30.0
    while below() - earlier and time.monotonic() < end_s:
        time.sleep(0.02)
    assert left.end() == []
    assert set(children._children(os.getpid()) or ()) <= before
