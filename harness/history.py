"""The history of a run: written during the run, and read as data. `harness.pairing` pairs its events into operations.

The file is JSON lines. Its first line is a header `{"format": "labrys-history", "version": 1, ...}`; each other line is one
event (see `harness.event_lines`).

Invariants: An event is written within a second or 256 events, and survives any end of the run. So only the last
line of a file can be torn. Any other malformed line is an error with its number, because a verdict on a changed history
is worthless.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console import below
from harness.errors import InfrastructureError, InputError
from harness.event_lines import FORMAT, MAX_LINE_BYTES, VERSION, EventLines, LineEncoder
from harness.op import Op
from harness.pairing import Event, Pairing
from harness.values import exact, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.op import Operation, OpType, Process, Value

FLUSH_OPS = 256
FLUSH_S = 1.0


class Recorder:
    """Records events.

    Attributes:
        ops: All events so far.
    """

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def append(
        self,
        *,
        time_ns: int,
        op_type: OpType,
        process: Process,
        f: str,
        value: Value = None,
        key: str | None = None,
        node: str | None = None,
        error: str | None = None,
        scheduled_ns: int | None = None,
        phase: str | None = None,
        via: str | None = None,
        order: int | None = None,
    ) -> Op:
        """Records an event with the next index, and returns it as a reader of the history gets it; see `harness.values`.

        Raises:
            InputError: A history does not take its value; nothing is recorded. `record` raises other errors.
        """
        value, error = exact(value), None if error is None else whole(error)
        op = Op(len(self.ops), time_ns, op_type, process, f, value, key, node, error, scheduled_ns, phase, via, order)
        self.record(op)
        return op

    def record(self, op: Op) -> None:
        """Records an event that has the next index."""
        self.ops.append(op)


class MemoryHistory(Recorder):
    """A history in memory only, for simulations."""


class HistoryWriter(Recorder):
    """Appends events to a new history file.

    It is used from one thread. With a running event loop, each event is written within a second. Without one, only `flush`,
    `close` and each 256th event write.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, header: Mapping[str, Value]) -> None:
        """Creates the file and writes its header.

        Args:
            path: The file; it must not exist.
            header: Members of the header, e.g. the seed.

        Raises:
            InputError: The file exists, or JSON cannot represent the header.
            InfrastructureError: The file cannot be created.
        """
        super().__init__()
        self.path = path
        self._encoder = LineEncoder()
        self._pending: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._failure: str | None = None
        first = self._encoder.value({"format": FORMAT, "version": VERSION, **header})
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileExistsError as error:
            raise InputError(
                f"{path}: exists already; labrys never overwrites a history; choose another path"
            ) from error
        except OSError as error:
            raise InfrastructureError(f"{path}: the history cannot be created: {error.strerror}") from error
        self._pending.append(first)
        self.flush()

    def record(self, op: Op) -> None:
        """Records an event that has the next index.

        Raises:
            InputError: JSON cannot represent the value, the order is not an integer of 64 bits, or the line would be too long;
                nothing is recorded.
            InfrastructureError: Writing earlier events failed, e.g. on a full disk; nothing more is recorded.
        """
        if self._failure is not None:
            raise InfrastructureError(self._failure)
        line = self._encoder.event(op)
        super().record(op)
        self._pending.append(line)
        if len(self._pending) >= FLUSH_OPS:
            self.flush()
        elif self._timer is None:
            self._flush_soon()

    def flush(self) -> None:
        """Writes all events so far to the operating system.

        Raises:
            InfrastructureError: Writing failed. The file then ends with the last complete event.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._failure is not None:
            raise InfrastructureError(self._failure)
        if not self._pending:
            return
        data = memoryview(("\n".join(self._pending) + "\n").encode("ascii"))
        self._pending.clear()
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            self._failure = f"{self.path}: writing the history failed: {error.strerror}. Is the disk full?"
            self._cut(len(data[:written]) - (bytes(data[:written]).rfind(b"\n") + 1))
            raise InfrastructureError(self._failure) from error

    def close(self) -> None:
        """Writes the remaining events and waits until they are on the disk. A second call does nothing.

        Raises:
            InfrastructureError: Writing failed, now or earlier.
        """
        if self._fd < 0:
            return
        fd = self._fd
        try:
            self.flush()
            os.fsync(fd)
        except OSError as error:
            raise InfrastructureError(f"{self.path}: the history cannot be synced: {error.strerror}") from error
        finally:
            self._failure = self._failure or f"{self.path}: the history is closed"
            self._fd = -1
            os.close(fd)

    def _flush_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(FLUSH_S, self._flush_by_timer)

    def _flush_by_timer(self) -> None:
        # The next call of `append`, `flush` or `close` raises the failure.
        with contextlib.suppress(InfrastructureError):
            self.flush()

    def _cut(self, torn_bytes: int) -> None:
        # Readers tolerate a torn last line, so a failure here does no harm.
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - torn_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A history as read from its file.

    Attributes:
        header: The first line.
        ops: The events.
        torn: Whether the file ended in the middle of a line, which was left out.
    """

    header: Mapping[str, Value]
    ops: Sequence[Op]
    torn: bool


def read_history(path: Path, *, within: Path | None = None) -> History:
    """Reads a history file.

    Args:
        path: The file.
        within: The run's folder around the file; no link below it is followed.

    Raises:
        InputError: The file cannot be read, is not a history, or has a malformed line that is not a torn last line.
    """
    ops: list[Op] = []
    lines = EventLines()
    number = 0
    try:
        with path.open("rb", buffering=1 << 20) if within is None else below.open_file(within, path) as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                op = lines.decode(line)
                if op is not None:
                    ops.append(op)
    except ValueError as error:
        raise InputError(f"{path}:{number}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: the history cannot be read: {error.strerror}") from error
    if not lines.header:
        raise InputError(f"{path}: expected a history, found an empty file")
    return History(header=lines.header, ops=ops, torn=lines.torn)


def pair(ops: Iterable[Op]) -> list[Operation]:
    """Joins the invokes of clients with their completions, without the events of the nemesis.

    Returns:
        One operation for each invoke, in the order of the invokes. An invoke without a completion is `info` without an end.

    Raises:
        InputError: An event contradicts an earlier one; the message has their indexes.
    """
    pairing = Pairing(lambda index, reason: InputError(f"event {index}: {reason}"), unit="event")
    for op in ops:
        pairing.add(Event(op.index, op))
    return pairing.finish()
