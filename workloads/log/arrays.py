"""Near-linear work on arrays of integers that the judge of logs needs more than once.

Ranks replace sorting where the numbers lie close together, as offsets, event indexes and unique values do: then a table as
long as their span takes one step for each number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from checker.formats.columns import Int64s

    Bools = npt.NDArray[np.bool_]

_SPARE = 1024


def ranks(numbers: Int64s) -> tuple[Int64s, Int64s]:
    """Returns the distinct numbers in ascending order, and for each number its place among them."""
    if not len(numbers):
        return numbers.astype(np.int64), np.zeros(0, np.int64)
    low, high = int(numbers.min()), int(numbers.max())
    span = high - low + 1
    if span > 4 * len(numbers) + _SPARE:
        distinct, place = np.unique(numbers, return_inverse=True)
        return distinct, place.reshape(-1)
    there = np.zeros(span, np.bool_)
    there[numbers - low] = True
    distinct = np.flatnonzero(there) + low
    if len(distinct) == span:
        return distinct, numbers - low
    return distinct, (np.cumsum(there) - 1)[numbers - low]


def in_order(one: Int64s, other: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Returns numbers in ascending order, with all of both arrays among them, and where each of the two arrays has its own.

    Where the numbers lie close together, there may be others among them.
    """
    both = np.concatenate([one, other])
    low, high = (int(both.min()), int(both.max())) if len(both) else (0, -1)
    if high - low < 4 * len(both) + _SPARE:
        return np.arange(low, high + 1), one - low, other - low
    distinct, place = ranks(both)
    return distinct, place[: len(one)], place[len(one) :]


def least(size: int, place: Int64s, number: Int64s, absent: int) -> Int64s:
    """Returns the least number at each of `size` places; `absent` where there is none."""
    found = np.full(size, absent, np.int64)
    np.minimum.at(found, place, number)
    return found


def greatest(size: int, place: Int64s, number: Int64s, absent: int) -> Int64s:
    """Returns the greatest number at each of `size` places; `absent` where there is none."""
    found = np.full(size, absent, np.int64)
    np.maximum.at(found, place, number)
    return found


def greatest_over(size: int, first: Int64s, last: Int64s, number: Int64s) -> Int64s:
    """Returns, for each of `size` places, the greatest number of the ranges that contain it; -1 where none does.

    A range is covered by two ranges whose length is a power of two. Lengths are halved from the longest down, so that all
    takes as many steps over the places as the longest range has binary digits.

    Args:
        size: How many places there are.
        first: The first place of each range.
        last: Its last place, no less than the first.
        number: Its number, from 0.
    """
    best = np.full(size, -1, np.int64)
    level = _levels(last - first + 1)
    for power in range(int(level.max(initial=-1)), -1, -1):
        of_level = np.flatnonzero(level == power)
        np.maximum.at(best, first[of_level], number[of_level])
        np.maximum.at(best, last[of_level] - (1 << power) + 1, number[of_level])
        if power:
            half = 1 << (power - 1)
            pushed = best.copy()
            np.maximum(pushed[half:], best[:-half], out=pushed[half:])
            best = pushed
    return best


def least_over(numbers: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Returns the least of `numbers` from each first place to each last place, both inclusive and no range empty."""
    found = np.zeros(len(first), np.int64)
    level = _levels(last - first + 1)
    best = numbers.copy()
    for power in range(int(level.max(initial=-1)) + 1):
        of_level = np.flatnonzero(level == power)
        found[of_level] = np.minimum(best[first[of_level]], best[last[of_level] - (1 << power) + 1])
        reach = 1 << power
        best = np.minimum(best[:-reach], best[reach:])
    return found


def _levels(lengths: Int64s) -> Int64s:
    """Returns the place of the highest binary digit of each length, which is below 2^53."""
    _, exponents = np.frexp(lengths.astype(np.float64))
    levels: Int64s = exponents.astype(np.int64) - 1
    return levels
