"""Finds two neighbours in an ordered list, the first good and the second bad, with few decisions.

Algorithm: bisection as in `git bisect` (C. Couder, "Fighting regressions with git bisect", 2009). It needs one change in the
list: good values come first, and bad ones after them. A value that cannot be decided is skipped, and the value nearest to it
is decided in its place. If only such values are left, the answer is a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of a search.

    Attributes:
        good: The place of the last good value.
        bad: The place of the first bad value; those between them could not be decided.
    """

    good: int
    bad: int


def search(values: int, is_bad: Callable[[int], bool | None]) -> Found:
    """Returns where a list changes from good to bad.

    Args:
        values: The number of values; the first is good, and the last is bad.
        is_bad: Decides the value of a place; None: it cannot be decided.
    """
    good, bad = 0, values - 1
    skipped: set[int] = set()
    while left := [index for index in range(good + 1, bad) if index not in skipped]:
        middle = (good + bad) / 2
        index = min(left, key=lambda candidate: (abs(candidate - middle), candidate))
        decided = is_bad(index)
        if decided is None:
            skipped.add(index)
        elif decided:
            bad = index
        else:
            good = index
    return Found(good=good, bad=bad)


def most_decisions(values: int) -> int:
    """Returns the most decisions of a search in which each value can be decided, with those of both ends."""
    return 2 + max(0, values - 2).bit_length()
