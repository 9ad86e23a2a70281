"""Rows of the counter workload: as many adds as reads, some of which overlap."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.workloads.rows import Row, columns, overlapping, values
from checker.formats.columns import INTEGER, NOTHING
from workloads.counter import CounterWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns

WIDTH = 5


def history(count: int, *, wrong: bool = False) -> Columns:
    """Returns a counter with `count` operations, each with its effect at its start.

    Args:
        count: The number of operations.
        wrong: Whether a read in the middle returns too much.
    """
    draws = np.random.default_rng(1)
    is_read = np.arange(count) % 2 == 1
    amount = np.where(is_read, 0, draws.integers(-5, 6, count))
    counted = np.cumsum(amount)
    if wrong:
        counted[count // 4 * 2 + 1] += 100
    start, end = overlapping(count, width=WIDTH)
    return columns(
        ["add", "read"],
        function=is_read.astype(np.int64),
        kind=np.zeros(count, np.int8),
        start=start,
        end=end,
        value=values(np.where(is_read, NOTHING, INTEGER).astype(np.int8), amount),
        result=values(np.full(count, INTEGER, np.int8), np.where(is_read, counted, amount)),
    )


ROWS = (
    Row(name="counter, valid", judge=CounterWorkload(), make=history),
    Row(
        name="counter, one read out of bounds",
        judge=CounterWorkload(),
        make=partial(history, wrong=True),
        kinds=frozenset({"out-of-bounds"}),
    ),
)
