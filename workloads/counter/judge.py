"""Checks one counter: whether each read lies between the lowest and the highest possible sum.

An add *surely counts* for a read if it succeeded and ended before the read began. It *may count* if it does not surely count,
did not fail, and began before the read ended: it was concurrent, or has no answer. The lower bound of a read is the sum of the
adds that surely count and of the negative adds that may count. The upper bound is the sum of the adds that surely count and of
the positive adds that may count. These are the bounds of Jepsen's `counter`, also for negative amounts.

This is not linearizability. The judge examines each read alone, so it does not find, for example:

- a value within the bounds that no subset of the adds gives, such as 1 if the only add that may count is of 2;
- two successive reads of which only the first counts an unanswered add;
- two concurrent reads that count different adds, so that no order of the adds fits both.

The model `counter` (`labrys check --model counter`) decides linearizability and finds all of these. Its cost grows
exponentially with the number of unanswered adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from checker.formats.columns import FAIL, INTEGER, OK
from checker.judging import Anomaly, value_at
from checker.judging.rules import Rule, judged
from harness.console.documents import shown
from harness.errors import InputError
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checker.formats.columns import ColumnOfValues, Columns, Int64s
    from checker.judging import Judgement

_SAFE: Final = float(2**62)  # sums below this fit 64 bits
_MAX_CONCURRENT: Final = 4  # an anomaly shows at most so many of the adds that may count


def judge(history: Columns, *, rest_s: float = 0.0) -> Judgement:
    """Decides a counter.

    Args:
        history: The operations of one counter.
        rest_s: If above 0, only the reads that begin so many seconds after the end of the last add must lie within the
            bounds. This is right for a counter whose nodes agree in the end only.

    Raises:
        InputError: A function is neither `add` nor `read`, or an amount or a count is not an integer.
    """
    adds, reads = _rows(history)
    if rest_s > 0 and len(adds):
        last_ns = int(history.end_ns[adds].max())
        reads = reads[history.start_ns[reads] >= last_ns + rest_s * NS_PER_S]
    amounts = _integers(history, history.value, adds, "the amount of an add")
    counts = _integers(history, history.result, reads, "the result of a read")
    low, high = _bounds(history, adds, amounts, reads)
    distance = np.maximum(low - counts, 0) + np.maximum(counts - high, 0)
    out = np.flatnonzero(distance > 0)
    ended = history.end[adds[history.type[adds] == OK]]
    last = int(history.start[reads[-1]]) if len(reads) else -1
    tested = bool((ended < last).any())
    numbers = {
        "adds": len(ended),
        "reads": len(reads),
        "out-of-bounds": len(out),
        "not-read": int(np.count_nonzero(ended > last)),
    }

    def anomalies() -> Iterator[Anomaly]:
        for index in out.tolist():
            bounds = int(low[index]), int(high[index])
            yield _anomaly(history, adds, int(reads[index]), int(counts[index]), bounds)

    unread = numbers["not-read"]
    later = f" {unread} adds ended after the last read began, so a loss of them was not seen." if unread else ""
    nothing = f"None of {len(reads)} reads began after an add had succeeded, so nothing was tested."
    return judged(
        [Rule(kind="out-of-bounds", anomalies=anomalies)],
        numbers,
        held=f"All {len(reads)} reads lie between their bounds.{later}",
        untested=None if tested else nothing,
        broken=f"{len(out)} of {len(reads)} reads returned a count that was not possible.",
        figures={
            "reads": len(reads),
            "out-of-bounds": len(out),
            "widest-interval": int((high - low).max()) if len(reads) else None,
            "greatest-distance": int(distance.max()) if len(reads) else None,
            "last-interval": [int(low[-1]), int(high[-1])] if len(reads) else None,
        },
    )


def _rows(history: Columns) -> tuple[Int64s, Int64s]:
    """Returns the rows of the adds, and those of the successful reads, in the order of their starts."""
    order = np.argsort(history.start, kind="stable")
    numbers = {name: number for number, name in enumerate(history.functions)}
    is_add = history.function == numbers.get("add", -1)
    is_read = history.function == numbers.get("read", -1)
    other = np.flatnonzero(~(is_add | is_read))
    if len(other):
        row = int(other[0])
        function = shown(history.functions[int(history.function[row])])
        raise InputError(f"event {history.start[row]}: a counter has the functions add and read, found {function}")
    return order[is_add[order]], order[(is_read & (history.type == OK))[order]]


def _integers(history: Columns, values: ColumnOfValues, rows: Int64s, what: str) -> Any:
    """Returns the integers of some rows, with 64 bits; as Python integers if one does not fit into 64 bits."""
    large = np.flatnonzero(values.kind[rows] != INTEGER)
    if not len(large):
        return values.first[rows]
    numbers = values.first[rows].astype(object)
    for index in large.tolist():
        row = int(rows[index])
        number = value_at(history, values, row)
        if type(number) is not int:
            event = history.start[row] if values is history.value else history.end[row]
            raise InputError(f"event {event}: expected an integer as {what}, found {shown(number)}")
        numbers[index] = number
    return numbers


def _bounds(history: Columns, adds: Int64s, amounts: Any, reads: Int64s) -> tuple[Any, Any]:
    """Returns the lower and the upper bound of each read."""
    if len(adds) and float(np.abs(amounts.astype(float)).sum()) >= _SAFE:
        amounts = amounts.astype(object)
    kind = history.type[adds]
    may = kind != FAIL
    sure = np.flatnonzero(kind == OK)
    sure = sure[np.argsort(history.end[adds[sure]], kind="stable")]
    ended = np.searchsorted(history.end[adds[sure]], history.start[reads])
    begun = np.searchsorted(history.start[adds[may]], history.end[reads])
    bounds = []
    for bounded in (np.minimum, np.maximum):
        part = bounded(amounts, 0)
        # The adds that surely count, plus the adds of one sign that may count: those begun before the read's end, minus the
        # sure.
        bounds.append(_sums(amounts[sure])[ended] + _sums(part[may])[begun] - _sums(part[sure])[ended])
    return bounds[0], bounds[1]


def _sums(numbers: Any) -> Any:
    """Returns the sums of the first 0, 1, 2, ... numbers."""
    return np.concatenate((numbers[:0].sum(keepdims=True), np.cumsum(numbers)))


def _anomaly(history: Columns, adds: Int64s, row: int, count: int, bounds: tuple[int, int]) -> Anomaly:
    low, high = bounds
    start, end = history.start[row], history.end[row]
    may = adds[(history.type[adds] != FAIL) & (history.start[adds] < end) & (history.end[adds] > start)]
    away = low - count if count < low else count - high
    explanation = (
        f"A read returned {shown(count)}, but between {shown(low)} and {shown(high)} was possible: it is {shown(away)} too"
        f" {'small' if count < low else 'large'}. {len(may)} adds may have counted or not when it was made, from"
        f" {history.start_ns[row] / 1e9:.6f} s to {history.end_ns[row] / 1e9:.6f} s."
    )
    sure = adds[(history.type[adds] == OK) & (history.end[adds] < start)]
    known = []
    if count < low and len(sure):  # some acknowledged add is missing, and nobody knows which one
        known = [int(sure[np.argmax(history.end[sure])])]
        explanation += (
            f" The last acknowledged add before it is process {history.process[known[0]]}'s add of"
            f" {shown(value_at(history, history.value, known[0]))}, at {history.end_ns[known[0]] / 1e9:.6f} s."
        )
    rows = (*known, *(int(index) for index in may[-_MAX_CONCURRENT:]), row)
    return Anomaly(kind="out-of-bounds", subject=count, explanation=explanation, rows=rows, decisive=row)
