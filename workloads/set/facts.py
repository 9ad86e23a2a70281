"""Facts about each element of a set, as arrays with one entry for each element.

Reads have numbers in the order of their starts. An element is *known* from the first event that proves that it is in the set:
the completion of a successful add of it, or of a read that returned it. A read *misses* an element if it does not return the
element, although the element was known before the read began.

The time is linear in the number of operations plus the number of returned elements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import FAIL, NEVER, OK

if TYPE_CHECKING:
    import numpy.typing as npt

    from checker.formats.columns import Columns, Int64s
    from workloads.set.elements import Elements

    Bools = npt.NDArray[np.bool_]

NONE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about each element, and about the reads.

    Attributes:
        reads: The rows of the reads, in the order of their starts.
        read_start: The index of each read's invoke.
        members: The distinct elements that each read returned.
        add: The row of the element's first add that may have happened; `NONE` if there is none.
        add_start: The index of its invoke; `NEVER` if there is none.
        failed: Whether there are adds of it, and all certainly did not happen.
        added: The row of its first acknowledged add; `NONE` if there is none.
        acknowledged: Whether an add of it succeeded.
        known: The index of the event from which the element is known; `NEVER` if there is none.
        known_row: The row of the operation that ends with this event; `NONE` if there is none.
        first_present: The first read that returned it; `NONE` if there is none.
        last_present: The last read that returned it; `NONE` if there is none.
        last_absent: The last read that did not return it; `NONE` if there is none.
        again: The first read from which on all reads returned it; `NONE` if the last read did not.
        first_missed: The first read that missed it; `NONE` if there is none.
        too_early: The first read that returned it and ended before any add of it began that may have happened; `NONE` if there
            is none.
        twice: Each read with elements that it returned more than once, in order.
    """

    reads: Int64s
    read_start: Int64s
    members: list[Int64s]
    add: Int64s
    add_start: Int64s
    failed: Bools
    added: Int64s
    acknowledged: Bools
    known: Int64s
    known_row: Int64s
    first_present: Int64s
    last_present: Int64s
    last_absent: Int64s
    again: Int64s
    first_missed: Int64s
    too_early: Int64s
    twice: list[tuple[int, Int64s]] = field(default_factory=list)


def facts_of(history: Columns, adds: Int64s, reads: Int64s, elements: Elements) -> Facts:
    """Gathers the facts.

    Args:
        history: The operations of one object.
        adds: The rows of all adds.
        reads: The rows of the successful reads, in the order of their starts.
        elements: The elements of the same rows.
    """
    count, all_reads = len(elements), len(reads)
    add, add_start, failed = _tried(history, adds, elements)
    known, known_row = _acknowledged(history, adds, elements)
    added, acknowledged = known_row.copy(), known < NEVER
    first_present, last_present, again = (np.full(count, NONE) for _ in range(3))
    too_early = np.full(count, NONE)
    members, twice = [], []
    for read, (row, listed) in enumerate(zip(reads.tolist(), elements.of_reads, strict=True)):
        distinct = listed
        more = np.concatenate(([False], listed[1:] == listed[:-1])) if len(listed) else np.zeros(0, np.bool_)
        if more.any():
            distinct = listed[~more]
            twice.append((read, np.unique(listed[more])))
        members.append(distinct)
        end = int(history.end[row])
        sooner = distinct[known[distinct] > end]
        known[sooner], known_row[sooner] = end, row
        again[distinct[last_present[distinct] != read - 1]] = read
        if read == 0:
            again[distinct] = 0
        first_present[distinct[first_present[distinct] == NONE]] = read
        last_present[distinct] = read
        early = distinct[add_start[distinct] > end]
        too_early[early[too_early[early] == NONE]] = read
    present = last_present == all_reads - 1
    last_absent = np.where(present & (last_present != NONE), again - 1, all_reads - 1)
    read_start = history.start[reads]
    return Facts(
        reads=reads,
        read_start=read_start,
        members=members,
        add=add,
        add_start=add_start,
        failed=failed,
        added=added,
        acknowledged=acknowledged,
        known=known,
        known_row=known_row,
        first_present=first_present,
        last_present=last_present,
        last_absent=last_absent,
        again=np.where(present, again, NONE),
        first_missed=_first_missed(known, read_start, members),
        too_early=too_early,
        twice=twice,
    )


def _tried(history: Columns, adds: Int64s, elements: Elements) -> tuple[Int64s, Int64s, Bools]:
    """Returns the first add of each element that may have happened, its start, and which elements have only failed adds."""
    may = history.type[adds] != FAIL
    rows, numbers = adds[may], elements.of_adds[may]
    add_start = np.full(len(elements), NEVER)
    add_start[numbers[::-1]] = history.start[rows[::-1]]  # the first wins
    add = np.full(len(elements), NONE)
    add[numbers[::-1]] = rows[::-1]
    failed = np.zeros(len(elements), np.bool_)
    failed[elements.of_adds[~may]] = True
    return add, add_start, failed & (add == NONE)


def _acknowledged(history: Columns, adds: Int64s, elements: Elements) -> tuple[Int64s, Int64s]:
    """Returns, for each element, the index of the first completion of a successful add, and the add's row."""
    sure = history.type[adds] == OK
    rows, numbers = adds[sure], elements.of_adds[sure]
    ends = history.end[rows]
    known = np.full(len(elements), NEVER)
    np.minimum.at(known, numbers, ends)
    known_row = np.full(len(elements), NONE)
    first = known[numbers] == ends
    known_row[numbers[first]] = rows[first]
    return known, known_row


def _first_missed(known: Int64s, read_start: Int64s, members: list[Int64s]) -> Int64s:
    """Returns, for each element, the first read that misses it; `NONE` if there is none."""
    # The next read to check: all earlier reads that began after the element was known have returned it.
    due = np.searchsorted(read_start, known, side="right")
    for read, returned in enumerate(members):
        due[returned[due[returned] == read]] += 1
    return np.where(due < len(members), due, NONE)
