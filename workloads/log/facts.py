"""The facts about a log from all answers and reads, by offset, by value and by append. `findings` finds contradictions in them.

A place is the rank of an offset in an answer or a read. Times are event indexes. The judge compares reads by their rows, which
are in the order of their invokes. Offsets between places have no entry anywhere, so nothing can be missing there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import FAIL, NEVER, OK
from workloads.log.arrays import in_order, max_over, maxima, min_over, minima, ranks

if TYPE_CHECKING:
    from checker.formats.columns import Int64s
    from workloads.log.arrays import Bools
    from workloads.log.reading import Log

_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Claims that a value is at an offset: acknowledged appends first, then the entries of reads.

    Attributes:
        row: The append or the read.
        end: The event at which it ended.
        place: The place of the offset.
        value: The rank of the value.
        answers: The number of claims that are answers of appends.
        distinct: The offset of each place.
        numbers: The number of each rank of a value.
    """

    row: Int64s
    end: Int64s
    place: Int64s
    value: Int64s
    answers: int
    distinct: Int64s
    numbers: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The facts about each place.

    Attributes:
        known: The event after which the entry there was known: the end of its append, or of its first read.
        seen: The row of the last read that has the entry; -1 if none has.
        missed: The row of the last read that covers the offset and lacks the entry; -1 if none does.
        conflict: Whether there are two values or two acknowledged appends, except by a change.
        changed: Whether a read has another value than a read that ended before it began.
        skipped: The row of the last read that lacks the entry and has a higher one; -1 if none does.
        repeated: The row of a read that has the offset more than once; -1 if none has.
        disordered: The row of a read that has the offset directly after a higher one; -1 if none has.
        outside: The row of a read that has the offset and does not cover it; -1 if none has.
    """

    known: Int64s
    seen: Int64s
    missed: Int64s
    conflict: Bools
    changed: Bools
    skipped: Int64s
    repeated: Int64s
    disordered: Int64s
    outside: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class ByValue:
    """The facts about each value.

    Attributes:
        tried: The number of its appends that may have happened.
        acknowledged: The number of its acknowledged appends.
        offsets: The number of its offsets.
        place: One of its places; -1 if it has none.
        read: The event after which it was first read; `NEVER` if it was not.
        unexpected: Whether it was read before any append of it began that may have happened.
    """

    tried: Int64s
    acknowledged: Int64s
    offsets: Int64s
    place: Int64s
    read: Int64s
    unexpected: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Appends:
    """The facts about each append, in the order of `Log.append`.

    Attributes:
        value: The rank of its value.
        place: The place of its entry; -1 if it is not known.
        overtaken: The append that was in the log before this one began, at a higher offset; -1 if there is none.
        vanished: Whether it was acknowledged without an offset, and reads show that it is at none of its possible offsets.
    """

    value: Int64s
    place: Int64s
    overtaken: Int64s
    vanished: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts about a log."""

    log: Log
    claims: Claims
    places: Places
    values: ByValue
    appends: Appends


def facts_of(log: Log) -> Facts:
    """Gathers the facts from the answers and reads of a log."""
    distinct, rank = ranks(np.concatenate([log.answer[log.answered], log.entry_offset]))
    numbers, value = ranks(np.concatenate([log.appended, log.entry_value]))
    appended, entered = value[: len(log.append)], value[len(log.append) :]
    row = np.concatenate([log.append[log.answered], log.read[log.entry_read]])
    claims = Claims(
        row=row,
        end=log.history.end[row],
        place=rank,
        value=np.concatenate([appended[log.answered], entered]),
        answers=int(log.answered.sum()),
        distinct=distinct,
        numbers=numbers,
    )
    places = _places(log, claims)
    values = _by_value(log, claims, appended)
    return Facts(log=log, claims=claims, places=places, values=values, appends=_appends(log, claims, values, appended))


def _places(log: Log, claims: Claims) -> Places:
    size = len(claims.distinct)
    known = minima(size, claims.place, claims.end, NEVER)
    seen = maxima(size, claims.place[claims.answers :], claims.row[claims.answers :], _NONE)
    several, changed = _contradictions(log, claims)
    answers = np.bincount(claims.place[: claims.answers], minlength=size)
    conflict = (answers > 1) | (several & ((answers > 0) | ~changed))
    missed, skipped = _missed(log, claims)
    return Places(
        known=known, seen=seen, missed=missed, conflict=conflict, changed=changed, skipped=skipped,
        **_misplaced(log, claims),
    )  # fmt: skip


def _misplaced(log: Log, claims: Claims) -> dict[str, Int64s]:
    """Returns, for each place, a read that repeats, disorders or does not cover its entry; see `Places`."""
    size, read, index = len(claims.distinct), log.entry_read, claims.place[claims.answers :]
    after = np.flatnonzero((read[1:] == read[:-1]) & (index[1:] <= index[:-1])) + 1
    outside = np.flatnonzero((log.entry_offset < log.first[read]) | (log.entry_offset > log.last[read]))
    again = after[:0]
    if len(after):  # only then a read can have an offset twice
        order = np.lexsort((index, read))
        same = (read[order[1:]] == read[order[:-1]]) & (index[order[1:]] == index[order[:-1]])
        again = order[1:][same]
    misplaced = {"repeated": again, "disordered": np.setdiff1d(after, again), "outside": outside}
    return {name: maxima(size, index[some], log.read[read[some]], _NONE) for name, some in misplaced.items()}


def _contradictions(log: Log, claims: Claims) -> tuple[Bools, Bools]:
    """Returns the places with several values, and those where a later read has another value than an earlier one."""
    size = len(claims.distinct)
    several = _several(size, claims.place, claims.value)
    changed = np.zeros(size, np.bool_)
    of_reads = np.flatnonzero(several[claims.place[claims.answers :]]) + claims.answers
    if len(of_reads):
        index, value = claims.place[of_reads], claims.value[of_reads]
        start, end = log.history.start[claims.row[of_reads]], log.history.end[claims.row[of_reads]]
        # The first read to end, and the first with another value than that one.
        first_end = minima(size, index, end, NEVER)
        first_value = np.zeros(size, np.int64)
        earliest = end == first_end[index]
        first_value[index[earliest]] = value[earliest]
        other = value != first_value[index]
        other_end = minima(size, index[other], end[other], NEVER)
        late = start > np.where(other, first_end[index], other_end[index])
        changed[index[late]] = True
    return several, changed


def _several(size: int, group: Int64s, member: Int64s) -> Bools:
    """Returns the groups with more than one distinct member."""
    one = np.zeros(size, np.int64)
    one[group] = member
    several = np.zeros(size, np.bool_)
    several[group[one[group] != member]] = True
    return several


def _missed(log: Log, claims: Claims) -> tuple[Int64s, Int64s]:
    """Returns, for each place, the row of the last read that covers it and lacks its entry, and of the last that skips it.

    A read skips an entry that it covers and lacks, if it has a higher one. A row is -1 if there is no such read.

    The places between the entries of a read are gaps. Reads of settled entries in a log without anomalies have no gaps. So the
    time depends on the number of entries, and not on the length of the ranges.
    """
    distinct = claims.distinct
    first = np.searchsorted(distinct, log.first, "left")
    last = np.searchsorted(distinct, log.last, "right") - 1
    read, index = log.entry_read, claims.place[claims.answers :]
    inside = (index >= first[read]) & (index <= last[read])
    if not inside.all():  # a read returned an offset outside of its range
        read, index = read[inside], index[inside]
    if ((read[1:] == read[:-1]) & (index[1:] < index[:-1])).any():
        order = np.lexsort((index, read))
        read, index = read[order], index[order]
    opens = np.ones(len(read), np.bool_)
    opens[1:] = read[1:] != read[:-1]
    before = np.empty_like(index)
    before[1:] = index[:-1]
    before[opens] = first[read[opens]] - 1
    gap = np.flatnonzero(before + 1 < index)
    final = first - 1
    final[read] = index  # the last entry of each read remains
    tail = np.flatnonzero(final < last)
    skipped = max_over(len(distinct), before[gap] + 1, index[gap] - 1, log.read[read[gap]])
    behind = max_over(len(distinct), final[tail] + 1, last[tail], log.read[tail])
    return np.maximum(skipped, behind), skipped


def _by_value(log: Log, claims: Claims, appended: Int64s) -> ByValue:
    history, size = log.history, len(claims.numbers)
    kind = history.type[log.append]
    possible = _chosen(kind != FAIL)
    tried = np.bincount(appended[possible], minlength=size)
    acknowledged = np.bincount(appended[_chosen(kind == OK)], minlength=size)
    begun = minima(size, appended[possible], history.start[log.append[possible]], NEVER)
    entered = slice(claims.answers, None)
    read = minima(size, claims.value[entered], claims.end[entered], NEVER)
    index = np.full(size, _NONE, np.int64)
    index[claims.value] = claims.place
    offsets = (index != _NONE).astype(np.int64)
    several = _several(size, claims.value, claims.place)
    if several.any():
        some = np.flatnonzero(several[claims.value])
        pairs = np.unique(np.stack([claims.value[some], claims.place[some]]), axis=1)
        offsets[several] = np.bincount(pairs[0], minlength=size)[several]
    return ByValue(
        tried=tried,
        acknowledged=acknowledged,
        offsets=offsets,
        place=index,
        read=read,
        unexpected=(read != NEVER) & (read < begun),
    )


def _chosen(mask: Bools) -> Bools | slice:
    """Returns an index for the members of a mask. If these are all, it is a slice, which makes no copy."""
    return slice(None) if mask.all() else mask


def _appends(log: Log, claims: Claims, values: ByValue, appended: Int64s) -> Appends:
    history = log.history
    kind = history.type[log.append]
    # The appends whose entry the value alone identifies.
    single = (kind != FAIL) & ((values.tried == 1) & (values.offsets == 1))[appended]
    index = np.where(single, values.place[appended], _NONE)
    index[log.answered] = claims.place[: claims.answers]
    start = history.start[log.append]
    acknowledged = np.where(kind == OK, history.end[log.append], NEVER)
    settled = np.where(single, np.minimum(acknowledged, values.read[appended]), acknowledged)
    known = np.flatnonzero((index != _NONE) & (settled != NEVER))
    instants, began, stood = in_order(start, settled[known])
    highest = maxima(len(instants), stood, index[known], _NONE)
    np.maximum.accumulate(highest, out=highest)
    below = np.where(began > 0, highest[began - 1], _NONE)  # the highest place that was taken before the append began
    late = np.flatnonzero((index != _NONE) & (below > index))
    overtaken = np.full(len(index), _NONE, np.int64)
    if len(late):
        # The running maximum first has that place when the append there was settled.
        at = np.searchsorted(highest, below[late])
        by_instant = np.full(len(instants), _NONE, np.int64)
        holds = index[known] == highest[stood]
        by_instant[stood[holds]] = known[holds]
        overtaken[late] = by_instant[at]
    nowhere = np.flatnonzero((kind == OK) & (index == _NONE) & (values.offsets[appended] == 0))
    vanished = np.zeros(len(index), np.bool_)
    if len(nowhere):
        above = np.full(len(instants) + 1, len(claims.distinct), np.int64)
        placed = np.flatnonzero(index != _NONE)
        np.minimum.at(above, began[placed], index[placed])
        above = np.minimum.accumulate(above[::-1])[::-1]
        after = above[np.searchsorted(instants, acknowledged[nowhere], "right")]
        vanished[nowhere] = _vanished(log, claims, below[nowhere], after, acknowledged[nowhere])
    return Appends(value=appended, place=index, overtaken=overtaken, vanished=vanished)


def _vanished(log: Log, claims: Claims, below: Int64s, above: Int64s, end: Int64s) -> Bools:
    """Returns, for appends that no read has, whether later reads cover all their possible offsets.

    The offset of an append is above the entries known before it began, and below the appends that began after it ended. Without
    a lower neighbour, the bound is 0, or the lowest known offset. Without an upper neighbour, there is no bound, so the append
    has not vanished.

    Args:
        log: The log.
        claims: The claims about offsets.
        below: The highest place that was taken before each append began; -1 if there is none.
        above: The lowest place of the appends that began after it; the number of places if there is none.
        end: The event of each acknowledgement.
    """
    distinct = claims.distinct
    vanished = np.zeros(len(below), np.bool_)
    bounded = np.flatnonzero((above < len(distinct)) & (above > below))
    if not len(bounded):
        return vanished
    lowest = min(0, int(distinct[0])) - 1
    low = np.where(below[bounded] == _NONE, lowest, distinct[below[bounded]]) + 1
    high = distinct[above[bounded]] - 1
    whole = log.first <= log.last
    edges, rank = ranks(np.concatenate([log.first[whole], log.last[whole] + 1, low, high + 1]))
    reads = int(whole.sum())
    first, beyond = rank[:reads], rank[reads : 2 * reads]
    begin, stop = rank[2 * reads : 2 * reads + len(low)], rank[2 * reads + len(low) :]
    covered = max_over(len(edges), first, beyond - 1, log.read[whole])
    room = begin < stop
    row = np.full(len(low), _NONE, np.int64)
    row[room] = min_over(covered, begin[room], stop[room] - 1)
    later = (row != _NONE) & (log.history.start[row] > end[bounded])
    vanished[bounded] = ~room | later
    return vanished
