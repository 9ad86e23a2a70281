"""Rows of the log workload: appends of unique values, and reads of the whole log in ranges of a thousand offsets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.workloads.rows import Row, columns, overlapping, values
from checker.formats.columns import INTEGER, OTHER, PAIR
from workloads.log import LogWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns

WIDTH = 5
RANGE = 1000


def history(count: int, *, lost: bool = False) -> Columns:
    """Returns a log with `count` appends, in an order that real time allows.

    Args:
        count: The number of appends.
        lost: Whether the reads lack the entry in the middle.
    """
    draws = np.random.default_rng(1)
    offset = np.empty(count, np.int64)
    offset[np.argsort(np.arange(count) + draws.random(count) * (WIDTH - 1), kind="stable")] = np.arange(count)
    appended = np.arange(count) + 1
    at = np.empty(count, np.int64)
    at[offset] = appended
    start, end = overlapping(count, width=WIDTH)
    first = np.arange(0, count, RANGE)
    texts = []
    for begin in first.tolist():
        entries = [[begin + index, value] for index, value in enumerate(at[begin : begin + RANGE].tolist())]
        if lost and begin <= count // 2 < begin + RANGE:
            del entries[count // 2 - begin]
        texts.append(str(entries).replace(" ", ""))
    reads = len(first)
    after = int(end[-1]) + 1 + 2 * np.arange(reads)
    return columns(
        ["append", "read"],
        function=np.repeat([0, 1], [count, reads]),
        kind=np.zeros(count + reads, np.int8),
        start=np.concatenate([start, after]),
        end=np.concatenate([end, after + 1]),
        value=values(
            np.repeat(np.array([INTEGER, PAIR], np.int8), [count, reads]),
            np.concatenate([appended, first]),
            np.concatenate([np.zeros(count, np.int64), first + RANGE - 1]),
        ),
        result=values(
            np.repeat(np.array([INTEGER, OTHER], np.int8), [count, reads]),
            np.concatenate([offset, np.arange(reads)]),
        ),
        texts=texts,
    )


ROWS = (
    Row(name="log, valid", judge=LogWorkload(), make=history),
    Row(name="log, one append lost", judge=LogWorkload(), make=partial(history, lost=True), kinds=frozenset({"lost"})),
)
