"""Rows of the set workload: adds of unique integers, and five reads of all elements added so far."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.workloads.rows import Row, columns, overlapping, values
from checker.formats.columns import INTEGER, NOTHING, OTHER
from workloads.set import SetWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns

WIDTH = 5
READS = 5


def history(count: int, *, shuffled: bool = False, lost: bool = False) -> Columns:
    """Returns a set with `count` adds.

    Args:
        count: The number of adds.
        shuffled: Whether elements are added and returned in a random order instead of ascending.
        lost: Whether all reads lack the first element.
    """
    elements = np.random.default_rng(1).permutation(count) if shuffled else np.arange(count)
    start, end = overlapping(count, width=WIDTH)
    added = [count * number // READS for number in range(1, READS + 1)]
    texts = ["[" + ",".join(map(str, elements[int(lost) : number].tolist())) + "]" for number in added]
    began = 4 * end[np.array(added) - 1] + 1  # between two events of adds
    order = np.argsort(np.concatenate([4 * start, began]))
    nothing, zeros = np.full(READS, NOTHING, np.int8), np.zeros(READS, np.int64)
    whole = np.full(count, INTEGER, np.int8)
    return columns(
        ["add", "read"],
        function=np.repeat([0, 1], [count, READS]),
        kind=np.zeros(count + READS, np.int8),
        start=np.concatenate([4 * start, began]),
        end=np.concatenate([4 * end, began + 1]),
        value=values(np.concatenate([whole, nothing]), np.concatenate([elements, zeros])),
        result=values(
            np.concatenate([whole, np.full(READS, OTHER, np.int8)]), np.concatenate([elements, np.arange(READS)])
        ),
        texts=texts,
    ).only(order)


ROWS = (
    Row(name="set, valid", judge=SetWorkload(), make=history),
    Row(name="set, in random order", judge=SetWorkload(), make=partial(history, shuffled=True)),
    Row(name="set, one element lost", judge=SetWorkload(), make=partial(history, lost=True), kinds=frozenset({"lost"})),
)
