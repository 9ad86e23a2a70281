"""Near-linear functions on arrays of integers for the judge of logs.

If the numbers lie close together, a table as long as their span replaces sorting, with one step for each number. Offsets, event
indexes and unique values usually lie close together.
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
    """Returns the distinct numbers in ascending order, and the position of each number among them."""
    if not len(numbers):
        return numbers.astype(np.int64), np.zeros(0, np.int64)
    low, high = int(numbers.min()), int(numbers.max())
    span = high - low + 1
    if span > 4 * len(numbers) + _SPARE:
        distinct, rank = np.unique(numbers, return_inverse=True)
        return distinct, rank.reshape(-1)
    present = np.zeros(span, np.bool_)
    present[numbers - low] = True
    distinct = np.flatnonzero(present) + low
    if len(distinct) == span:
        return distinct, numbers - low
    return distinct, (np.cumsum(present) - 1)[numbers - low]


def in_order(one: Int64s, other: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Returns ascending numbers that include both arrays, and the positions of each array's numbers among them.

    If the numbers lie close together, the result also has other numbers.
    """
    both = np.concatenate([one, other])
    low, high = (int(both.min()), int(both.max())) if len(both) else (0, -1)
    if high - low < 4 * len(both) + _SPARE:
        return np.arange(low, high + 1), one - low, other - low
    distinct, rank = ranks(both)
    return distinct, rank[: len(one)], rank[len(one) :]


def minima(size: int, group: Int64s, number: Int64s, absent: int) -> Int64s:
    """Returns the smallest number at each of `size` places; `absent` if there is none."""
    lowest = np.full(size, absent, np.int64)
    np.minimum.at(lowest, group, number)
    return lowest


def maxima(size: int, group: Int64s, number: Int64s, absent: int) -> Int64s:
    """Returns the largest number at each of `size` places; `absent` if there is none."""
    highest = np.full(size, absent, np.int64)
    np.maximum.at(highest, group, number)
    return highest


def max_over(size: int, first: Int64s, last: Int64s, number: Int64s) -> Int64s:
    """Returns, for each of `size` places, the largest number of the ranges that contain it; -1 if none does.

    Two ranges whose length is a power of two cover a range. The algorithm halves the lengths, from the longest down. So the
    number of passes over the places is the number of binary digits of the longest length.

    Args:
        size: The number of places.
        first: The first place of each range.
        last: The last place of each range, not less than the first.
        number: The number of each range, from 0.
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


def min_over(numbers: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Returns the smallest of `numbers` in each range from `first` to `last`, both inclusive. No range must be empty."""
    lowest = np.zeros(len(first), np.int64)
    level = _levels(last - first + 1)
    best = numbers.copy()
    for power in range(int(level.max(initial=-1)) + 1):
        of_level = np.flatnonzero(level == power)
        lowest[of_level] = np.minimum(best[first[of_level]], best[last[of_level] - (1 << power) + 1])
        reach = 1 << power
        best = np.minimum(best[:-reach], best[reach:])
    return lowest


def _levels(lengths: Int64s) -> Int64s:
    """Returns the position of the highest binary digit of each length. Lengths must be below 2^53."""
    _, exponents = np.frexp(lengths.astype(np.float64))
    levels: Int64s = exponents.astype(np.int64) - 1
    return levels
