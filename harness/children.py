"""Finds and ends the processes that a system's code starts on this machine and leaves behind.

A system installs and starts itself on nodes. But its `install` may also start a process here, e.g. a download or a registry,
and nothing else ends it. So a run compares the processes below its own before and after the start of the system, and ends those
that still run at its end. A process that ended and another one with its pid are told apart by their start times.
"""

from __future__ import annotations

import contextlib
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
_PARENT, _START = 1, 19  # fields of /proc/PID/stat after the program's name, from its state on


class Process(NamedTuple):
    """A process of this machine."""

    pid: int
    start: str


class Left:
    """The processes below this one that began since the object was made."""

    def __init__(self) -> None:
        """Remembers the processes that are no news."""
        self._before = below()
        self._noted: set[Process] | None = None

    def note(self) -> None:
        """Takes the processes that began until now; later ones, such as workers of Labrys, do not count. Works once."""
        if self._noted is None:
            self._noted = below() - self._before

    def end(self) -> list[str]:
        """Ends those that still run, and returns the pid and the command of each."""
        self.note()
        return end(self._noted or ())


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
    return Process(pid, stat[1]) if (stat := _stat(pid)) else None


def runs(process: Process) -> bool:
    """Returns whether this process still runs, and not another one with its pid."""
    return found(process.pid) == process


def below(top: int | None = None) -> set[Process]:
    """Returns the processes below one, by default below this one; none on a machine without /proc."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in PROC.iterdir() if PROC.is_dir() else ():
        if folder.name.isdecimal() and (stat := _stat(int(folder.name))):
            parents[int(folder.name)] = int(stat[0]), stat[1]
    top = os.getpid() if top is None else top
    family = {top}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    return {Process(pid, parents[pid][1]) for pid in family - {top} if pid in parents}


def _stat(pid: int) -> tuple[str, ...]:
    """Returns the parent and the start time of a process; nothing for one that has ended."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ()
    return () if fields[0] in "ZX" else (fields[_PARENT], fields[_START])


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
