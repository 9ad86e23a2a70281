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
    from collections.abc import Sequence

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
        running = sorted(process for process in self._noted or () if _stat(process.pid)[1:2] == (process.start,))
        names = [f"{process.pid} (`{_command(process.pid)}`)" for process in running]
        _send(running, signal.SIGTERM)
        running = _wait(running)
        _send(running, signal.SIGSTOP)  # so that none starts another one when its child is killed
        _send(running, signal.SIGKILL)
        _wait(running)
        return names


def below() -> set[Process]:
    """Returns the processes below this one; none on a machine without /proc."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in PROC.iterdir() if PROC.is_dir() else ():
        if folder.name.isdecimal() and (found := _stat(int(folder.name))):
            parents[int(folder.name)] = int(found[0]), found[1]
    family = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    return {Process(pid, parents[pid][1]) for pid in family - {os.getpid()} if pid in parents}


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
        running = [process for process in earlier if _stat(process.pid)[1:2] == (process.start,)]
        for process in earlier:
            with contextlib.suppress(OSError):
                os.waitpid(process.pid, os.WNOHANG)  # a child that has ended stays as a zombie until then
        time.sleep(POLL_S if running else 0.0)
    return running
