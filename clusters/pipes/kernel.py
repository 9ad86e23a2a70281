"""What Linux tells in /proc about the processes of a node.

Sources: proc_pid_stat(5), proc_pid_syscall(5), proc_pid_task(5), proc_pid_status(5).
"""

from __future__ import annotations

import enum
import os
import platform
import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE: Final = 1 << 16


class Limit(enum.Enum):
    """How the argument of a system call limits its time."""

    NEVER = "never"  # the call has no limit
    POINTER = "pointer"  # NULL: no limit
    MILLISECONDS = "milliseconds"  # negative: no limit


_NEVER: Final = (0, Limit.NEVER)
# The calls in which a thread can wait without a limit: by the number of the call, the place of the argument and its kind.
# Sources: the tables of system calls of Linux for both architectures, and the manual page of each call. They are read, readv,
# recvfrom, recvmsg, accept, accept4, wait4, waitid, pause, rt_sigsuspend, io_uring_enter; futex, ppoll, epoll_pwait2, pselect6,
# rt_sigtimedwait, futex_waitv, select; poll, epoll_wait, epoll_pwait.
_X86_64: Final[Mapping[int, tuple[int, Limit]]] = MappingProxyType(
    {
        **dict.fromkeys((0, 19, 45, 47, 43, 288, 61, 247, 34, 130, 426), _NEVER),
        202: (3, Limit.POINTER), 271: (2, Limit.POINTER), 441: (3, Limit.POINTER), 270: (4, Limit.POINTER),
        128: (2, Limit.POINTER), 449: (3, Limit.POINTER), 23: (4, Limit.POINTER),
        7: (2, Limit.MILLISECONDS), 232: (3, Limit.MILLISECONDS), 281: (3, Limit.MILLISECONDS),
    }
)  # fmt: skip
_AARCH64: Final[Mapping[int, tuple[int, Limit]]] = MappingProxyType(
    {
        **dict.fromkeys((63, 65, 207, 212, 202, 242, 260, 95, 133, 426), _NEVER),
        98: (3, Limit.POINTER), 73: (2, Limit.POINTER), 441: (3, Limit.POINTER), 72: (4, Limit.POINTER),
        137: (2, Limit.POINTER), 449: (3, Limit.POINTER), 22: (3, Limit.MILLISECONDS),
    }
)  # fmt: skip
CALLS: Final[Mapping[int, tuple[int, Limit]]] = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(platform.machine(), {})
FUTEX: Final = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
FUTEX_COMMAND: Final = 0x7F  # without the flags of futex(2); FUTEX_WAIT is 0, and its time is relative
# A futex that waits for so long is no timer of a program. A thread of Go's runtime, `sysmon`, waits for 60 s while there is
# nothing to do (forcegcperiod / 2 in runtime/proc.go).
IDLE_S: Final = 60
# While other threads run, and for some milliseconds after, `sysmon` sleeps by `nanosleep`, for at most 10 ms at a time. The C
# library of GNU and the standard libraries of Python and Rust use `clock_nanosleep`.
NANOSLEEP: Final = {"x86_64": 35, "aarch64": 101}.get(platform.machine())
NAP_S: Final = 0.01
TIMESPEC: Final = struct.Struct("=qq")
ASLEEP: Final = "S"
ALONE: Final = b"\nThreads:\t1\n"  # a line of /proc/PID/status, as the next one
ASLEEP_LINE: Final = b"\nState:\tS"
ZOMBIE: Final = "Z"
HALTED: Final = ("T", "t")
STOPPED: Final = "TtZX"  # state letters of a thread that SIGSTOP has stopped, and of one that has ended


def letters_of(pid: int) -> list[str]:
    """Returns the state letters of the threads of a process, the first thread first; none if there is no such process."""
    letters = []
    for thread in threads_of(pid):
        text = _text(f"/proc/{pid}/task/{thread}/stat")
        if text:
            letters.append(text.rpartition(")")[2].split(maxsplit=1)[0])
    return letters


def threads_of(pid: int) -> list[str]:
    """Returns the ids of the threads of a process; none if there is no such process."""
    try:
        return sorted(os.listdir(f"/proc/{pid}/task"), key=int)  # noqa: PTH208 - several times as fast
    except OSError:
        return []


def group_of(pid: int) -> list[int]:
    """Returns a process and all that it has started and that still belongs to it, directly or not."""
    group = [pid]
    for process in group:  # it grows meanwhile
        for thread in threads_of(process):
            group += map(int, _text(f"/proc/{process}/task/{thread}/children").split())
    return group


def _text(path: str) -> str:
    """Returns a file of /proc; empty if it is gone."""
    return _bytes(path, MAX_FILE).decode("utf-8", "replace")


def _bytes(path: str, count: int, begin: int = 0) -> bytes:
    """Returns bytes of a file of /proc; none if it cannot be read. A run reads thousands, so this opens no Python file."""
    descriptor = _opened(path)
    try:
        return _at(descriptor, count, begin)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(path: str) -> int | None:
    """Returns a descriptor of a file of /proc; None if it cannot be opened."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _at(descriptor: int | None, count: int, begin: int = 0) -> bytes:
    """Returns bytes of an open file of /proc, as they are now; none if it cannot be read."""
    if descriptor is None:
        return b""
    try:
        return os.pread(descriptor, count, begin)
    except (OSError, OverflowError):
        return b""


class Activity(enum.Enum):
    """What a process does, with all that it has started."""

    RUNS = "runs"
    WAITS = "waits"  # without a limit: only input wakes it
    NAPS = "naps"  # at least one thread goes on by itself after at most `NAP_S`, and the others wait
    SLEEPS = "sleeps"  # at least one thread goes on by itself after a time


class Watch:
    """Sees what a process does, again and again.

    Most programs of nodes have one thread and have started nothing. For these it keeps three files of /proc open, because
    a run looks at them after each line.
    """

    def __init__(self, pid: int) -> None:
        """Opens the files; `close` closes them.

        Args:
            pid: The process.
        """
        self._pid = pid
        self._files = [_opened(f"/proc/{pid}/task/{pid}/{name}") for name in ("syscall", "status", "children")]

    def close(self) -> None:
        """Closes the files."""
        for descriptor in self._files:
            if descriptor is not None:
                os.close(descriptor)
        self._files = [None] * len(self._files)

    def activity(self) -> Activity:
        """Returns what the process does.

        It waits or sleeps only if all its threads were blocked at one moment. They wake each other and start others, so one
        look at each is not enough. Two looks must show the same threads, system calls and numbers of switches. Then no thread
        ran between its two looks, and all were blocked at the moment between the two rounds.
        """
        first = self._only_thread()
        if first is None:
            return Activity.RUNS
        if first:
            # The thread did not run between the two looks, so it was alone for all of that time.
            blocked = [first] if self._only_thread() == first else None
        else:
            blocked = _blocked(self._pid)
            blocked = blocked if blocked == _blocked(self._pid) else None
        if blocked is None:
            return Activity.RUNS
        limited = [(thread, call) for thread, call, switches in blocked if switches and _has_limit(thread, call)]
        if not limited:
            return Activity.WAITS
        return Activity.NAPS if all(_naps(thread, call) for thread, call in limited) else Activity.SLEEPS

    def _only_thread(self) -> tuple[str, str, str] | tuple[()] | None:
        """Returns the only thread as `_blocked` does; None if the first thread runs, and nothing if a look at all must tell."""
        call, status, children = self._files
        number = _at(call, MAX_FILE)
        if number.startswith(b"running"):
            return None
        text = _at(status, MAX_FILE)
        if not number[:1].isdigit() or ALONE not in text or ASLEEP_LINE not in text or _at(children, 1):
            return ()
        return str(self._pid), number.decode(), text[text.find(b"voluntary_ctxt") :].decode()


def _blocked(pid: int) -> list[tuple[str, str, str]] | None:
    """Returns each thread with its system call and its switches; None if one of them runs, or has ended just now."""
    blocked = []
    for process in group_of(pid):
        threads = threads_of(process)
        if not threads:
            return None
        for thread in threads:
            folder = f"/proc/{process}/task/{thread}"
            call, status = _text(f"{folder}/syscall"), _text(f"{folder}/status")
            letter = status.partition("State:")[2].lstrip()[:1]
            if letter == ZOMBIE:
                blocked.append((thread, "", ""))
                continue
            if letter in HALTED:  # only a signal of another process lets it go on
                blocked.append((thread, status[status.find("voluntary_ctxt") :], ""))
                continue
            if letter != ASLEEP or not call[:1].isdecimal():
                return None  # it runs, or waits for the disk
            blocked.append((thread, call, status[status.find("voluntary_ctxt") :]))
    return blocked


def _has_limit(thread: str, call: str) -> bool:
    """Returns whether the system call of a thread ends after a time by itself. An unknown call may."""
    number, *arguments = call.split()
    rule = CALLS.get(int(number))
    if rule is None:
        return True
    position, how = rule
    value = int(arguments[position], 16) if how is not Limit.NEVER else 0
    if how is Limit.POINTER:
        idle = int(number) == FUTEX and int(arguments[1], 16) & FUTEX_COMMAND == 0
        return value != 0 and not (idle and _seconds_at(thread, value) >= IDLE_S)
    return how is Limit.MILLISECONDS and value & 0x80000000 == 0


def _naps(thread: str, call: str) -> bool:
    """Returns whether a system call with a limit is a short sleep as Go's runtime has them."""
    number, *arguments = call.split()
    return int(number) == NANOSLEEP and 0 < _seconds_at(thread, int(arguments[0], 16)) <= NAP_S


def _seconds_at(thread: str, address: int) -> float:
    """Returns a `struct timespec` in the memory of a thread, in seconds; 0 if nobody may read it."""
    content = _bytes(f"/proc/{thread}/mem", TIMESPEC.size, address)
    if len(content) != TIMESPEC.size:
        return 0.0
    seconds, nanoseconds = TIMESPEC.unpack(content)
    return float(seconds + nanoseconds / NS_PER_S)
