"""Reads histories of transactions as other checkers of transactions take them, by softer rules than those of all histories.

Elle and similar checkers need only the completions. So these are accepted here, and nowhere else:

- a completion without an invoke; then it is not known when the transaction began;
- an event without a process; then it is not known which process the transaction belongs to. An invoke without a process ends
  with the next event that has none: such transactions come one after the other, as in the example of Elle's paper;
- a process that works again after an `info`;
- a read without a place for its result, `[:r x]`, as elle-cli's examples have it;
- an `info` whose value has the results of reads. They count if the transaction happened (`happened`).

A history that lacks an edge's data says so (`lacks`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.op import NEMESIS, OpType
from harness.pairing import Event, Pairing, made

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.errors import InputError
    from harness.op import Operation, Value

NOBODY: Final = -1  # the process of an event that has none
PROCESS: Final = "process"
REALTIME: Final = "realtime"
TRANSACTION: Final = "txn"
_READS: Final = frozenset({"r", "read"})


class TransactionPairing(Pairing):
    """Joins events into operations, with the softer rules."""

    def __init__(self, refused: Callable[[int, str], InputError], *, unit: str = "line") -> None:
        """See `Pairing`."""
        super().__init__(refused, unit=unit)
        self._alone = self._nobody = self._again = 0
        self._last = NOBODY  # the greatest number of a process
        self._shown: dict[int, Value] = {}  # by place of an operation: the value of its info, with results of reads

    @property
    def lacks(self) -> tuple[str, ...]:
        """Returns what the history does not tell: `process`, `realtime`."""
        return (*([PROCESS] if self._nobody else []), *([REALTIME] if self._alone else []))

    def add(self, event: Event) -> None:
        """Adds the next event.

        Raises:
            InputError: It contradicts an earlier one.
        """
        op = event.op
        if op.process == NEMESIS:
            super().add(event)
            return
        value = _with_results(op.value)
        if value is not op.value:
            op = op._replace(value=value)
            event = event._replace(op=op)
        if isinstance(op.process, int):
            self._last = max(self._last, op.process)
        if op.type is OpType.INVOKE:
            self._before_invoke(event)
            super().add(event)
            return
        if op.process not in self._open:
            self._add_alone(event)
            return
        index, invoke = self._open[op.process]
        before = invoke.op.value
        if op.process == NOBODY:
            self._nobody += 1
            if op.value is not None and requested(op.value) != requested(before):
                raise self._refused(event.line, f"{self._expected_end()}, found that of another transaction")
        if op.type is OpType.INFO and op.value != before and requested(op.value) == requested(before):
            self._shown[index] = op.value
            event = event._replace(has_value=False)
        super().add(event)

    def finish(self) -> list[Operation]:
        """Returns the operations; each one of nobody gets a process of its own."""
        operations = super().finish()
        used = 0
        if self._shown:
            for index, value in self._shown.items():
                operations[index] = replace(operations[index], result=value)
            operations = happened(operations)
            used = sum(operations[index].result is not None for index in self._shown)
        for count, what in (
            (self._alone, "completions have no event of type invoke, so it is not known when they began"),
            (
                self._nobody,
                "events have no process, so each transaction among them counts as one of a process of its own",
            ),
            (self._again, "times a process worked again after an info"),
            (
                used,
                "transactions without an answer show results of reads, and another one read what they wrote; so these count",
            ),
            (
                len(self._shown) - used,
                "transactions without an answer show results of reads, but nobody read what they wrote; so these do not count",
            ),
        ):
            if count:
                self.warnings.append(f"{count} {what}")
        if not self._nobody:
            return operations
        kept = []
        for operation in operations:
            if operation.process == NOBODY:
                self._last += 1
                operation = replace(operation, process=self._last)  # noqa: PLW2901 - the same operation
            kept.append(operation)
        return kept

    def _before_invoke(self, event: Event) -> None:
        """Counts an invoke that softer rules allow."""
        process = event.op.process
        has_ended = self._ended.pop(process, None) is not None
        if process != NOBODY:
            self._again += has_ended
            return
        self._nobody += 1
        if NOBODY in self._open:
            raise self._refused(event.line, f"{self._expected_end()}, found another invoke without one")

    def _expected_end(self) -> str:
        """Returns the beginning of an error while an invoke without a process is open."""
        line = self._open[NOBODY][1].line
        return f"expected the completion of the invoke on {self._unit} {line}, because neither has a process"

    def _add_alone(self, event: Event) -> None:
        """Adds a completion without an invoke, as an operation that begins with its own event."""
        op = event.op
        self.events += 1
        self._alone += 1
        self._nobody += op.process == NOBODY
        has_end = op.type is not OpType.INFO
        if not has_end and op.value != requested(op.value):
            self._shown[len(self._operations)] = op.value
        self._operations.append(
            made(
                op.process, op.f, requested(op.value), op.value if op.type is OpType.OK else None, op.type, op.time_ns,
                op.time_ns if has_end else None, op.index, op.index if has_end else None, op.key, op.node, op.error, None,
                op.phase, op.via, op.order,
            )
        )  # fmt: skip


def happened(operations: list[Operation]) -> list[Operation]:
    """Returns transactions in which those without an answer have results only if they happened.

    One happened if a transaction that happened read a value that it wrote. Then the results of its reads bind, as if it had
    succeeded; nil means that a result is not known. A client must show reads of the attempt that took effect, and not of an
    earlier one that it gave up; the same holds of an answer.

    Args:
        operations: Transactions; those without an answer may have results of reads.
    """
    unsure = {
        index
        for index, operation in enumerate(operations)
        if operation.type is OpType.INFO and operation.result is not None
    }
    writers = {
        (function == "append", _text(key), _text(value)): index
        for index in unsure
        for function, key, value in _mops(operations[index].value)
        if not _is_read(function)
    }
    left = [index for index, operation in enumerate(operations) if operation.type is OpType.OK]
    while left:
        for function, key, value in _mops(operations[left.pop()].result):
            if not _is_read(function) or value is None:
                continue
            elements = value if isinstance(value, list) else []
            for is_element, written in ((False, value), *((True, element) for element in elements)):
                writer = writers.get((is_element, _text(key), _text(written)), -1)
                if writer in unsure:
                    unsure.remove(writer)
                    left.append(writer)
    return [
        replace(operation, result=None) if index in unsure else operation for index, operation in enumerate(operations)
    ]


def _mops(value: Value) -> list[list[Value]]:
    """Returns the micro-operations of a value that have the form of one."""
    return [mop for mop in value if isinstance(mop, list) and len(mop) == 3] if isinstance(value, list) else []


def _is_read(function: Value) -> bool:
    return isinstance(function, str) and function in _READS


def _text(value: Value) -> str:
    return json.dumps(value, sort_keys=True)


def _with_results(value: Value) -> Value:
    """Returns a value whose reads all have a place for their results: `[:r x]` is `[:r x nil]`."""
    if not isinstance(value, list) or not any(map(_is_short, value)):
        return value
    return [[*mop, None] if isinstance(mop, list) and _is_short(mop) else mop for mop in value]


def _is_short(mop: Value) -> bool:
    return isinstance(mop, list) and len(mop) == 2 and _is_read(mop[0])


def requested(value: Value) -> Value:
    """Returns the request of an answer: its micro-operations, with null in place of the results of reads."""
    if not isinstance(value, list):
        return value
    return [
        [mop[0], mop[1], None] if isinstance(mop, list) and len(mop) == 3 and _is_read(mop[0]) else mop for mop in value
    ]
