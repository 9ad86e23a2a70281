"""Two algorithms on intervals for the judge of queues. They need only a few sorts, also for millions of intervals.

`served` computes a matching: each claim needs one of the supplies that were available in time. `overtaken` finds pairs that
came out in the reverse order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import NEVER

if TYPE_CHECKING:
    import numpy.typing as npt

    from checker.formats.columns import Int64s

    Bools = npt.NDArray[np.bool_]


def served(supply: Int64s, group: Int64s) -> Bools:
    """Returns which claims get a supply in a maximum matching. Each supply serves one claim.

    Each claim can use any of the first `supply` supplies of its group. Later claims of the group can use at least as many. So
    serving the claims in their order serves the maximum number. Of the first claims up to the i-th, this number is the minimum
    of `i + 1` and `min over j <= i of supply[j] + i - j`.

    Args:
        supply: The number of supplies of its group that each claim can use; it never falls within a group.
        group: The group of each claim, ascending.
    """
    count = len(supply)
    if not count:
        return np.zeros(0, bool)
    new = np.ones(count, bool)
    new[1:] = group[1:] != group[:-1]
    starts = np.flatnonzero(new)
    number = np.cumsum(new) - 1
    position = np.arange(count) - starts[number]
    # The offset separates the running minima of the groups.
    below = number * (2 * max(count, int(supply.max())) + 2)
    lowest = np.minimum.accumulate(supply - position - below) + below
    total = position + np.minimum(lowest, 1)
    before = np.zeros(count, np.int64)
    before[1:] = total[:-1]
    before[new] = 0
    got: Bools = total > before
    return got


def overtaken(group: Int64s, begin: Int64s, end: Int64s, out_begin: Int64s, out_end: Int64s) -> tuple[Int64s, Int64s]:
    """Finds values that went in before another value of their group, and came out after it.

    An interval is before another if it ends before the other begins. All arrays are sorted by group, and then by `begin`.

    Args:
        group: The group of each value.
        begin: The begin of its put.
        end: The end of its put; `NEVER` if it is not known.
        out_begin: The begin of its take.
        out_end: The end of its take.

    Returns:
        The positions of the overtaken values, ascending, and for each the position of a value that overtook it.
    """
    if not len(group):
        return group, group
    new = np.zeros(len(group), bool)
    new[1:] = group[1:] != group[:-1]
    number = np.cumsum(new)
    times = [begin, np.where(end == NEVER, -1, end), out_begin, out_end]
    if (max(int(array.max()) for array in times) + 2) * (int(number[-1]) + 2) >= 1 << 62:
        distinct, ranks = np.unique(np.concatenate(times), return_inverse=True)
        times, highest = np.split(ranks.astype(np.int64), 4), len(distinct)
    else:
        highest = max(int(array.max()) for array in times)
    span = highest + 2
    shift = number * span
    # The first value of the group whose put began after this one's put ended; without one, the first of the next group.
    later = np.searchsorted(times[0] + shift, np.where(end == NEVER, highest + 1, times[1]) + shift, side="right")
    out = times[3] + shift
    earliest = np.append(np.minimum.accumulate(out[::-1])[::-1], np.iinfo(np.int64).max)
    places = np.flatnonzero(earliest[later] < times[2] + shift)
    # The last position with this running minimum is the position of the minimum.
    witnesses = np.searchsorted(earliest[:-1], earliest[later[places]], side="right") - 1
    return places, witnesses
