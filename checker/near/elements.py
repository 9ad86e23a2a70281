"""Decides sets, one element at a time.

Add, remove and contains of one element are independent of the other elements. So a set is one object for each element, which is
present or absent. A history is linearizable exactly if it is for each object alone (locality; Herlihy and Wing,
*Linearizability: a correctness condition for concurrent objects*, ACM TOPLAS 12(3), 1990). An element has two states and four
classes of operations. Within a class, operations that end first go first. So the search of one element visits at most as many
states as the product of the numbers of open operations in each class. For a fixed number of processes the time is linear.

A read of the whole set connects the elements. It implies a contains for each of them, so a history that is invalid for one
element is invalid. But the first such return is not always the first one of the whole history. And if all elements are valid,
the search decides.

The first return without a linearization is the earliest one of any element. The orders of the elements are merged by the
moments at which operations take effect: for each element, the maximum start so far.
"""

from __future__ import annotations

import time
from array import array
from typing import TYPE_CHECKING, Final

from checker._kernel import Problem
from checker.models.opcodes import CONTAINS, INFINITE, READ_SET
from checker.search.solving import outcome, positions, solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker._kernel import Outcome
    from checker.search.encode import Events
    from checker.search.solving import Limits

ANALYZER: Final = "elements"
_MOST_CELLS: Final = 1_000_000  # reads of the whole set times elements


def by_element(events: Events, limits: Limits, *, want_order: bool) -> Outcome | None:
    """Returns the outcome of a history of a set; None if reads of the whole set connect the elements and each is valid.

    Args:
        events: The history.
        limits: The limits of the check.
        want_order: Whether to return the order of a valid history.
    """
    began_s = time.perf_counter()
    groups: dict[int, list[int]] = {element: [] for element in events.initial}
    reads: list[int] = []
    for i, member in enumerate(events.members):
        code = events.classes[member]
        if code.f == READ_SET:
            reads.append(i)
            for element in code.items:
                groups.setdefault(element, [])
        else:
            groups.setdefault(code.a, []).append(i)
    if len(reads) * len(groups) > _MOST_CELLS:
        return None
    whole = _Reads(events, reads)
    problems = [whole.problem(element, group) for element, group in groups.items()]
    for group in groups.values():
        group.extend(reads)
    outcomes = solve(problems, limits, want_order=want_order)
    steps = sum(result.steps for result in outcomes)
    decided = list(zip(groups.values(), outcomes, strict=True))
    failed = [
        (group[result.op], group, result)
        for group, result in decided
        if result.verdict == "invalid" and result.op is not None
    ]
    if failed:
        op, group, result = min(failed, key=lambda entry: (events.ends[entry[0]], entry[0]))
        end = events.ends[op]
        core = [group[i] for i in result.core] or [i for i in group if events.starts[i] <= end]
        seconds = time.perf_counter() - began_s
        return outcome("invalid", ANALYZER, op=op, kind=result.kind, core=core, steps=steps, seconds=seconds)
    if reads and any(result.verdict != "valid" for result in outcomes):
        return None
    unknown = next(((group, result) for group, result in decided if result.verdict != "valid"), None)
    seconds = time.perf_counter() - began_s
    if unknown is not None:
        group, result = unknown
        reached = None if result.op is None else group[result.op]
        return outcome(
            result.verdict,
            result.analyzer,
            cause=result.cause,
            op=reached,
            unsuited=result.unsuited,
            steps=steps,
            seconds=seconds,
            counts=result.counts,
        )
    if reads:
        return None
    order = _merged(events, decided) if want_order else None
    return outcome("valid", ANALYZER, order=order, steps=steps, seconds=seconds)


def is_connected(events: Events) -> bool:
    """Returns whether reads of a whole set connect its elements."""
    return any(code.f == READ_SET for code in events.classes)


class _Reads:
    """The reads of the whole set; each observes for each element whether it is present."""

    def __init__(self, events: Events, reads: Sequence[int]) -> None:
        contents = {index: frozenset(code.items) for index, code in enumerate(events.classes) if code.f == READ_SET}
        self._held = [contents[events.members[i]] for i in reads]
        self._starts = array("q", [events.starts[i] for i in reads])
        self._ends = array("q", [events.ends[i] for i in reads])
        self._events = events

    def problem(self, element: int, group: Sequence[int]) -> Problem:
        """Returns the history of one element for the kernel: its own operations, then the reads as contains."""
        events = self._events
        codes = [events.classes[events.members[i]] for i in group]
        return Problem(
            events.family,
            bytes(code.f for code in codes) + bytes([CONTAINS]) * len(self._held),
            array("q", [element]) * (len(group) + len(self._held)),
            array("q", [*(code.b for code in codes), *(element in members for members in self._held)]),
            array("q", [events.starts[i] for i in group]) + self._starts,
            array("q", [events.ends[i] for i in group]) + self._ends,
            initial=[element] if element in events.initial else [],
        )


def _merged(events: Events, decided: Sequence[tuple[Sequence[int], Outcome]]) -> list[int]:
    """Returns the merged order of all elements, by the moments at which operations take effect."""
    moments: list[tuple[int, int]] = []
    for group, result in decided:
        assert result.order is not None  # noqa: S101 - `want_order` was set
        moment = -INFINITE
        for i in positions(result.order):
            moment = max(moment, events.starts[group[i]])
            moments.append((moment, group[i]))
    return [i for _, i in sorted(moments, key=lambda entry: entry[0])]
