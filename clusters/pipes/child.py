"""A process of the operating system with three pipes: its stdin, its stdout and its stderr.

All of this end is non-blocking. The process has a folder and a process group of its own, so that a signal also reaches what it
has started. It ends with the harness, or when its stdin ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import IO, TYPE_CHECKING, Final, cast

from clusters.pipes.kernel import STOPPED, group_of, letters_of
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CHUNK: Final = 1 << 16  # the size of a pipe of Linux
CHUNKS: Final = 16  # of one read
SIGNAL_WAIT_S: Final = 5.0
SIGNAL_POLL_S: Final = 0.0005


class Child:
    """A process.

    Attributes:
        pid: Its id, which is also that of its process group.
        stdin: The descriptor of its stdin at this end; likewise `stdout` and `stderr`.
        unsent: The bytes that its stdin has not taken yet.
        ended: Which of `stdout` and `stderr` it has closed.
    """

    def __init__(self, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        """Starts the process.

        Args:
            command: Its program and arguments.
            directory: Its working directory.
            environment: Variables beside those of this process.

        Raises:
            InfrastructureError: It cannot be started.
        """
        try:
            self._process = subprocess.Popen(
                command, cwd=directory, env={**os.environ, **environment}, bufsize=0, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InfrastructureError(f"the node's program {command[0]} cannot be started: {reason}") from error
        self.pid = self._process.pid
        self._pipes = [
            cast("IO[bytes]", pipe) for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
        ]
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in self._pipes)
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)
        self.unsent = bytearray()
        self.ended: set[int] = set()

    def write(self, data: bytes) -> None:
        """Gives bytes to its stdin, as far as the pipe takes them; `flush` gives the rest."""
        self.unsent += data
        self.flush()

    def flush(self) -> bool:
        """Gives the unsent bytes to its stdin, as far as the pipe takes them. Returns whether it took some."""
        taken = 0
        try:
            while self.unsent:
                taken = os.write(self.stdin, self.unsent[:CHUNK])
                del self.unsent[:taken]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more; the end of its stdout shows that it has ended
            self.unsent.clear()
        return taken > 0

    def read(self, descriptor: int) -> bytes:
        """Returns the bytes that are in `stdout` or `stderr`, at most some chunks; `ended` has those that are closed."""
        found = b""
        with contextlib.suppress(BlockingIOError):
            for _ in range(CHUNKS):
                chunk = os.read(descriptor, CHUNK)
                found += chunk
                if not chunk:
                    self.ended.add(descriptor)
                if len(chunk) < CHUNK:
                    break
        return found

    def status(self) -> int | None:
        """Returns its exit status, negative for a signal; None if it runs."""
        return self._process.poll()

    def wait(self, limit_s: float) -> int | None:
        """Waits for its end; returns the exit status, or None if it still runs."""
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def letter(self) -> str | None:
        """Returns the state of its first process as in /proc/PID/stat, read from the kernel; None if there is none."""
        letters = letters_of(self.pid)
        return letters[0] if letters and letters[0] not in "ZX" else None

    def pause(self) -> None:
        """Stops it and all that it has started.

        Raises:
            InfrastructureError: One of its threads does not stop.
        """
        os.killpg(self.pid, signal.SIGSTOP)
        deadline_s = time.monotonic() + SIGNAL_WAIT_S
        while not all(letter in STOPPED for pid in group_of(self.pid) for letter in letters_of(pid)):
            if time.monotonic() > deadline_s:
                raise InfrastructureError(f"process {self.pid} did not stop in {SIGNAL_WAIT_S:g} s after SIGSTOP")
            time.sleep(SIGNAL_POLL_S)

    def resume(self) -> None:
        """Continues it and all that it has started; returns when its first process is no longer stopped."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGCONT)
        deadline_s = time.monotonic() + SIGNAL_WAIT_S
        while self.letter() == "T" and time.monotonic() < deadline_s:
            time.sleep(SIGNAL_POLL_S)

    def kill(self) -> None:
        """Ends it and all that it has started, and closes the pipes."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait(SIGNAL_WAIT_S)
        for pipe in self._pipes:
            pipe.close()

    def wait_for_output(self, limit_s: float) -> None:
        """Waits until there is output, or until its stdin takes bytes that wait, at most for a time."""
        reading = [each for each in (self.stdout, self.stderr) if each not in self.ended]
        select.select(reading, [self.stdin] if self.unsent else [], [], limit_s)  # a poll would wait for at least 1 ms
