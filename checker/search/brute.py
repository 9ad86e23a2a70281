"""Tries every order, to verify other algorithms. It shares no code with the kernel.

A configuration is a set of operations that have taken effect, and the resulting state. The next operation is any remaining one
that starts before every remaining one has ended. This is exponential in concurrency, so it is for small histories, or with a
bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checker.identity import identity
from checker.models.base import Inconsistent
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from checker.models.base import Model, State
    from harness.op import Operation


def linearizable(model: Model, operations: Sequence[Operation], *, bound: int | None = None) -> bool | None:
    """Returns whether the history has a linearization.

    Args:
        model: The model of the object.
        operations: All operations on one object.
        bound: The maximum number of steps.

    Returns:
        None if the bound was reached.
    """
    order = linearization(model, operations, bound=bound)
    return order if order is None else order is not False


def linearization(
    model: Model, operations: Sequence[Operation], *, bound: int | None = None
) -> list[Operation] | bool | None:
    """Returns a linearization; False if there is none; None if the bound was reached."""
    kept = [op for op in operations if op.type is not OpType.FAIL or op.f in model.keeps_failed]
    calls = [model.call(op) for op in kept]
    must = sum(1 << i for i, op in enumerate(kept) if op.type is not OpType.INFO)
    seen: set[tuple[int, Hashable]] = set()
    steps = 0
    # A stack of (operations that took effect, state, the order so far, linked backwards).
    stack: list[tuple[int, State, tuple[int, object] | None]] = [(0, model.initial, None)]
    while stack:
        done, state, path = stack.pop()
        if done & must == must:
            return [kept[i] for i in _unlinked(path)]
        left = [i for i in range(len(kept)) if not done >> i & 1]
        first_end = min(kept[i].complete_index or 0 for i in left if must >> i & 1)
        for i in left:
            if kept[i].invoke_index > first_end:
                continue
            steps += 1
            after = model.step(state, calls[i])
            key = (done | 1 << i, identity(after))
            if not isinstance(after, Inconsistent) and key not in seen:
                seen.add(key)
                stack.append((done | 1 << i, after, (i, path)))
        if bound is not None and steps > bound:
            return None
    return False


def _unlinked(path: object) -> list[int]:
    order: list[int] = []
    while isinstance(path, tuple):
        order.append(path[0])
        path = path[1]
    return order[::-1]
