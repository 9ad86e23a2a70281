"""Finds a small part of a failed history of a user's own model that tells the same as the whole history.

If an operation that took effect is left out, the object can come into states that the whole history never reaches. The rest
may still be illegal, but for a wrong reason. So a part is *faithful* if all its final states (`checker.search.reach`) are
also final states of the whole history. Then the model refuses the failing operation of the part for a reason that is true in
the whole.

The first candidates are ways to a final state that a search has found. Then a part grows from the failing operation: first by
operations that ended before it began, the nearest first, then by all others. `checker.search.delta` makes it smaller.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from checker.search.delta import smaller
from checker.search.reach import reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker.search.allowance import Allowance
    from checker.search.encode import Encoded
    from checker.search.reach import Reach


def there(encoded: Encoded, op: int) -> list[int]:
    """Returns the positions of all operations that began before one of them returned."""
    end = encoded.ends[op]
    return [i for i, start in enumerate(encoded.starts) if start <= end]


def faithful(encoded: Encoded, op: int, whole: Reach, allowance: Allowance) -> list[int] | None:
    """Returns a small faithful part, by positions; None if there is none in time.

    Args:
        encoded: The history, with a table of the model.
        op: The operation at whose return it fails.
        whole: Final states of the whole history.
        allowance: The budget of the search for the part.
    """
    search = _Faithful(encoded, op, whole, allowance)
    for kept in search.candidates():
        if allowance.is_over():
            return None
        if search.is_faithful(kept):
            return search.shrunk(kept)
    return None


class _Faithful:
    def __init__(self, encoded: Encoded, op: int, whole: Reach, allowance: Allowance) -> None:
        self._encoded = encoded
        self._op = op
        self._whole = whole
        self._allowance = allowance

    def candidates(self) -> Iterator[list[int]]:
        """Yields parts with `op`: ways to its states, and then parts that grow; the last one is all."""
        for path in self._whole.paths:
            way = self._way(path)
            if way is not None:
                yield way
        op, ends = self._op, self._encoded.ends
        began = self._encoded.starts[op]
        everything = there(self._encoded, op)
        before = sorted((i for i in everything if ends[i] < began), key=ends.__getitem__, reverse=True)
        width = 0
        while width < len(before):
            yield self._sorted([op, *before[:width]])
            width = max(2 * width, 1)
        yield self._sorted([op, *before])
        if len(before) + 1 < len(everything):
            yield self._sorted(everything)

    def _way(self, path: Sequence[int]) -> list[int] | None:
        """Returns operations that can take the steps of a path, each as late as the next one allows; None if there are none.

        They end before `op` began, and if possible, before the next one began.
        """
        starts, ends, codes = self._encoded.starts, self._encoded.ends, self._encoded.codes
        wanted = {codes[i].a for i in path}
        alike: dict[int, list[int]] = {}
        for i in sorted(range(len(codes)), key=ends.__getitem__):
            if codes[i].a in wanted and i != self._op and ends[i] < ends[self._op]:
                alike.setdefault(codes[i].a, []).append(i)
        way = [self._op]
        next_start, least_end = starts[self._op], ends[self._op]
        for step in reversed(path):
            left = alike.get(codes[step].a, [])
            index = bisect_left(left, next_start, key=ends.__getitem__) - 1
            if index < 0:
                index = next((n for n, i in enumerate(left) if starts[i] <= least_end), -1)
            if index < 0:
                return None
            chosen = left.pop(index)
            way.append(chosen)
            next_start, least_end = min(next_start, starts[chosen]), min(least_end, ends[chosen])
        return self._sorted(way)

    def is_faithful(self, kept: Sequence[int]) -> bool:
        """Returns whether a part has final states, and only those of the whole history."""
        reached = reach(self._encoded, kept, self._op, self._allowance)
        return reached is not None and reached.complete and reached.states <= self._whole.states

    def shrunk(self, kept: list[int]) -> list[int]:
        """Removes operations as long as the part stays faithful."""
        observes = self._encoded.coder.observers() or b""
        changing = [i for i in kept if i == self._op or not observes[self._encoded.codes[i].a]]
        if len(changing) < len(kept) and self.is_faithful(changing):
            kept = changing
        return smaller(kept, self._op, self.is_faithful, self._allowance)

    def _sorted(self, kept: list[int]) -> list[int]:
        starts = self._encoded.starts
        return sorted(kept, key=lambda i: (starts[i], i))
