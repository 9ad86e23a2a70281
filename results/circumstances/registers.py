"""Which acknowledged write an operation on a register missed, and how much of it is lost.

An operation provably did not see a write if the value that it observed can only be from before that write. A value that
several operations wrote may be the later one, so it proves nothing.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from harness.op import FINAL_PHASE, OpType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Operation

MAX_TRIED: Final = 200  # acknowledged writes before a read that may be the one that it misses
_WRITES: Final = frozenset({"write", "w", "put", "set"})
_READS: Final = frozenset({"read", "r", "get"})


class Lost(enum.IntEnum):
    """How much a user lost in a register; `UNSEEN` includes `MISSED`, and `GONE` includes both."""

    BACK = 0
    MISSED = 1
    UNSEEN = 2
    GONE = 3


def observed(operation: Operation) -> str | None:
    """Returns the value that a successful operation found in a register, as text that tells values apart; None if none."""
    if operation.type is not OpType.OK:
        return None
    if operation.f in _READS:
        return repr(operation.result)
    return repr(operation.value[0]) if is_cas(operation) else None


def written(operation: Operation) -> str | None:
    """Returns the value that an operation wrote or may have written; None if it wrote none."""
    if operation.type is OpType.FAIL:
        return None
    if operation.f in _WRITES:
        return repr(operation.value)
    return repr(operation.value[1]) if is_cas(operation) else None


def is_cas(operation: Operation) -> bool:
    """Returns whether an operation is a compare-and-set with both of its values."""
    return operation.f == "cas" and isinstance(operation.value, list | tuple) and len(operation.value) == 2


def makers_of(operations: Sequence[Operation]) -> Mapping[str, list[Operation]]:
    """Returns the operations that wrote, or may have written, each value."""
    makers: dict[str, list[Operation]] = {}
    for operation in operations:
        value = written(operation)
        if value is not None:
            makers.setdefault(value, []).append(operation)
    return makers


def is_older(value: str, than: Operation, makers: Mapping[str, list[Operation]]) -> bool:
    """Returns whether a value can only be from before a write: the initial one, or of writes that had all ended before it."""
    made = makers.get(value, [])
    if not made:
        return value == repr(None)
    return all(maker.type is OpType.OK and maker.last_ns < than.start_ns for maker in made)


def missed_of(
    culprit: Operation, saw: str, operations: Sequence[Operation], makers: Mapping[str, list[Operation]]
) -> Operation | None:
    """Returns the last write that was acknowledged before an operation began, and that it provably did not see."""
    acknowledged = [
        operation
        for operation in operations
        if operation.type is OpType.OK
        and written(operation) not in {None, saw}
        and operation.last_ns < culprit.start_ns
    ]
    acknowledged.sort(key=lambda operation: operation.last_ns, reverse=True)
    return next((operation for operation in acknowledged[:MAX_TRIED] if is_older(saw, operation, makers)), None)


def newer_of(
    culprit: Operation, saw: str, operations: Sequence[Operation], makers: Mapping[str, list[Operation]]
) -> Operation | None:
    """Returns the last operation that ended before another one began, and observed a value that is provably newer."""
    before = [
        operation
        for operation in operations
        if observed(operation) not in {None, saw} and operation.last_ns < culprit.start_ns
    ]
    before.sort(key=lambda operation: operation.last_ns, reverse=True)
    for operation in before[:MAX_TRIED]:
        made = makers.get(observed(operation) or "", [])
        if len(made) == 1 and is_older(saw, made[0], makers):
            return operation
    return None


def lost_of(missed: Operation, operations: Sequence[Operation], makers: Mapping[str, list[Operation]]) -> Lost:
    """Returns how much is lost of a write that an operation missed; see the module."""
    wrote = written(missed)
    later = [
        operation for operation in operations if operation.start_ns > missed.last_ns and observed(operation) is not None
    ]
    older = [operation for operation in later if is_older(observed(operation) or "", missed, makers)]
    seen = [operation for operation in later if observed(operation) == wrote and operation.last_ns > older[0].start_ns]
    if seen or len(makers[wrote or ""]) != 1:  # of several writes of one value, nobody knows which one was seen
        return Lost.MISSED
    final = [operation for operation in later if operation.phase == FINAL_PHASE]
    in_state = any(is_cas(operation) for operation in older) or (
        bool(final) and all(operation in older for operation in final)
    )
    return Lost.GONE if in_state else Lost.UNSEEN
