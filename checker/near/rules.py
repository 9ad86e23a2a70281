"""Rules for families whose near-linear analyzer does not apply: they decide without a search over the states of the object.

They apply if no necessary condition is violated (`checker.near.necessary`).

Two rules take little more than a sort:

- `copies`: unordered queues, if no dequeue found the queue empty. Each value is a count. An enqueue may take effect at its
  start, and a dequeue at its return: this makes no other operation impossible. So there is a linearization exactly if, at each
  return, no more copies of a value have been taken than enqueues of it have begun. `checker.near.necessary` has checked this.
- `elements`: sets, element by element. See `checker.near.elements`.

Two rules walk through the history, for questions that are NP-complete in general; the number of their states is linear in its
length:

- `pairs`: FIFO queues. See `checker.near.pairing`.
- `sums`: counters whose increments are all positive, or all negative. See `checker.near.sums`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from checker.models.opcodes import DEQUEUE, DEQUEUE_EMPTY, ENQUEUE, INFINITE
from checker.near.elements import by_element
from checker.near.necessary import SEARCH
from checker.near.pairing import Queue
from checker.near.sums import Counts, rises
from checker.near.walking import MOST_STATES, Budget
from checker.search.allowance import Allowance
from checker.search.solving import outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker._kernel import Outcome
    from checker.search.encode import Events
    from checker.search.solving import Limits

PAIRS: Final = "pairs"
SUMS: Final = "sums"
COPIES: Final = "copies"
_SHRINK_S: Final = 1.0  # of processor time
_STATE_BYTES: Final = 500


def by_rule(events: Events, limits: Limits, *, want_order: bool) -> Outcome | None:
    """Returns the outcome of a history by a rule that takes little more than a sort; None if no rule applies.

    Args:
        events: The history, of a built-in model. It violates no necessary condition.
        limits: The limits of the check.
        want_order: Whether to return the order of a valid history.
    """
    if events.family == "unordered-queue":
        return _copies(events, want_order=want_order)
    return by_element(events, limits, want_order=want_order) if events.family == "set" else None


def has_walk(events: Events) -> bool:
    """Returns whether a rule walks through a history of a built-in model."""
    return events.family == "fifo-queue" or (events.family == "counter" and rises(events))


def by_walk(events: Events, limits: Limits, *, want_order: bool) -> Outcome | None:
    """Returns the outcome of a history by the rule that walks through it; None if the limits are too low.

    Args:
        events: The history, for which `has_walk` is true.
        limits: The limits of the check.
        want_order: Whether to return the order of a valid history.
    """
    kind, analyzer = (Queue, PAIRS) if events.family == "fifo-queue" else (Counts, SUMS)
    return _walk(events, limits, kind, analyzer, want_order=want_order)


def _copies(events: Events, *, want_order: bool) -> Outcome | None:
    if any(code.f == DEQUEUE_EMPTY for code in events.classes):
        return None
    began_s = time.perf_counter()
    moments: list[tuple[int, bool, int]] = []
    for i, (member, start, end) in enumerate(zip(events.members, events.starts, events.ends, strict=True)):
        f = events.classes[member].f
        if f == ENQUEUE:
            moments.append((start, False, i))
        elif f == DEQUEUE and end != INFINITE:
            moments.append((end, True, i))
    order = [i for *_, i in sorted(moments)] if want_order else None
    return outcome("valid", COPIES, order=order, seconds=time.perf_counter() - began_s)


def _walk(
    events: Events, limits: Limits, kind: type[Queue | Counts], analyzer: str, *, want_order: bool
) -> Outcome | None:
    """Returns the outcome of a walk through a history."""
    began_s = time.perf_counter()
    budget = Budget(
        allowance=Allowance.within(limits),
        most_states=MOST_STATES
        if limits.memory_limit is None
        else min(MOST_STATES, limits.memory_limit // _STATE_BYTES),
    )
    whole = range(len(events.members))
    result = kind(events, whole).search(budget, want_order=want_order)
    if result.valid is None:
        return None
    if result.valid:
        seconds = time.perf_counter() - began_s
        return outcome("valid", analyzer, order=result.order, steps=result.steps, seconds=seconds)

    def fails(kept: Sequence[int], until: tuple[int, int], budget: Budget) -> bool | None:
        valid = kind(events, kept, until).search(budget).valid
        return None if valid is None else not valid

    until = _first(events, result.stuck, lambda end: fails(whole, end, budget))
    if until is None:
        return None
    core: list[int] = []
    if kind is Queue:
        brief = replace(budget, allowance=budget.allowance.most(_SHRINK_S))
        core = _shrunk(events, until, lambda kept: not brief.allowance.is_over() and fails(kept, until, brief) is True)
    seconds = time.perf_counter() - began_s
    return outcome("invalid", analyzer, op=until[1], kind=SEARCH, core=core, steps=result.steps, seconds=seconds)


def _first(events: Events, guess: int, fails: Callable[[tuple[int, int]], bool | None]) -> tuple[int, int] | None:
    """Returns the end and the position of the first return at which a history fails; None if a limit comes first.

    Args:
        events: The history, which fails.
        guess: A moment near that return.
        fails: Returns whether the history fails at a return; None if a limit comes first.
    """
    ends = sorted((end, i) for i, end in enumerate(events.ends) if end != INFINITE)
    low, high = 0, len(ends) - 1  # the range of possible places
    probe = sum(end <= guess for end, _ in ends) - 1
    width = 1
    while low < high:
        probe = min(max(probe, low), high - 1)
        failed = fails(ends[probe])
        if failed is None:
            return None
        # The steps away from the guess grow; when the range is small, they halve it.
        if failed:
            high, probe = probe, max(probe - width, (low + probe) // 2)
        else:
            low, probe = probe + 1, min(probe + width, (probe + 1 + high) // 2)
        width *= 2
    return ends[low]


def _shrunk(events: Events, until: tuple[int, int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Returns operations that also fail at a return, with as few values as possible.

    All operations of a value may be left out, and so may an empty answer: the rest of a linearization stays one. Crashed
    dequeues stay.
    """
    kinds: dict[int | None, list[int]] = {}
    kept: list[int] = []
    for i, (member, start) in enumerate(zip(events.members, events.starts, strict=True)):
        code = events.classes[member]
        if start > until[0]:
            continue
        if code.f in {ENQUEUE, DEQUEUE}:
            kinds.setdefault(code.a, []).append(i)
        elif code.f == DEQUEUE_EMPTY:
            kinds.setdefault(None, []).append(i)
        else:
            kept.append(i)
    left = list(kinds)
    size = len(left) // 2
    while size:
        first = 0
        while first < len(left):
            rest = left[:first] + left[first + size :]
            if rest and fails(sorted([*kept, *(i for kind in rest for i in kinds[kind])])):
                left = rest
            else:
                first += size
        size //= 2
    return sorted([*kept, *(i for kind in left for i in kinds[kind])])
