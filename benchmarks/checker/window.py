"""Proves that a history is wrong from a few of its events, whatever was before them.

The operations around a moment are taken alone. The state before them may be any. What was open then may have taken effect or
not, and so may what is open after them. If even so no order explains them, then no order explains the history.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from checker.models import Inconsistent
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from checker.models import Model
    from checker.models.base import State
    from harness.op import Operation

BEFORE: Final = 60  # events
AFTER: Final = 30
MOST: Final = 20_000  # configurations


def refuted(model: Model, states: Iterable[State], operations: Sequence[Operation], position: int) -> bool:
    """Says whether the events around an operation have no order from any state; false also if that is too much to try.

    Args:
        model: What the object does.
        states: All that it can be in.
        operations: All on one object.
        position: Of the operation around which to look.
    """
    middle = operations[position]
    last = (middle.complete_index or 0) + AFTER
    near = [op for op in operations if op.invoke_index <= last and _end(op) >= middle.invoke_index - BEFORE]
    starts = range(max(0, middle.invoke_index - BEFORE), middle.invoke_index + 1)
    first = min(starts, key=lambda event: sum(_open(op, event) for op in near))
    around = [op for op in near if _end(op) >= first]
    calls = [model.call(op) for op in around]
    known: dict[tuple[State, int], State] = {}

    def step(state: State, i: int) -> State:
        if (state, i) not in known:
            known[state, i] = model.step(state, calls[i])
        return known[state, i]

    # A configuration is a state and the operations that have taken effect and have not returned, as bits.
    now = {(state, 0) for state in states}
    for i, op in enumerate(around):
        if _open(op, first):
            now |= {(state, done | 1 << i) for state, done in now}
    for end, i in sorted((_end(op), i) for i, op in enumerate(around) if _end(op) <= last):
        now = _closed(step, now, [j for j, op in enumerate(around) if _open(op, end)])
        if len(now) > MOST:
            return False
        now = {(state, done ^ 1 << i) for state, done in now if done >> i & 1}
    return not now


def _end(op: Operation) -> float:
    return inf if op.type is OpType.INFO else op.complete_index or 0


def _open(op: Operation, event: float) -> bool:
    return op.invoke_index < event <= _end(op)


def _closed(
    step: Callable[[State, int], State], now: set[tuple[State, int]], begun: Sequence[int]
) -> set[tuple[State, int]]:
    """Returns the configurations, and those that more operations taking effect lead to."""
    found, left = set(now), list(now)
    while left and len(found) <= MOST:
        state, done = left.pop()
        for i in begun:
            if not done >> i & 1 and not isinstance(after := step(state, i), Inconsistent):
                then = (after, done | 1 << i)
                if then not in found:
                    found.add(then)
                    left.append(then)
    return found
