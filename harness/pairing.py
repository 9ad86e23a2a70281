"""Joins the events of a history into operations, and checks the rules of histories; the only pairing of events in Python.

The rules are those of knossos:

- A process has one operation open at a time, and never works again after an `info`.
- A completion has an invoke, with the same function and the same key.

knossos also demands that a failed operation has the value of its invoke. Here it may carry its reason there, as clients of many
tests do: the value of the invoke counts, and a warning tells how often.

The order of the events is that in which they come. Each breach is an error with its place and the place of the event that it
contradicts, because a repaired history proves nothing. A place is a line of a file, or the index of an event in memory. Only
events that cannot affect the verdict are skipped, with a warning.
"""

from __future__ import annotations

import json
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harness.op import NEMESIS, Op, Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harness.errors import InputError
    from harness.op import Process, Value


_NOT_OPEN: Final = (-1, None)
_FIELDS: Final = tuple(field.name for field in fields(Operation))
# The slots' own setters, which bypass the frozen dataclass' `__setattr__`: a history needs millions of calls.
_SET: Final[Sequence[Any]] = [Operation.__dict__[name].__set__ for name in _FIELDS]


class Event(NamedTuple):
    """An event and its place.

    Attributes:
        line: Its line, or its index.
        op: The event.
        has_value: Whether the file has a value; for an operation that did not succeed, some files have only an error, and no
            key.
        is_lifted: Whether its key is from its value, which may be a reason instead if the operation did not succeed.
    """

    line: int
    op: Op
    has_value: bool = True
    is_lifted: bool = False


class Pairing:
    """Takes events one after the other, and returns operations.

    Attributes:
        events: The number of events, with faults.
        warnings: Warnings as sentences.
    """

    def __init__(self, refused: Callable[[int, str], InputError], *, unit: str = "line") -> None:
        """Starts a history.

        Args:
            refused: Makes the error of an event from its place and the reason.
            unit: What places are, in errors.
        """
        self.events = 0
        self.warnings: list[str] = []
        self._refused = refused
        self._unit = unit
        self._operations: list[Operation | None] = []
        self._open: dict[Process, tuple[int, Event]] = {}
        self._ended: dict[Process, int] = {}  # the line of the info
        self._free_ns: dict[Process, int] = {}
        self._passed: set[Process] = set()  # whose last event is an invoke that was passed over
        self._time_ns = -1
        self._back_line: int | None = None
        self._changed: dict[OpType, list[int]] = {}  # by type: the lines of completions with another value

    def add(self, event: Event) -> None:
        """Adds the next event.

        Raises:
            InputError: It contradicts an earlier one.
        """
        line, op, has_value, _ = event
        _, time_ns, op_type, process, f, value, key, *_ = op
        self.events += 1
        if process == NEMESIS:
            return
        if time_ns < self._time_ns and self._back_line is None:
            self._back_line = line
        self._time_ns = time_ns
        if op_type is OpType.INVOKE:
            if process in self._open or process in self._ended or time_ns < self._free_ns.get(process, time_ns):
                raise self._no_invoke(event)
            self._open[process] = (len(self._operations), event)
            self._operations.append(None)
            self._passed.discard(process)
            return
        index, invoke = self._open.get(process, _NOT_OPEN)
        if invoke is None:
            raise self._nothing_open(event)
        first = invoke.op
        if f != first.f or time_ns < first.time_ns or (key != first.key and (has_value or key is not None)):
            self._hold_completion(event, invoke)
        if op_type is not OpType.OK:
            if has_value and value is not None and not _same(value, first.value):
                self._changed.setdefault(op_type, []).append(line)
                op = _with_reason(op, first)
            if op_type is OpType.INFO:
                self._ended[process] = line
        del self._open[process]
        self._free_ns[process] = time_ns
        self._operations[index] = _operation(first, op)

    def pass_over(self, event: Event) -> None:
        """Goes on after an event that `add` refused.

        The open operation of its process stays without an end. The completion of a refused invoke is refused too.
        """
        op = event.op
        index, invoke = self._open.pop(op.process, _NOT_OPEN)
        if invoke is not None:
            self._operations[index] = _operation(invoke.op, None)
        if op.type is OpType.INVOKE:
            self._passed.add(op.process)
            return
        self._passed.discard(op.process)
        if op.type is OpType.INFO:
            self._ended[op.process] = event.line

    def taken(self) -> list[Operation]:
        """Returns the operations that have ended, each once; `finish` returns the rest."""
        ended = [operation for operation in self._operations if operation is not None]
        self._operations = [None] * len(self._open)
        self._open = {process: (index, event) for index, (process, (_, event)) in enumerate(self._open.items())}
        return ended

    def _nothing_open(self, event: Event) -> InputError:
        """Returns the error of a completion without an invoke."""
        op = event.op
        if op.process in self._passed:
            return self._refused(event.line, f"process {op.process} completes {op.f!r}, whose invoke is in quarantine")
        return self._refused(
            event.line,
            f"process {op.process} completes {op.f!r} ({op.type}), but has no operation open; expected an invoke before it",
        )

    def _no_invoke(self, event: Event) -> InputError:
        """Returns the error of a process that cannot begin an operation here."""
        op = event.op
        before = self._open.get(op.process)
        if before is not None:
            return self._refused(
                event.line,
                f"process {op.process} invokes {op.f!r}, but its {before[1].op.f!r} of {self._unit} {before[1].line} is "
                "still open; a process has one operation at a time",
            )
        if op.process in self._ended:
            return self._refused(
                event.line,
                f"process {op.process} invokes {op.f!r}, but ended with the info of {self._unit} {self._ended[op.process]}; "
                "a process whose operation is unknown never works again",
            )
        return self._back(event, self._free_ns[op.process], "its last operation completed")

    def _hold_completion(self, event: Event, invoke: Event) -> None:
        """Refuses an event that cannot complete the open operation of its process."""
        op, first = event.op, invoke.op
        if op.f != first.f:
            raise self._refused(
                event.line, f"expected the completion of {first.f!r} of {self._unit} {invoke.line}, found {op.f!r}"
            )
        if op.time_ns < first.time_ns:
            raise self._back(event, first.time_ns, f"it was invoked in {self._unit} {invoke.line}")
        if not event.is_lifted or op.type is OpType.OK:
            raise self._refused(
                event.line,
                f"expected a completion on key {first.key!r} as invoked in {self._unit} {invoke.line}, found {op.key!r}",
            )

    def _back(self, event: Event, earlier_ns: int, what: str) -> InputError:
        op = event.op
        return self._refused(
            event.line,
            f"time decreases: process {op.process} has an event at {op.time_ns} ns, but {what} at {earlier_ns} ns",
        )

    def finish(self) -> list[Operation]:
        """Returns the operations in the order of their invokes; those without a completion are `info` without an end."""
        for index, event in self._open.values():
            self._operations[index] = _operation(event.op, None)
        if self._back_line is not None:
            self.warnings.append(back_warning(self._back_line))
        self.warnings += changed_warnings(self._changed)
        return [operation for operation in self._operations if operation is not None]


def _with_reason(op: Op, invoke: Op) -> Op:
    """Returns a completion with the reason that it has in place of a value, if it has no error of its own."""
    value = op.value if op.key == invoke.key else [op.key, op.value]
    return op if op.error is not None else op._replace(error=reason_in(value))


def reason_in(value: Value) -> str | None:
    """Returns the reason that a client put in place of a value, as the text of an error; None if the value has no words.

    Args:
        value: A word, or a list that begins with one: `["dup", "x y"]` is `dup: x y`, as it is for the error of an event.
    """
    if isinstance(value, str):
        return value or None
    if not isinstance(value, list | tuple) or not value or not isinstance(value[0], str):
        return None
    rest = " ".join(member if isinstance(member, str) else _text(member) for member in value[1:])
    return f"{value[0]}: {rest}" if rest else value[0] or None


def back_warning(line: int) -> str:
    """Returns the warning about times that decrease between processes."""
    return f"times go back in line {line}, between processes; the order of the file is what counts"


def changed_warnings(changed: Mapping[OpType, Sequence[int]]) -> list[str]:
    """Returns the warnings about completions with another value than their invoke.

    Args:
        changed: By their type, the lines of those that are not ok, in their order.
    """
    return [
        f"{len(changed[op_type])} {op_type} completions have another value than their invoke, the first in line "
        f"{changed[op_type][0]}; the invoke's value is what counts{reason}"
        for op_type, reason in ((OpType.FAIL, ", and the other one is a reason"), (OpType.INFO, ""))
        if changed.get(op_type)
    ]


def torn_warning(line: int) -> str:
    """Returns the warning about a last line without an end."""
    return f"line {line}, the last one, is torn off and was left out"


def _same(first: Value, second: Value) -> bool:
    return first is second or _text(first) == _text(second)


def _text(value: Value) -> str:
    return "nil" if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))


def _operation(invoke: Op, completion: Op | None) -> Operation:
    index, time_ns, _, process, f, value, key, node, _, scheduled_ns, phase, *_ = invoke
    result = end = end_ns = error = via = order = None
    op_type = OpType.INFO
    if completion is not None:
        end, end_ns, op_type, error = completion.index, completion.time_ns, completion.type, completion.error
        via, order = completion.via, completion.order
        if op_type is OpType.OK:
            result = completion.value
    return made(
        process, f, value, result, op_type, time_ns, end_ns, index, end, key, node, error, scheduled_ns, phase, via,
        order,
    )  # fmt: skip


def made(*members: Any) -> Operation:
    """Returns the operation with these members, in the order of its fields; a test compares them with the keywords."""
    operation = Operation.__new__(Operation)
    for set_member, member in zip(_SET, members, strict=True):
        set_member(operation, member)
    return operation


def events_of(operations: Iterable[Operation]) -> list[Op]:
    """Returns the events of operations, in their order; pairing these events gives the same operations."""
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
                    via=operation.via,
                    order=operation.order,
                )
            )
    return sorted(events, key=attrgetter("index"))
