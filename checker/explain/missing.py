"""Names the acknowledged operation that an answer lacks, if a loss is what a violation shows; for any model.

An answer *lacks* acknowledged operations if the counterexample becomes legal without them: as if they had never taken effect.
They must have ended before the decisive operation began, and have no answer of their own. A value that a later answer contains
was not lost but late, or out of order, so then nothing is named. Models written by users need nothing more than `step`.

Of built-in sets, lists, queues and counters, the meaning of a value is known. So there the last acknowledged operation of the
whole history that the answer lacks is named; the counterexample may do without it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from checker.identity import identity, is_collection, same
from checker.models.counters import Counter
from checker.models.queues import FifoQueue, UnorderedQueue
from checker.models.sequences import ListModel
from checker.models.sets import SetModel
from checker.search.brute import linearizable
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from checker.models.base import Model
    from harness.op import Operation, Value

MAX_SHOWN: Final = 12  # operations of a counterexample; more of them are not tried
MAX_STEPS: Final = 20_000  # of each trial
MAX_MEMBERS: Final = 2_000_000  # values in the answers of a history
_MAX_DEPTH: Final = 3  # of lists in an answer
_QUEUES: Final = (FifoQueue, UnorderedQueue)
_WHOLE: Final = (SetModel, ListModel, Counter, *_QUEUES)


def last_missing(
    model: Model, example: Sequence[Operation], culprit: Operation | None, operations: Sequence[Operation]
) -> Operation | None:
    """Returns the last acknowledged operation that an impossible answer lacks; None if the violation shows no loss.

    Args:
        model: The model of the object.
        example: The operations of the counterexample. They have no legal order.
        culprit: The operation that could not have happened, given the others.
        operations: All operations on this object. If their answers have more than `MAX_MEMBERS` values, nothing is named.
    """
    shown = {operation.invoke_index for operation in example}
    if culprit is None or len(example) > MAX_SHOWN or culprit.invoke_index not in shown:
        return None
    if culprit.type is not OpType.OK or not _observed(model, culprit):
        return None
    lacked = _lacked(model, example, culprit)
    answers = _answers(model, culprit, operations) if lacked else None
    if answers is None or not answers.isdisjoint(_value(model, operation) for operation in lacked):
        return None
    missing = [
        operation for operation in _covered(model, culprit, operations) if _value(model, operation) not in answers
    ]
    return max([*lacked, *missing], key=lambda operation: operation.last_ns)


def _covered(model: Model, culprit: Operation, operations: Sequence[Operation]) -> list[Operation]:
    """Returns the acknowledged operations that an answer must reflect: all before it, or those before an element's turn."""
    if not isinstance(model, _WHOLE) or culprit.value is not None:
        return []
    puts = _puts(model, operations, culprit)
    if culprit.result is None or not isinstance(model, _QUEUES):
        return puts
    turns = [
        operation for operation in operations if operation.f == "enqueue" and same(operation.value, culprit.result)
    ]
    if not isinstance(model, FifoQueue) or len(turns) != 1:
        return []
    return [put for put in puts if (put.complete_index or 0) < turns[0].invoke_index]


def _observed(model: Model, op: Operation) -> bool:
    """Returns whether a successful operation told something about the object; an answer of nil may tell that it is empty."""
    return op.value is None or _has_answer(op) or model.observes(model.call(op))


def _has_answer(op: Operation) -> bool:
    return op.result is not None and not same(op.result, op.value)


def _puts(model: Model, operations: Iterable[Operation], culprit: Operation) -> list[Operation]:
    """Returns the operations that only put something in, and were acknowledged before another one began; by their ends."""
    kind = isinstance(model, SetModel)
    puts = [
        operation
        for operation in operations
        if operation.type is OpType.OK
        and operation.f != culprit.f
        and operation.complete_index is not None
        and operation.complete_index < culprit.invoke_index
        and not _has_answer(operation)
        and not (kind and operation.f != "add")
        and not model.observes(model.call(operation))
    ]
    return sorted(puts, key=lambda operation: operation.last_ns)


def _lacked(model: Model, example: Sequence[Operation], culprit: Operation) -> list[Operation]:
    """Returns the operations without which the others have a legal order: one, or the last ones; or none."""
    puts = _puts(model, example, culprit)
    for lacked in chain(([put] for put in reversed(puts)), (puts[-count:] for count in range(2, len(puts) + 1))):
        without = {operation.invoke_index for operation in lacked}
        rest = [operation for operation in example if operation.invoke_index not in without]
        if linearizable(model, rest, bound=MAX_STEPS):
            return list(lacked)
    return []


def _answers(model: Model, culprit: Operation, operations: Sequence[Operation]) -> set[Hashable] | None:
    """Returns the values that are not missing; None if there are too many.

    A value is there if the answer itself, or one that came later, contains it; in a queue, if it ever came out; in a set, if it
    may have been removed.
    """
    if isinstance(model, Counter):
        return set()  # the amounts of adds are no values of their own
    ever = isinstance(model, _QUEUES)
    answers: set[Hashable] = set()
    members = 0
    for operation in operations:
        if operation.f == "remove" and isinstance(model, SetModel):
            answers |= {identity(operation.value)} if operation.type is not OpType.FAIL else set()
        elif operation.type is OpType.OK and (ever or (operation.complete_index or 0) > culprit.invoke_index):
            for value in _contained(operation):
                answers.add(value)
                members += 1
            if members > MAX_MEMBERS:
                return None
    return answers


def _contained(op: Operation) -> Iterator[Hashable]:
    """Yields the values that an answer contains."""
    if op.result is True and op.value is not None:
        yield identity(op.value)  # it is there
    elif op.result is not None and (op.value is None or _has_answer(op)):
        yield from _members(op.result, _MAX_DEPTH)


def _members(value: Value, depth: int) -> Iterator[Hashable]:
    yield identity(value)
    if depth and is_collection(value):
        for member in value:
            yield from _members(member, depth - 1)


def _value(model: Model, op: Operation) -> Hashable:
    return (model.name, op.invoke_index) if op.value is None else identity(op.value)
