"""Two questions about intervals that queues ask, answered for millions of them by a few sorts.

`served` is a matching: each of some claims needs one of several supplies that were there in time. `overtaken` finds pairs that
went in one way round and came out the other.
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
    """Says which claims get a supply, as many as possible, where each supply serves one claim.

    Each claim may take any of the first supplies of its group, and later claims of the group may take at least as many. So
    serving them in their order serves as many as any other way: of the first claims up to the i-th, `min over j <= i of
    supply[j] + i - j` and `i + 1` are the two bounds, and the lesser one is reached.

    Args:
        supply: How many supplies of its group each claim may choose from; it never falls within a group.
        group: The group of each claim, ascending.
    """
    count = len(supply)
    if not count:
        return np.zeros(0, bool)
    new = np.ones(count, bool)
    new[1:] = group[1:] != group[:-1]
    starts = np.flatnonzero(new)
    number = np.cumsum(new) - 1
    place = np.arange(count) - starts[number]
    # Below what any group before can have, so that the least of a group is its own.
    below = number * (2 * max(count, int(supply.max())) + 2)
    least = np.minimum.accumulate(supply - place - below) + below
    total = place + np.minimum(least, 1)
    before = np.zeros(count, np.int64)
    before[1:] = total[:-1]
    before[new] = 0
    got: Bools = total > before
    return got


def overtaken(group: Int64s, begin: Int64s, end: Int64s, out_begin: Int64s, out_end: Int64s) -> tuple[Int64s, Int64s]:
    """Finds what went in before something else of its group, and came out after it.

    One thing is before another if it ends before the other begins. All arrays are sorted by group, and by `begin` within it.

    Args:
        group: The group of each thing.
        begin: When it began to go in.
        end: When it had gone in; `NEVER` if that is not known.
        out_begin: When it began to come out.
        out_end: When it had come out.

    Returns:
        The places of those that were overtaken, ascending, and for each the place of one that overtook it.
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
    # The first of the group that began after this one had gone in; the first of the next group if there is none.
    later = np.searchsorted(times[0] + shift, np.where(end == NEVER, highest + 1, times[1]) + shift, side="right")
    out = times[3] + shift
    earliest = np.append(np.minimum.accumulate(out[::-1])[::-1], np.iinfo(np.int64).max)
    places = np.flatnonzero(earliest[later] < times[2] + shift)
    # The last place from which on the earliest is the same is where it stands.
    witnesses = np.searchsorted(earliest[:-1], earliest[later[places]], side="right") - 1
    return places, witnesses
