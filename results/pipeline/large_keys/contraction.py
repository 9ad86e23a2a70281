"""Joins values that compare-and-sets link into chains, in parts, with arrays.

A compare-and-set that took effect shows which value the register held right before its own value. So the values of a register
form chains, each from a plain write or from the initial value on. In every linearization, the operations of a chain stand
together: the chain is a block, as a single value is for zones. The order within the block is forced. It is possible iff no
operation ends before an operation of an earlier value starts. A stretch of a chain reduces to a few numbers that contain all of
this. So stretches can be joined in any order, wherever both are available. Only stretches whose neighbours are elsewhere go on.

The rule: joins in parts give the same result as one join of all pieces, and they hide no contradiction.

- A value has a count of the compare-and-sets that expect it (`waits`). It is joined to the next value only when all of them are
  accounted for. So two that took effect on the same value are found, however far apart they are.
- A compare-and-set that never returned counts only if its value was observed, by a read or by another one that counts. It is
  `alive` as soon as there is such an observation. It is accounted for as one without effect only when all operations that could
  observe its value are.
- Values that depend on each other without a beginning form a circle, which is found when it is complete.

A piece is a stretch of a chain: a row of `COLUMNS`, all 64-bit integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from checker.formats.columns import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]
    Pieces = Mapping[str, Integers]

# `address`: the number of the run and key. `write_start`: the start of the write of the first value, -1 for the initial value;
# it defines the order of pieces in time. `previous_value`: the value that the first compare-and-set expects; without one, a
# constant below. `first_value`, `last_value`: the first and the last value of the piece. `waits`: how many operations that
# expect the last value are not accounted for. `alive`: whether the piece certainly took effect. `min_end`: the minimum end of
# its operations, and `min_end_value` the value of that operation. `max_start`: the maximum start, likewise.
COLUMNS: Final = (
    "address",
    "write_start",
    "previous_value",
    "first_value",
    "last_value",
    "waits",
    "alive",
    "min_end",
    "min_end_value",
    "max_start",
    "max_start_value",
)
# Optional columns for two questions: from which return on is something observed that began after a certain index? `since` is
# the minimum such return so far. `opened` is whether a compare-and-set of the piece began after the index, so that all later
# values show it.
MARKS: Final = ("since_0", "opened_0", "since_1", "opened_1")

# The values of `previous_value` for a piece that does not begin with a compare-and-set.
ROOTED: Final = NEVER  # it begins with a write, or the initial value
UNWRITTEN: Final = NEVER - 1  # it begins with a value that nobody wrote
LOOSE: Final = NEVER - 2  # it begins with a contradiction that is in the results
_LEAST_WORD: Final = LOOSE

# The `outcome` of a row. Of several contradictions, the kernel reports the one that comes first here.
OPEN: Final = 0  # a piece whose neighbours are not here yet
BLOCK: Final = 1  # a complete chain
# A compare-and-set took effect on a value that nobody wrote. An operation of `min_end_value` shows it at the return
# `min_end`.
PHANTOM: Final = 2
# Two compare-and-sets took effect on one value. Operations of `max_start_value` and of `min_end_value` show it at the
# return `min_end`. `max_start` is the first return that shows the former.
LOST: Final = 3
CIRCLE: Final = 4  # the chain has no first value; an operation of `min_end_value` shows it at the return `min_end`
# An operation of `min_end_value` ends before one of the earlier value `max_start_value` starts.
ORDER: Final = 5
UNSOLVED: Final = 6  # the key has no result
CONTRADICTIONS: Final = (PHANTOM, LOST, CIRCLE, ORDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contracted:
    """The result of a join.

    Attributes:
        left: The pieces that wait for others.
        done: Rows with an `outcome`: blocks and contradictions.
    """

    left: Pieces
    done: Pieces


def contract(pieces: Pieces, *, whole: bool) -> Contracted:
    """Joins pieces as far as possible.

    Args:
        pieces: Pieces of any keys; all values of a key's pieces are different.
        whole: Whether these are all pieces of their keys.
    """
    work = _Work(pieces, whole=whole)
    work.settle()
    work.link()
    return work.joined()


class _Work:
    """Pieces by their positions, and the state of the join."""

    def __init__(self, pieces: Pieces, *, whole: bool) -> None:
        self._whole = whole
        self._pieces = pieces
        self._address = pieces["address"]
        self._previous = pieces["previous_value"].copy()
        self._alive = pieces["alive"].astype(bool)
        self._rest = pieces["waits"].copy()
        self._parent = _owners(self._address, pieces["last_value"], self._previous)
        self._gone = np.zeros(len(self._address), bool)
        self._before = np.full(len(self._address), -1)
        self._contradictions: list[dict[str, Integers]] = []

    def settle(self) -> None:
        """Determines which pieces took effect, and removes those that did not."""
        alive, parent, rest = self._alive, self._parent, self._rest
        rising = np.flatnonzero(alive)
        while rising.size:
            above = parent[rising]
            above = above[above >= 0]
            rising = np.unique(above[~alive[above]])
            alive[rising] = True
        dead = np.zeros_like(alive)
        falling = np.flatnonzero(~alive if self._whole else ~alive & (rest == 0))
        while falling.size:
            dead[falling] = True
            above = parent[falling]
            above = above[above >= 0]
            np.subtract.at(rest, above, 1)
            above = np.unique(above)
            falling = above[~alive[above] & ~dead[above] & (rest[above] == 0)]
        self._gone = dead & ((parent >= 0) | self._whole)

    def link(self) -> None:
        """Finds the predecessor of each piece; reports pieces that cannot have one."""
        parent, ends = self._parent, self._pieces["min_end"]
        kids = np.flatnonzero(self._alive & (parent >= 0))
        kids = kids[np.lexsort((ends[kids], parent[kids]))]
        above = parent[kids]
        second = np.zeros(len(kids), bool)
        second[1:] = above[1:] == above[:-1]
        lost = np.flatnonzero(second & ~np.roll(second, 1))
        nowhere = self._previous[above] == UNWRITTEN
        phantom = np.flatnonzero(nowhere & ~second)
        if len(lost) or len(phantom):
            first_shown = self._first_shown()
            one, two = kids[lost - 1], kids[lost]
            shown = np.maximum(ends[first_shown[one]], ends[first_shown[two]])
            self._report(LOST, two, min_end=shown, **self._values(first_shown[one], first_shown[two]))
            seen = first_shown[kids[phantom]]
            self._report(PHANTOM, kids[phantom], min_end=ends[seen], **self._values(seen, seen))
        loose = second | nowhere
        self._previous[kids[loose]] = LOOSE
        np.subtract.at(self._rest, above[loose], 1)
        kids, above = kids[~loose], above[~loose]
        sure = (self._rest[above] == 1) | self._whole
        self._before[kids[sure]] = above[sure]
        self._rest[above[sure]] = 0

    def _first_shown(self) -> Integers:
        """Returns for each piece the first to end among itself and the pieces that depend on it; its end shows the piece."""
        order = np.argsort(self._pieces["min_end"], kind="stable")
        rank, above = _inverse(order), np.where(self._alive, self._parent, -1)
        for _ in range(len(rank).bit_length() + 1):
            below = np.flatnonzero(above >= 0)
            if not len(below):
                break
            np.minimum.at(rank, above[below], rank[below].copy())
            above = np.where(above >= 0, above[above], -1)
        return order[rank]

    def _values(self, one: Integers, two: Integers) -> Mapping[str, Integers]:
        values = self._pieces["min_end_value"]
        return {
            "max_start": self._pieces["min_end"][one],
            "max_start_value": values[one],
            "min_end_value": values[two],
        }

    def joined(self) -> Contracted:
        """Joins each piece with its predecessors."""
        top, depth, circling = _ranked(self._before)
        self._report_circles(np.flatnonzero(circling))
        self._gone |= circling
        kept = np.flatnonzero(~self._gone)
        order = kept[np.lexsort((depth[kept], top[kept]))]
        starting = np.ones(len(order), bool)
        starting[1:] = top[order][1:] != top[order][:-1]
        self._report_order(order, starting)
        whole = self._reduced(order, np.flatnonzero(starting))
        closed = (whole["previous_value"] >= _LEAST_WORD) & ((whole["waits"] == 0) | self._whole)
        blocks = closed & (whole["previous_value"] == ROOTED)
        done = [_rows(BLOCK, _taken(whole, blocks)), *self._contradictions]
        left = ~closed
        if self._whole:
            done.append(_rows(UNSOLVED, _taken(whole, left)))
            left = np.zeros_like(left)
        names = done[0].keys()
        return Contracted(
            left=_taken(whole, left), done={name: np.concatenate([part[name] for part in done]) for name in names}
        )

    def _report(self, outcome: int, places: Integers, **others: Integers) -> None:
        if len(places):
            self._contradictions.append(_rows(outcome, {**_taken(self._pieces, places), **others}))

    def _report_circles(self, places: Integers) -> None:
        """Reports each circle, by the first return that shows it."""
        if not len(places):
            return
        smallest, above = np.arange(len(self._address)), self._before.copy()
        above[above < 0] = np.flatnonzero(above < 0)
        for _ in range(len(places).bit_length() + 1):
            smallest, above = np.minimum(smallest, smallest[above]), above[above]
        order = places[np.lexsort((self._pieces["min_end"][places], smallest[places]))]
        self._report(CIRCLE, order[np.unique(smallest[order], return_index=True)[1]])

    def _report_order(self, order: Integers, starting: Flags) -> None:
        """Reports for each key an operation that ends before one of an earlier value starts, where the latter starts first."""
        starts, ends = self._pieces["max_start"], self._pieces["min_end"]
        by_start = np.argsort(starts[order], kind="stable")
        stretch = np.cumsum(starting) * len(order)
        running = np.maximum.accumulate(_inverse(by_start) + stretch) - stretch
        before = np.full(len(order), -1)
        before[1:] = order[by_start[running[:-1]]]
        bad = np.flatnonzero(~starting & (starts[before] > ends[order]))
        if not len(bad):
            return
        late, early = order[bad], before[bad]
        first = np.lexsort((bad, starts[early], self._address[late]))
        late, early = late[first], early[first]
        each = np.unique(self._address[late], return_index=True)[1]
        late, early = late[each], early[each]
        values = self._pieces["max_start_value"]
        self._report(ORDER, late, max_start=starts[early], max_start_value=values[early])

    def _reduced(self, order: Integers, heads: Integers) -> Pieces:
        """Returns a piece for each stretch of pieces that begins at one of `heads`."""
        pieces = self._pieces
        if not len(order):
            return _taken(pieces, order)
        tops, lasts = order[heads], order[np.append(heads[1:], len(order)) - 1]
        by_start, by_end = (np.argsort(pieces[name][order], kind="stable") for name in ("max_start", "min_end"))
        latest = order[by_start[np.maximum.reduceat(_inverse(by_start), heads)]]
        soonest = order[by_end[np.minimum.reduceat(_inverse(by_end), heads)]]
        whole = {
            "address": self._address[tops],
            "write_start": pieces["write_start"][tops],
            "previous_value": self._previous[tops],
            "first_value": pieces["first_value"][tops],
            "last_value": pieces["last_value"][lasts],
            "waits": self._rest[lasts],
            "alive": self._alive[tops].astype(np.int64),
            "min_end": pieces["min_end"][soonest],
            "min_end_value": pieces["min_end_value"][soonest],
            "max_start": pieces["max_start"][latest],
            "max_start_value": pieces["max_start_value"][latest],
        }
        lengths = np.diff(np.append(heads, len(order)))
        for mark in range(2) if MARKS[0] in pieces else ():
            since, opened = pieces[f"since_{mark}"][order], pieces[f"opened_{mark}"][order]
            count = np.cumsum(opened) - opened
            follows = count > np.repeat(count[heads], lengths)
            shown = np.where(follows, np.minimum(since, pieces["min_end"][order]), since)
            whole[f"since_{mark}"] = np.minimum.reduceat(shown, heads)
            whole[f"opened_{mark}"] = np.maximum.reduceat(opened, heads)
        return whole


def _owners(address: Integers, last_value: Integers, previous_value: Integers) -> Integers:
    """Returns for each piece the piece whose last value is its previous value; -1 for none."""
    size = len(address)
    if not size:
        return np.zeros(0, np.int64)
    values, ids = np.unique(np.concatenate([last_value, previous_value]), return_inverse=True)
    ids = ids + np.tile(np.unique(address, return_inverse=True)[1], 2) * len(values)
    last, previous = ids[:size], ids[size:]
    order = np.argsort(last, kind="stable")
    found = order[np.minimum(np.searchsorted(last[order], previous), size - 1)]
    return np.where(last[found] == previous, found, -1)


def _ranked(before: Integers) -> tuple[Integers, Integers, Flags]:
    """Returns for each piece its first ancestor, the distance to it, and whether the piece is in a circle."""
    top = np.where(before >= 0, before, np.arange(len(before)))
    depth = (before >= 0).astype(np.int64)
    for _ in range(len(before).bit_length()):
        above = top[top]
        if np.array_equal(above, top):
            break
        depth += depth[top]
        top = above
    return top, depth, before[top] >= 0


def _inverse(order: Integers) -> Integers:
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def _taken(pieces: Pieces, which: NDArray[Any]) -> dict[str, Integers]:
    return {name: column[which] for name, column in pieces.items()}


def _rows(outcome: int, rows: Mapping[str, Integers]) -> dict[str, Integers]:
    return {"outcome": np.full(len(rows["address"]), outcome, np.int64), **rows}
