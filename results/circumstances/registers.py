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
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        value = written(operation)
        if value is not None:
            found.setdefault(value, []).append(operation)
    return found


def is_older(value: str, than: Operation, makers: Mapping[str, list[Operation]]) -> bool:
    """Returns whether a value can only be from before a write: the initial one, or of writes that had all ended before it."""
    made = makers.get(value, [])
    if not made:
        return value == repr(None)
    return all(each.type is OpType.OK and each.last_ns < than.start_ns for each in made)


def missed_of(
    culprit: Operation, saw: str, operations: Sequence[Operation], makers: Mapping[str, list[Operation]]
) -> Operation | None:
    """Returns the last write that was acknowledged before an operation began, and that it provably did not see."""
    acknowledged = [
        each
        for each in operations
        if each.type is OpType.OK and written(each) not in {None, saw} and each.last_ns < culprit.start_ns
    ]
    acknowledged.sort(key=lambda each: each.last_ns, reverse=True)
    return next((each for each in acknowledged[:MAX_TRIED] if is_older(saw, each, makers)), None)


def newer_of(
    culprit: Operation, saw: str, operations: Sequence[Operation], makers: Mapping[str, list[Operation]]
) -> Operation | None:
    """Returns the last operation that ended before another one began, and observed a value that is provably newer."""
    before = [each for each in operations if observed(each) not in {None, saw} and each.last_ns < culprit.start_ns]
    before.sort(key=lambda each: each.last_ns, reverse=True)
    for each in before[:MAX_TRIED]:
        made = makers.get(observed(each) or "", [])
        if len(made) == 1 and is_older(saw, made[0], makers):
            return each
    return None


def lost_of(missed: Operation, operations: Sequence[Operation], makers: Mapping[str, list[Operation]]) -> Lost:
    """Returns how much is lost of a write that an operation missed; see the module."""
    wrote = written(missed)
    later = [each for each in operations if each.start_ns > missed.last_ns and observed(each) is not None]
    older = [each for each in later if is_older(observed(each) or "", missed, makers)]
    seen = [each for each in later if observed(each) == wrote and each.last_ns > older[0].start_ns]
    if seen or len(makers[wrote or ""]) != 1:  # of several writes of one value, nobody knows which one was seen
        return Lost.MISSED
    final = [each for each in later if each.phase == FINAL_PHASE]
    in_state = any(is_cas(each) for each in older) or (bool(final) and all(each in older for each in final))
    return Lost.GONE if in_state else Lost.UNSEEN
