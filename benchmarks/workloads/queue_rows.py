"""Rows of the queue workload: as many enqueues as dequeues, in the order of the queue, and a drain of the last values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.workloads.rows import Row, columns, overlapping, values
from checker.formats.columns import FAIL, INTEGER, NOTHING, OTHER
from workloads.queue import Order, QueueOptions, QueueWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns

WIDTH = 5
LAG = 100
_FACTOR = 2_654_435_761  # odd, so that different numbers stay different
_RANGE = 1 << 40


def history(count: int, *, spread: bool = False, lost: bool = False) -> Columns:
    """Returns a queue with `count` operations, in an order that real time allows.

    Args:
        count: The number of operations without the drain.
        spread: Whether the values are spread over a large range.
        lost: Whether the value in the middle is lost.
    """
    half = count // 2
    value = np.arange(half) + 1
    if spread:
        value = value * _FACTOR % _RANGE
    start, end = overlapping(2 * half, width=WIDTH)
    end = np.append(end, end[-1] + 2)
    start = np.append(start, end[-2] + 1)
    function = np.append(np.tile([0, 1], half), 2)
    put = function == 0
    taken = np.zeros(half, bool)
    taken[LAG:] = True
    taken[half // 2] &= not lost
    kind = np.zeros(2 * half + 1, np.int8)
    kind[1:-1:2][~taken] = FAIL
    argument = np.zeros(2 * half + 1, np.int64)
    argument[put] = value
    out = argument.copy()
    out[1:-1:2] = np.where(taken, np.roll(value, LAG), 0)
    sorts = np.where((kind == FAIL), NOTHING, INTEGER).astype(np.int8)
    sorts[-1] = OTHER
    return columns(
        ["enqueue", "dequeue", "drain"],
        function=function,
        kind=kind,
        start=start,
        end=end,
        value=values(np.where(put, INTEGER, NOTHING).astype(np.int8), argument),
        result=values(sorts, out),
        texts=[str(value[-LAG:].tolist()).replace(" ", "")],
    )


ROWS = (
    Row(name="queue, valid", judge=QueueWorkload(), make=history),
    Row(name="queue, values of a great range", judge=QueueWorkload(), make=partial(history, spread=True)),
    Row(name="queue, order of producers", judge=QueueWorkload(QueueOptions(order=Order.PRODUCER)), make=history),
    Row(name="queue, order of real time", judge=QueueWorkload(QueueOptions(order=Order.REALTIME)), make=history),
    Row(
        name="queue, one value lost", judge=QueueWorkload(), make=partial(history, lost=True), kinds=frozenset({"lost"})
    ),
)
