"""Checks paired operations, such as rows of a table, by the rules of `harness.pairing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checker.formats.errors import BadHistory
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.op import Operation, Process


def hold_to_rules(name: str, operations: Iterable[Operation]) -> None:
    """Checks paired operations by the rules, in the order of their invokes.

    Args:
        name: The name of their history.
        operations: The operations.

    Raises:
        BadHistory: Two of them contradict each other.
    """
    last: dict[Process, Operation] = {}
    invoke_index = -1
    completed: dict[int, int] = {}  # the index of a completion, to its row
    for row, operation in enumerate(operations, 1):
        wrong = _of_indexes(operation, invoke_index, completed) or _of_process(operation, last.get(operation.process))
        if wrong is not None:
            raise BadHistory(name, None, f"row {row} (event {operation.invoke_index}): {wrong}")
        last[operation.process] = operation
        invoke_index = operation.invoke_index
        if operation.complete_index is not None:
            completed[operation.complete_index] = row


def _of_indexes(operation: Operation, before: int, completed: Mapping[int, int]) -> str | None:
    """Returns the problem of an operation's indexes and times; `before` is the invoke_index of the row before."""
    begin, end = operation.invoke_index, operation.complete_index
    if begin <= before:
        return f"expected an invoke_index above that of the row before, {before}"
    if begin in completed:
        return f"invoke_index {begin} is the complete_index of row {completed[begin]} as well"
    if end is not None and end <= begin:
        return f"expected a complete_index above, found {end}"
    if end is not None and end in completed:
        return f"complete_index {end} is that of row {completed[end]} as well"
    if operation.end_ns is not None and operation.end_ns < operation.start_ns:
        return f"time decreases, from {operation.start_ns} to {operation.end_ns} ns"
    return None


def _of_process(operation: Operation, before: Operation | None) -> str | None:
    """Returns why a process cannot begin an operation after the previous one."""
    if before is None:
        return None
    if before.type is OpType.INFO:
        return f"process {operation.process} works again after its operation of event {before.invoke_index} ended as unknown"
    if before.complete_index is None or before.complete_index > operation.invoke_index:
        return f"process {operation.process} invokes while its operation of event {before.invoke_index} is open"
    return None
