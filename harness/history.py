"""The history of a run: written during the run, read as data, and paired into operations.

The file is JSON lines. Its first line is a header `{"format": "labrys-history", "version": 1, ...}`; each other line is one
event (see `harness.event_lines`).

Invariants: An event is written within a second or 256 events, and survives any end of the run. So only the last
line of a file can be torn. Any other malformed line is an error with its number, because a verdict on a changed history
is worthless. A process has one operation at a time, and none after an `info`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness.console import below
from harness.errors import InfrastructureError, InputError
from harness.event_lines import MAX_LINE_BYTES, LineEncoder, decode_event, decode_object
from harness.op import NEMESIS, Op, Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.op import Process, Value

FORMAT = "labrys-history"
VERSION = 1
FLUSH_OPS = 256
FLUSH_S = 1.0


class Recorder(Protocol):
    """Records events.

    Attributes:
        ops: All events so far.
    """

    ops: list[Op]

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
        """Records an event, gives it the next index, and returns it.

        Raises:
            InputError: JSON cannot represent the value, or the order is not an integer of 64 bits; nothing is recorded.
            InfrastructureError: Storing failed.
        """
        ...


class MemoryHistory:
    """A history in memory only, for simulations."""

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
        """Records an event, gives it the next index, and returns it."""
        op = Op(len(self.ops), time_ns, op_type, process, f, value, key, node, error, scheduled_ns, phase, via, order)
        self.ops.append(op)
        return op


class HistoryWriter:
    """Appends events to a new history file.

    It is used from one thread. With a running event loop, each event is written within a second. Without one, only `flush`,
    `close` and each 256th event write.

    Attributes:
        path: The file.
        ops: All events so far.
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
        self.path = path
        self.ops: list[Op] = []
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
        """Records an event, gives it the next index, and returns it.

        Raises:
            InputError: JSON cannot represent the value, the order is not an integer of 64 bits, or the line would be too long;
                nothing is recorded.
            InfrastructureError: Writing earlier events failed, e.g. on a full disk; nothing more is recorded.
        """
        if self._failure is not None:
            raise InfrastructureError(self._failure)
        op = Op(len(self.ops), time_ns, op_type, process, f, value, key, node, error, scheduled_ns, phase, via, order)
        line = self._encoder.event(op)
        self.ops.append(op)
        self._pending.append(line)
        if len(self._pending) >= FLUSH_OPS:
            self.flush()
        elif self._timer is None:
            self._flush_soon()
        return op

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
    header: Mapping[str, Value] | None = None
    number = 0
    try:
        with path.open("rb", buffering=1 << 20) if within is None else below.open_file(within, path) as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise InputError(f"{path}:{number}: expected a line of at most {MAX_LINE_BYTES} bytes")
                try:
                    fields = decode_object(line)
                except ValueError:
                    if header is not None and not line.endswith(b"\n"):
                        return History(header=header, ops=ops, torn=True)
                    raise
                if header is None:
                    header = _header(fields)
                else:
                    ops.append(decode_event(fields, len(ops)))
    except ValueError as error:
        raise InputError(f"{path}:{number}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: the history cannot be read: {error.strerror}") from error
    if header is None:
        raise InputError(f"{path}: expected a history, found an empty file")
    return History(header=header, ops=ops, torn=False)


def _header(fields: Mapping[str, Value]) -> Mapping[str, Value]:
    if fields.get("format") != FORMAT:
        raise ValueError(f'expected the header of a history, {{"format": "{FORMAT}", "version": {VERSION}, ...}}')
    if fields.get("version") != VERSION:
        raise ValueError(f"expected version {VERSION} of the format, found {fields.get('version')!r}")
    return fields


def pair(ops: Iterable[Op]) -> list[Operation]:
    """Joins the invokes of clients with their completions, without the events of the nemesis.

    Returns:
        One operation for each invoke, in the order of the invokes. An invoke without a completion is `info` without an end.

    Raises:
        InputError: A process invokes during its operation or after an `info`, or completes an operation that it did not invoke.
    """
    # Filled in the order of invokes; a completion replaces the invoke in its place.
    paired: list[tuple[Op, Op | None]] = []
    open_at: dict[Process, int] = {}
    ended: dict[Process, int] = {}
    for op in ops:
        process = op.process
        if process == NEMESIS:
            continue
        if op.type is OpType.INVOKE:
            if process in open_at:
                before = paired[open_at[process]][0].index
                raise InputError(
                    f"event {op.index}: process {process} invokes, but its operation of event {before} is open"
                )
            if process in ended:
                raise InputError(
                    f"event {op.index}: process {process} invokes, but ended with the info of event {ended[process]}"
                )
            open_at[process] = len(paired)
            paired.append((op, None))
            continue
        place = open_at.pop(process, None)
        if place is None:
            raise InputError(f"event {op.index}: process {process} completes ({op.type}), but has no open operation")
        invoke = paired[place][0]
        if (op.f, op.key) != (invoke.f, invoke.key):
            raise InputError(
                f"event {op.index}: process {process} completes {op.f!r} on key {op.key!r}, but invoked {invoke.f!r} on "
                f"key {invoke.key!r} in event {invoke.index}"
            )
        if op.type is OpType.INFO:
            ended[process] = op.index
        paired[place] = (invoke, op)
    return [_operation(invoke, completion) for invoke, completion in paired]


def _operation(invoke: Op, completion: Op | None) -> Operation:
    return Operation(
        process=invoke.process,
        f=invoke.f,
        value=invoke.value,
        result=completion.value if completion is not None and completion.type is OpType.OK else None,
        type=OpType.INFO if completion is None else completion.type,
        start_ns=invoke.time_ns,
        end_ns=None if completion is None else completion.time_ns,
        invoke_index=invoke.index,
        complete_index=None if completion is None else completion.index,
        key=invoke.key,
        node=invoke.node,
        error=None if completion is None else completion.error,
        scheduled_ns=invoke.scheduled_ns,
        phase=invoke.phase,
        via=None if completion is None else completion.via,
        order=None if completion is None else completion.order,
    )
