"""Finds and ends the processes that a system's code starts on this machine and leaves behind.

A system installs and starts itself on nodes. But its `install` may also start a process here, e.g. a download or a registry,
and nothing else ends it. So a run compares the processes below its own before and after the start of the system, and ends those
that still run at its end. Virtual time changes nothing in this: such a process is real.

What leaves its parent (`setsid server &`) stays below this process, which is a subreaper (prctl(2)) during a run, like
`clusters.pipes.keeper_process`. Processes of Labrys itself, e.g. a simulator, have a mark in their environment, and end by
other ways. A process that ended and another one with its pid are told apart by their start times.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROC: Final = Path("/proc")
GRACE_S: Final = 2.0
POLL_S: Final = 0.05
MAX_COMMAND: Final = 80
OWN: Final = "LABRYS_OWN_PROCESS"  # in the environment of a process of Labrys itself
PR_SET_CHILD_SUBREAPER: Final = 36
PR_GET_CHILD_SUBREAPER: Final = 37
_PARENT, _SESSION, _START = 1, 3, 19  # fields of /proc/PID/stat after the program's name, from its state on


class Process(NamedTuple):
    """A process of this machine."""

    pid: int
    start: str


class Left:
    """The processes below this one that began since the object was made, without those of Labrys itself."""

    def __init__(self) -> None:
        """Remembers the processes that are no news, and keeps those below this one that lose their parents."""
        self._was_subreaper = _be_subreaper(is_one=True)
        self._before = below()
        self._noted: set[Process] | None = None

    def note(self) -> None:
        """Takes the processes that began until now. Works once.

        Later ones do not count, such as workers of Labrys, if these here did not start them. But one that has left its parent
        and its session does.
        """
        if self._noted is None:
            self._noted = self._new(below())

    def end(self) -> list[str]:
        """Ends those that still run, and all below them, and returns the pid and the command of each."""
        self.note()
        adopted = {process for process in below() if _is_adopted(_stat(process.pid))}
        names = end((self._noted or set()) | self._new(adopted))
        _reap_adopted()
        _be_subreaper(is_one=self._was_subreaper)
        return names

    def _new(self, processes: set[Process]) -> set[Process]:
        new = processes - self._before
        own = {process for process in processes if _is_own(process.pid)}  # also one that began before
        return new.difference(own, *(below(process.pid) for process in own))


def own_environment() -> dict[str, str]:
    """Returns the environment for a process of Labrys itself: this process's, with the mark. So no system is blamed for it."""
    return {**os.environ, OWN: str(os.getpid())}


def end(processes: Iterable[Process]) -> list[str]:
    """Ends those processes that still run, and all below them, with SIGKILL after a while.

    Returns:
        The pid and the command of each.
    """
    running = _with_below(processes)
    names = [f"{process.pid} (`{_command(process.pid)}`)" for process in running]
    _send(running, signal.SIGTERM)
    running = _with_below(_wait(running))
    _send(running, signal.SIGSTOP)  # so that none starts another one when its child is killed
    _send(running, signal.SIGKILL)
    _wait(running)
    return names


def _with_below(processes: Iterable[Process]) -> list[Process]:
    """Returns those processes that still run, and all below them."""
    running = {process for process in processes if runs(process)}
    return sorted(running.union(*(below(process.pid) for process in running)))


def found(pid: int) -> Process | None:
    """Returns the process that has this pid now; None if there is none."""
    return Process(pid, stat[_START]) if (stat := _stat(pid)) else None


def runs(process: Process) -> bool:
    """Returns whether this process still runs, and not another one with its pid."""
    return found(process.pid) == process


def below(top: int | None = None) -> set[Process]:
    """Returns the processes below one, by default below this one; none on a machine without /proc."""
    top = os.getpid() if top is None else top
    if _has_no_child(top):
        return set()
    parents: dict[int, tuple[int, str]] = {}
    for folder in PROC.iterdir() if PROC.is_dir() else ():
        if folder.name.isdecimal() and (stat := _stat(int(folder.name))):
            parents[int(folder.name)] = int(stat[_PARENT]), stat[_START]
    family = {top}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    return {Process(pid, parents[pid][1]) for pid in family - {top} if pid in parents}


def _has_no_child(pid: int) -> bool:
    """Returns whether a process certainly has none: a hunt has many runs, and to look at all processes takes milliseconds."""
    return _children(pid) == []


def _children(pid: int) -> list[int] | None:
    """Returns the children of a process, without some if one ends meanwhile; None if they are not known."""
    try:
        files = [*(PROC / str(pid) / "task").glob("*/children")]
        return [int(word) for file in files for word in file.read_bytes().split()] if files else None
    except OSError:  # a thread has ended
        return None


def _stat(pid: int) -> Sequence[str]:
    """Returns what /proc/PID/stat says after the program's name; nothing for a process that has ended."""
    fields = _any_stat(pid)
    return () if not fields or fields[0] in "ZX" else fields


def _any_stat(pid: int) -> Sequence[str]:
    """Does the same, also for one that has ended but was not reaped."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ()


def _is_adopted(stat: Sequence[str]) -> bool:
    """Returns whether a process is a child of this one, but in another session. Labrys's own are not, or have the mark."""
    return bool(stat) and int(stat[_PARENT]) == os.getpid() and int(stat[_SESSION]) != os.getsid(0)


def _reap_adopted() -> None:
    """Takes the adopted children that have ended by themselves: nobody else waits for them, and each has a pid."""
    for pid in _children(os.getpid()) or ():
        stat = _any_stat(pid)
        if _is_adopted(stat) and stat[0] == "Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _is_own(pid: int) -> bool:
    try:
        return any(
            pair.startswith(f"{OWN}=".encode()) for pair in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        )
    except OSError:
        return False


def _be_subreaper(*, is_one: bool) -> bool:
    """Makes this process a subreaper, or no longer one. Returns whether it was one."""
    libc = ctypes.CDLL(None)
    was = ctypes.c_int(0)
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, int(is_one), 0, 0, 0)
    return bool(was.value)


def _command(pid: int) -> str:
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    return b" ".join(words).decode(errors="replace").strip()[:MAX_COMMAND]


def _send(processes: Sequence[Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process.pid, number)


def _wait(running: list[Process]) -> list[Process]:
    """Waits until processes end, and returns those that still run after a while."""
    end_s = time.monotonic() + GRACE_S
    while running and time.monotonic() < end_s:
        earlier = running
        running = [process for process in earlier if runs(process)]
        for process in earlier:
            with contextlib.suppress(OSError):
                os.waitpid(process.pid, os.WNOHANG)  # a child that has ended stays as a zombie until then
        time.sleep(POLL_S if running else 0.0)
    return running
