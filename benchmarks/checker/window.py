"""Proves that a history is invalid from a few of its events, for any events before them.

It takes only the operations around one moment. The state before them may be any. Operations that are open at either end may or
may not have taken effect. If no order explains them even so, no order explains the history.
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
    """Returns whether the events around an operation have no order from any state; False also if the search is too large.

    Args:
        model: The model.
        states: All of its states.
        operations: The operations on one object.
        position: The place of the operation.
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

    # A configuration is a state, and a bit set of the operations that have taken effect and have not returned.
    now = {(state, 0) for state in states}
    for i, op in enumerate(around):
        if _open(op, first):
            now |= {(state, done | 1 << i) for state, done in now}
            if len(now) > MOST:
                return False
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
    """Returns the configurations, and all that follow when more operations take effect."""
    closed, left = set(now), list(now)
    while left and len(closed) <= MOST:
        state, done = left.pop()
        for i in begun:
            if not done >> i & 1 and not isinstance(after := step(state, i), Inconsistent):
                then = (after, done | 1 << i)
                if then not in closed:
                    closed.add(then)
                    left.append(then)
    return closed
