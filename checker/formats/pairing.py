"""Joins the events of a foreign history into operations, and holds the history to the rules that make it one.

The rules are knossos': a process has one operation open at a time; it never works again after an `info`; what completes was
invoked, with the same function and on the same key; a failed operation has the value that it was invoked with. The order of the
file is the order of the events. Each breach is an error with its line and that of the event it contradicts, because a history
that was repaired proves nothing. Only what cannot change a verdict is passed over, with a warning.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from checker.formats.errors import BadHistory
from checker.formats.parquet import json_text
from harness.op import NEMESIS, Op, Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.op import Process, Value


class Event(NamedTuple):
    """An event and where it stood.

    Attributes:
        line: Its line.
        op: The event.
        has_value: Whether the file gave a value; some give only an error, and no key, where an operation did not succeed.
    """

    line: int
    op: Op
    has_value: bool = True


class Pairing:
    """Takes events one after the other and gives operations.

    Attributes:
        events: How many events were taken, faults included.
        warnings: What was passed over, as sentences.
    """

    def __init__(self, name: str) -> None:
        """Begins a history that is called `name` in errors."""
        self.events = 0
        self.warnings: list[str] = []
        self._name = name
        self._operations: list[Operation | None] = []
        self._open: dict[Process, tuple[int, Event]] = {}
        self._ended: dict[Process, int] = {}  # line of the info
        self._free_ns: dict[Process, int] = {}
        self._time_ns = -1
        self._back_line: int | None = None
        self._changed_line: int | None = None
        self._changed = 0

    def add(self, event: Event) -> None:
        """Takes the next event.

        Raises:
            BadHistory: It contradicts an earlier one.
        """
        op = event.op
        self.events += 1
        if op.process == NEMESIS:
            return
        if op.time_ns < self._time_ns and self._back_line is None:
            self._back_line = event.line
        self._time_ns = op.time_ns
        if op.type is OpType.INVOKE:
            self._invoke(event)
        else:
            self._complete(event)

    def _invoke(self, event: Event) -> None:
        op = event.op
        before = self._open.get(op.process)
        if before is not None:
            raise BadHistory(
                self._name,
                event.line,
                f"process {op.process} invokes {op.f!r}, but its {before[1].op.f!r} of line {before[1].line} is still open; "
                "a process has one operation at a time",
            )
        if op.process in self._ended:
            raise BadHistory(
                self._name,
                event.line,
                f"process {op.process} invokes {op.f!r}, but ended with the info of line {self._ended[op.process]}; "
                "a process whose operation is unknown never works again",
            )
        if op.time_ns < self._free_ns.get(op.process, op.time_ns):
            raise self._back(event, self._free_ns[op.process], "its last operation completed")
        self._open[op.process] = (len(self._operations), event)
        self._operations.append(None)

    def _complete(self, event: Event) -> None:
        op = event.op
        place, invoke = self._open.pop(op.process, (-1, None))
        if invoke is None:
            raise BadHistory(
                self._name,
                event.line,
                f"process {op.process} completes {op.f!r} ({op.type}), but has no operation open; "
                "expected an invoke before it",
            )
        first = invoke.op
        if op.f != first.f:
            raise BadHistory(
                self._name, event.line, f"expected the completion of {first.f!r} of line {invoke.line}, found {op.f!r}"
            )
        if op.key != first.key and (event.has_value or op.key is not None):
            raise BadHistory(
                self._name,
                event.line,
                f"expected a completion on key {first.key!r} as invoked in line {invoke.line}, found {op.key!r}",
            )
        if op.time_ns < first.time_ns:
            raise self._back(event, first.time_ns, f"it was invoked in line {invoke.line}")
        if op.type is not OpType.OK and event.has_value and not _same(op.value, first.value):
            self._differs(event, invoke)
        if op.type is OpType.INFO:
            self._ended[op.process] = event.line
        self._free_ns[op.process] = op.time_ns
        self._operations[place] = _operation(first, op)

    def _differs(self, event: Event, invoke: Event) -> None:
        """Judges a completion that is not ok and has another value than its invoke."""
        found, expected = json_text(event.op.value) or "nil", json_text(invoke.op.value) or "nil"
        if event.op.type is OpType.FAIL:
            raise BadHistory(
                self._name,
                event.line,
                f"expected the value {expected[:60]} as invoked in line {invoke.line}, found {found[:60]}; "
                "a failed operation keeps its value",
            )
        if event.op.value is not None:
            self._changed += 1
            self._changed_line = self._changed_line or event.line

    def _back(self, event: Event, earlier_ns: int, what: str) -> BadHistory:
        op = event.op
        return BadHistory(
            self._name,
            event.line,
            f"time goes back: process {op.process} has an event at {op.time_ns} ns, but {what} at {earlier_ns} ns",
        )

    def finish(self) -> list[Operation]:
        """Returns the operations in the order of their invokes; those without a completion are `info` without an end."""
        for place, event in self._open.values():
            self._operations[place] = _operation(event.op, None)
        if self._back_line is not None:
            self.warnings.append(
                f"times go back in line {self._back_line}, between processes; the order of the file is what counts"
            )
        if self._changed:
            self.warnings.append(
                f"{self._changed} info completions have another value than their invoke, the first in line "
                f"{self._changed_line}; the invoke's value is what counts"
            )
        return [operation for operation in self._operations if operation is not None]


def _same(first: Value, second: Value) -> bool:
    return first is second or json_text(first) == json_text(second)


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
    )


def hold_to_rules(name: str, operations: Iterable[Operation]) -> None:
    """Holds operations that come paired to the rules, in the order of their invokes.

    Args:
        name: What their history is called.
        operations: The operations.

    Raises:
        BadHistory: Two of them contradict each other.
    """
    last: dict[Process, Operation] = {}
    invoke_index = -1
    for row, operation in enumerate(operations, 1):
        before = last.get(operation.process)
        last[operation.process] = operation
        where = f"row {row} (event {operation.invoke_index})"
        if operation.invoke_index <= invoke_index:
            raise BadHistory(
                name, None, f"{where}: expected an invoke_index above that of the row before, {invoke_index}"
            )
        invoke_index = operation.invoke_index
        if operation.complete_index is not None and operation.complete_index <= invoke_index:
            raise BadHistory(name, None, f"{where}: expected a complete_index above, found {operation.complete_index}")
        if operation.end_ns is not None and operation.end_ns < operation.start_ns:
            raise BadHistory(name, None, f"{where}: time goes back, from {operation.start_ns} to {operation.end_ns} ns")
        if before is None:
            continue
        if before.type is OpType.INFO:
            raise BadHistory(
                name,
                None,
                f"{where}: process {operation.process} works again after its operation of event {before.invoke_index} "
                "ended as unknown",
            )
        if before.complete_index is None or before.complete_index > operation.invoke_index:
            raise BadHistory(
                name,
                None,
                f"{where}: process {operation.process} invokes while its operation of event {before.invoke_index} is open",
            )


def events_of(operations: Iterable[Operation]) -> list[Op]:
    """Returns the events that operations were made of, in their order; a history that pairs to the same operations."""
    events: list[Op] = []
    for operation in operations:
        invoke = Op(
            index=operation.invoke_index,
            time_ns=operation.start_ns,
            type=OpType.INVOKE,
            process=operation.process,
            f=operation.f,
            value=operation.value,
            key=operation.key,
            node=operation.node,
            scheduled_ns=operation.scheduled_ns,
            phase=operation.phase,
        )
        events.append(invoke)
        if operation.complete_index is not None:
            events.append(
                invoke._replace(
                    index=operation.complete_index,
                    time_ns=operation.start_ns if operation.end_ns is None else operation.end_ns,
                    type=operation.type,
                    value=operation.result if operation.type is OpType.OK else operation.value,
                    error=operation.error,
                    scheduled_ns=None,
                )
            )
    return sorted(events, key=attrgetter("index"))
