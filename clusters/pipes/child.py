"""A process of the operating system with three pipes: its stdin, its stdout and its stderr.

All of this end is non-blocking. The process has a folder, a session and a guard of its own. The guard (`clusters.pipes.keeper`)
knows all that the process has started, also what has left its session. So a signal reaches all of it, and it ends with the
process, and with the harness.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Final

from clusters.pipes.kernel import STOPPED, group_of, letters_of
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clusters.pipes.keeper import Keeper

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

    def __init__(self, keeper: Keeper, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        """Starts the process.

        Args:
            keeper: Starts it.
            command: Its program and arguments.
            directory: Its working directory.
            environment: Variables beside those of this process.

        Raises:
            InfrastructureError: It cannot be started.
        """
        self._kept = keeper.start(command, directory, {**os.environ, **environment})
        self.pid = self._kept.pid
        self.stdin, self.stdout, self.stderr = self._kept.stdin, self._kept.stdout, self._kept.stderr
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
        content = b""
        with contextlib.suppress(BlockingIOError):
            for _ in range(CHUNKS):
                chunk = os.read(descriptor, CHUNK)
                content += chunk
                if not chunk:
                    self.ended.add(descriptor)
                if len(chunk) < CHUNK:
                    break
        return content

    def wait(self, limit_s: float) -> int | None:
        """Waits for its end; returns the exit status, negative for a signal, or None if it still runs."""
        return self._kept.status(limit_s)

    def letter(self) -> str | None:
        """Returns the state of its first process as in /proc/PID/stat, read from the kernel; None if there is none."""
        letters = letters_of(self.pid)
        return letters[0] if letters and letters[0] not in "ZX" else None

    def pause(self) -> None:
        """Stops it and all that it has started.

        Raises:
            InfrastructureError: One of its threads does not stop.
        """
        deadline_s = time.monotonic() + SIGNAL_WAIT_S
        while running := [pid for pid in self._all() if not all(letter in STOPPED for letter in letters_of(pid))]:
            if time.monotonic() > deadline_s:
                raise InfrastructureError(f"process {running[0]} did not stop in {SIGNAL_WAIT_S:g} s after SIGSTOP")
            self._signal(signal.SIGSTOP, running)
            time.sleep(SIGNAL_POLL_S)

    def resume(self) -> None:
        """Continues it and all that it has started; returns when its first process is no longer stopped."""
        self._signal(signal.SIGCONT, self._all())
        deadline_s = time.monotonic() + SIGNAL_WAIT_S
        while self.letter() == "T" and time.monotonic() < deadline_s:
            time.sleep(SIGNAL_POLL_S)

    def kill(self) -> None:
        """Ends it and all that it has started, and closes the pipes."""
        self._kept.end()

    def _all(self) -> list[int]:
        """Returns it and all that it has started, without its guard."""
        return group_of(self._kept.guard)[1:]

    def _signal(self, number: signal.Signals, pids: Sequence[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def wait_for_output(self, limit_s: float, wakes: Sequence[int] = ()) -> bool:
        """Waits until there is output, or until its stdin takes bytes that wait, at most for a time.

        Args:
            limit_s: The time.
            wakes: Other descriptors. If one of them is readable, the wait ends too.

        Returns:
            Whether one of the other descriptors is readable.
        """
        reading = [pipe for pipe in (self.stdout, self.stderr) if pipe not in self.ended]
        # A poll would wait for at least 1 ms.
        ready, _, _ = select.select([*reading, *wakes], [self.stdin] if self.unsent else [], [], limit_s)
        return not set(wakes).isdisjoint(ready)
