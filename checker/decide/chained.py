"""Looks for a linearization that follows a chain of steps, by the search of the kernel.

The operations of a step may come in any order that real time allows, but all of them come before those of the next step. If no
operation of a step ended before one of an earlier step began, these rules are an interval order: each step has a stretch of
time of its own, in which its operations begin and end in the order of their events. So the history with these intervals has a
linearization if and only if the real one has one that follows the chain.

An operation outside the chain begins after all of the chain that ended before it, and ends before all of the chain that began
after it. Between these, it keeps its order with others of its kind where possible. But it may come before another one although
both overlap with several steps; this is no interval order. So a contradiction is one for all orders, but a linearization has to
agree with real time. If it does not, `checker.search.placement` searches.

A dequeue of the chain that never returned is left to `checker.search.placement` too, because the kernel needs to know what
it took.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from checker.models.base import Inconsistent
from checker.models.opcodes import DEQUEUE_ANY, INFINITE
from checker.search.allowance import Allowance
from checker.search.placement import Placed
from checker.search.solving import positions, solve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker.models.base import Model
    from checker.search.encode import Encoded

_REASON_S: Final = 0.5  # of processor time


def follow(model: Model, encoded: Encoded, chain: Sequence[Sequence[int]], allowance: Allowance) -> Placed | None:
    """Looks for a linearization that follows a chain of steps; see `checker.search.placement.place`.

    Args:
        model: The model of the object.
        encoded: The history.
        chain: The steps, as positions in the history. No operation of a step ended before one of an earlier step began.
        allowance: The budget.

    Returns:
        None if the chain has no such intervals.
    """
    if not is_suited(encoded, chain):
        return None
    if allowance.is_over():
        return Placed(exhausted=False)
    starts, ends = _intervals(encoded, chain)
    problem = encoded.with_intervals(starts, ends)
    [outcome] = solve([problem], allowance.limits(), want_order=True)
    if outcome.verdict == "valid" and outcome.order is not None:
        order = list(positions(outcome.order))
        return Placed(order=order) if in_time(encoded, order) else None
    failed = outcome.op
    if outcome.verdict != "invalid" or failed is None:
        return Placed(exhausted=outcome.verdict == "invalid")
    done = sum(end < ends[failed] for end in ends)
    if not outcome.configs:
        [outcome] = solve([problem], Allowance.of(_REASON_S).limits("linear"))
    for config in outcome.configs if outcome.op == failed else ():
        message = _message(model, encoded, config.path, failed)
        if message is not None:
            return Placed(refused=failed, message=message, done=done)
    return Placed(refused=failed, done=done)


def is_suited(encoded: Encoded, chain: Sequence[Sequence[int]]) -> bool:
    """Returns whether `follow` applies to a chain."""
    return not any(encoded.ends[i] == INFINITE and encoded.codes[i].f == DEQUEUE_ANY for step in chain for i in step)


def in_time(encoded: Encoded, order: Iterable[int]) -> bool:
    """Returns whether an order agrees with real time."""
    latest = -1
    for i in order:
        if encoded.ends[i] < latest:
            return False
        latest = max(latest, encoded.starts[i])
    return True


def _intervals(encoded: Encoded, chain: Sequence[Sequence[int]]) -> tuple[array[int], array[int]]:
    """Returns an interval for each operation, so that those of a step come before those of the next one."""
    # The moments of the chain are 1, 2, ... Another event is in the gap after a moment, in the order of the history.
    real_starts, real_ends = encoded.starts, encoded.ends
    count = len(real_starts)
    starts, ends = array("q", bytes(8 * count)), array("q", bytes(8 * count))
    order: list[int] = []  # the events of the chain: twice the position, plus one for an end
    for step in chain:
        if len(step) == 1:
            order += (2 * step[0], 2 * step[0] + 1)
            continue
        # At the same index, a beginning comes first: the two operations overlap.
        events = [(2 * real_starts[i], 2 * i) for i in step] + [(2 * real_ends[i] + 1, 2 * i + 1) for i in step]
        events.sort()
        order += [event for _, event in events]
    if len(order) == 2 * count:
        for now, event in enumerate(order):
            (ends if event & 1 else starts)[event >> 1] = now
        return starts, ends
    return _with_others(encoded, order)


def _with_others(encoded: Encoded, order: Sequence[int]) -> tuple[array[int], array[int]]:
    """Adds the operations that are not in the chain; `order` has the events of the chain."""
    starts, ends = encoded.starts, encoded.ends
    moments = [(now, 0, event) for now, event in enumerate(order, 1)]
    by_end = sorted((ends[event >> 1], now) for now, _, event in moments if event & 1)
    by_start = sorted((starts[event >> 1], now) for now, _, event in moments if not event & 1)
    latest_end = list(accumulate((moment for _, moment in by_end), max))
    earliest_start = list(accumulate((moment for _, moment in reversed(by_start)), min))
    chained = {event >> 1 for event in order}
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if i not in chained:
            ended = bisect_left(by_end, (start,))
            moments.append((latest_end[ended - 1] if ended else 0, 1 + 2 * start, 2 * i))
            later = len(by_start) - bisect_left(by_start, (end + 1,))
            moments.append((earliest_start[later - 1] - 1 if later else len(order), 2 + 2 * end, 2 * i + 1))
    moments.sort()
    new_starts, new_ends = array("q", bytes(8 * len(starts))), array("q", [INFINITE]) * len(ends)
    for rank, (_, _, event) in enumerate(moments):
        i = event >> 1
        if not event & 1:
            new_starts[i] = rank
        elif i in chained or ends[i] != INFINITE:
            new_ends[i] = rank
    return new_starts, new_ends


def _message(model: Model, encoded: Encoded, path: Sequence[int], failed: int) -> str | None:
    """Returns why a model refuses an operation after a way to a state; None if it does not."""
    state = model.initial
    for i in path:
        state = model.step(state, model.call(encoded.operations[i]))
        if isinstance(state, Inconsistent):
            return None
    after = model.step(state, model.call(encoded.operations[failed]))
    return str(after.message) if isinstance(after, Inconsistent) else None
