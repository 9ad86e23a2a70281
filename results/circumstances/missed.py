"""Names the last acknowledged write that transactions lost, if a loss is what an anomaly shows.

A transaction *missed* an acknowledged write if the write ended before the transaction began, and the version that it read lacks
it. The anomaly must show both transactions, and be one of real time, or an update that is lost by definition. Of two lists that
contradict each other, the later one lacks what the earlier one has. A write that a later transaction read was not lost, so then
nothing is named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from checker.identity import identity
from harness.op import OpType
from results.circumstances.registers import is_older, makers_of, missed_of, observed, written

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from harness.counterexample import Counterexample
    from harness.op import Operation, Value

_LISTS: Final = "list-append"
_REGISTERS: Final = "rw-register"
WORKLOADS: Final = frozenset({_LISTS, _REGISTERS})
_REALTIME: Final = "-realtime"
_LOST_BY_NAME: Final = frozenset({"lost-update", "cyclic-versions"})
_DIFFERENT_LISTS: Final = "incompatible-order"


def missed_write(
    workload: str, kind: str, example: Counterexample, operations: Sequence[Operation]
) -> Operation | None:
    """Returns the last acknowledged write that a transaction of an anomaly missed, as a write of one key; None if none is lost.

    Args:
        workload: `list-append` or `rw-register`.
        kind: The kind of the anomaly.
        example: Its transactions.
        operations: All transactions of the run.
    """
    if not (kind.endswith(_REALTIME) or kind in _LOST_BY_NAME or kind == _DIFFERENT_LISTS):
        return None
    shown = {operation.invoke_index for operation in example.operations}
    of_key = _missed_append if workload == _LISTS else _missed_register
    keys = {identity(key): key for operation in example.operations for f, key, _ in _steps(operation) if f == "r"}
    missed = [of_key(key, kind, shown, operations) for key in keys.values()]
    return max(
        (operation for operation in missed if operation is not None),
        key=lambda operation: operation.last_ns,
        default=None,
    )


def _steps(op: Operation) -> Iterator[tuple[str, Value, Value]]:
    """Yields the micro-operations of a transaction, with the results if it has any; what has another form is left out."""
    request = op.value if isinstance(op.value, list | tuple) else []
    answer = op.result if isinstance(op.result, list | tuple) and len(op.result) == len(request) else request
    for asked, answered in zip(request, answer, strict=True):
        parts = [part if isinstance(part, list | tuple) and len(part) == 3 else None for part in (asked, answered)]
        if parts[0] is None or parts[1] is None or not isinstance(parts[0][0], str):
            continue
        yield parts[0][0], parts[0][1], parts[1][2]


def _single(op: Operation, f: str, key: Value, value: Value) -> Operation:
    """Returns one micro-operation as an operation of its key."""
    return replace(op, f=f, key=str(key), value=None if f == "read" else value, result=value if f == "read" else None)


def _missed_register(key: Value, kind: str, shown: set[int], operations: Sequence[Operation]) -> Operation | None:
    singles = [single for operation in operations for single in _of_register(operation, key)]
    makers = makers_of(singles)
    missed = []
    for reader in singles:
        saw = observed(reader)
        if reader.invoke_index not in shown or saw is None:
            continue
        # What the same transaction writes later is not what it read, and the anomaly must show the write that is missed.
        others = [single for single in singles if single.invoke_index != reader.invoke_index]
        made = makers_of(others)
        if not any(_is_lost(other, reader, saw, made, kind) for other in others if other.invoke_index in shown):
            continue
        last = missed_of(reader, saw, others, makers)
        if last is not None and _is_unseen(last, reader, others):
            missed.append(last)
    return max(missed, key=lambda single: single.last_ns, default=None)


def _is_lost(write: Operation, reader: Operation, saw: str, makers: Mapping[str, list[Operation]], kind: str) -> bool:
    """Returns whether a transaction missed an acknowledged write that its anomaly shows."""
    if write.type is not OpType.OK or written(write) in {None, saw} or write.last_ns >= reader.start_ns:
        return False
    # The writes of a lost update follow the version that both transactions have read.
    return kind == "lost-update" or is_older(saw, write, makers)


def _is_unseen(write: Operation, reader: Operation, singles: Sequence[Operation]) -> bool:
    return not any(observed(single) == written(write) for single in singles if single.start_ns > reader.start_ns)


def _of_register(op: Operation, key: Value) -> Iterator[Operation]:
    """Yields the first read of a key before its own writes, and the last write, as operations on a register."""
    form, last = identity(key), None
    has_read = False
    for f, other, value in _steps(op):
        if identity(other) != form:
            continue
        if f == "r" and last is None and not has_read and op.type is OpType.OK:
            has_read = True
            yield _single(op, "read", key, value)
        elif f == "w":
            last = _single(op, "write", key, value)
    if last is not None:
        yield last


def _missed_append(key: Value, kind: str, shown: set[int], operations: Sequence[Operation]) -> Operation | None:
    form = identity(key)
    appends: list[Operation] = []
    reads: list[tuple[Operation, set[Hashable]]] = []
    for op in operations:
        for f, other, value in _steps(op):
            if op.type is not OpType.OK or identity(other) != form:
                continue
            if f == "append":
                appends.append(_single(op, f, key, value))
            elif f == "r" and (value is None or isinstance(value, list | tuple)):
                reads.append((op, set(map(identity, value or ()))))
    readers = [(op, elements) for op, elements in reads if op.invoke_index in shown]
    earlier = set().union(*(elements for _, elements in readers))
    lost = []
    for reader, elements in readers:
        seen = elements.union(*(later for op, later in reads if op.start_ns >= reader.start_ns))
        missing = [
            append for append in appends if append.last_ns < reader.start_ns and identity(append.value) not in seen
        ]
        if kind == _DIFFERENT_LISTS:
            is_shown = any(identity(append.value) in earlier for append in missing)
        else:
            is_shown = any(append.invoke_index in shown for append in missing)
        lost += missing if is_shown else []
    return max(lost, key=lambda append: append.last_ns, default=None)
