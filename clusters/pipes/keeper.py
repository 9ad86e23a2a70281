"""Starts the programs of a run by a process of their own, so that they end with the harness, however it ends.

Nothing that a program starts outlives the program: `clusters.pipes.keeper_process` says how. A program that kills its guard and
that process leaves what has left its session.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from harness.children import own_environment
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

START_S: Final = 30.0
END_S: Final = 5.0
MAX_TOLD: Final = 4096  # bytes of what a guard tells
MS_PER_S: Final = 1000
FAILURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "folder": "its folder cannot be entered",
        "program": "it cannot be executed",
        "guard": "the process that guards it cannot work",  # it needs Linux 5.3
    }
)
SCRIPT: Final = Path(__file__).with_name("keeper_process.py")


class Kept:
    """A program that runs, with its guard.

    Attributes:
        pid: The id of the program, which is also that of its process group.
        guard: The id of the process that adopts what the program leaves.
        stdin: The descriptor of the other end of its stdin; likewise `stdout` and `stderr`.
    """

    def __init__(self, command: Sequence[str], pipes: Sequence[int], lines: int, lifeline: int) -> None:
        """Waits until the program has started.

        Args:
            command: Its program and arguments.
            pipes: The other ends of its pipes.
            lines: What the guard writes.
            lifeline: What ends the program when it is closed.

        Raises:
            InfrastructureError: It cannot be started.
        """
        self.stdin, self.stdout, self.stderr = pipes
        self.pid = self.guard = 0
        self._open = {*pipes, lines, lifeline}
        self._lines, self._lifeline = lines, lifeline
        self._told = b""
        self._status: int | None = None
        self._read(START_S, until=b"\n")
        kind, *words = self._told.split(b"\n", 1)[0].decode("ascii", "replace").split() or [""]
        if kind == "started":
            self.pid, self.guard = map(int, words)
            return
        self.end()
        reason = os.strerror(int(words[0])) if kind == "failed" else f"nothing was heard of it in {START_S:g} s"
        what = FAILURES.get(words[1] if words[1:] else "", FAILURES["guard"])
        raise InfrastructureError(f"the node's program {command[0]} cannot be started: {what}: {reason}")

    def status(self, limit_s: float = 0.0) -> int | None:
        """Waits for the end of the program; returns its exit status, negative for a signal, or None if it runs."""
        if self._status is None and self._read(limit_s, until=b"ended"):
            _, _, status = self._told.partition(b"ended ")
            self._status = int(status.split()[0]) if status else -signal.SIGKILL  # its guard was killed, and it too
        return self._status

    def end(self) -> None:
        """Ends the program and all that it has started and left, and closes the pipes."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._close(self._lifeline)
        if self._lines in self._open and not self._read(END_S, until=None) and self.guard:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.guard, signal.SIGKILL)  # the program has a signal for that too
        for descriptor in tuple(self._open):
            self._close(descriptor)

    def _read(self, limit_s: float, *, until: bytes | None) -> bool:
        """Reads what the guard tells, until a text or until its end. Returns whether one of both came; None: only the end."""
        if self._lines not in self._open:
            return True
        deadline_s = time.monotonic() + limit_s
        poll = select.poll()
        poll.register(self._lines, select.POLLIN)
        while until is None or until not in self._told:
            if not poll.poll(max(0.0, deadline_s - time.monotonic()) * MS_PER_S):
                return False
            told = os.read(self._lines, MAX_TOLD)
            if not told:
                return True
            self._told = (self._told + told)[:MAX_TOLD]
        return True

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)


class Keeper:
    """Starts programs. The process that does it begins with the first one."""

    def __init__(self, folder: Path) -> None:
        """Starts nothing.

        Args:
            folder: The folder of the run, which that process removes in the end.
        """
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def start(self, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> Kept:
        """Starts a program.

        Args:
            command: The program with its absolute path, and its arguments.
            directory: Its working directory.
            environment: Its variables.

        Raises:
            InfrastructureError: It cannot be started.
        """
        request = {"command": list(command), "directory": str(directory), "environment": dict(environment)}
        theirs, ours = [], []
        try:
            for is_read_by_it in (True, False, False, False, True):  # stdin, stdout, stderr, lines, lifeline
                reading, writing = os.pipe()
                theirs.append(reading if is_read_by_it else writing)
                ours.append(writing if is_read_by_it else reading)
            content = os.memfd_create("labrys-program")
            theirs.append(content)
            os.write(content, json.dumps(request).encode())
            os.lseek(content, 0, os.SEEK_SET)
            socket.send_fds(self._socket(), [b"."], theirs)
        except OSError as error:
            for descriptor in ours:
                os.close(descriptor)
            reason = error.strerror or error
            raise InfrastructureError(f"the node's program {command[0]} cannot be started: {reason}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        *pipes, lines, lifeline = ours
        return Kept(command, pipes, lines, lifeline)

    def close(self) -> None:
        """Ends the process, and all programs that still run. If it had begun, the folder is gone then."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _socket(self) -> socket.socket:
        if self._requests is None:
            self._requests, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(SCRIPT), str(theirs.fileno()), str(self._folder)],
                    pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
                    env=own_environment(),
                )  # fmt: skip
        return self._requests
