"""The rows of the table of judges: a history, its judge, and the expected anomalies.

A workload adds its rows in a module beside this one, such as `log_rows`, with a list `ROWS`; `run.py` finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import ColumnOfValues, Columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.formats.columns import Int8s, Int64s
    from checker.judging import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row.

    Attributes:
        name: The first column.
        judge: The judge.
        make: Returns a history of one object with a number of operations, without its reads.
        kinds: The expected kinds of anomalies; none if the history is valid.
    """

    name: str
    judge: Judge
    make: Callable[[int], Columns]
    kinds: frozenset[str] = frozenset()


def values(kind: Int8s, first: Int64s, second: Int64s | None = None) -> ColumnOfValues:
    """Returns the values of a column."""
    return ColumnOfValues(kind=kind, first=first, second=np.zeros_like(first) if second is None else second)


def columns(
    functions: Sequence[str],
    *,
    function: Int64s,
    kind: Int8s,
    start: Int64s,
    end: Int64s,
    value: ColumnOfValues,
    result: ColumnOfValues,
    texts: Sequence[str] = (),
) -> Columns:
    """Returns operations of one object without a key. An event takes a microsecond, and there are a hundred processes."""
    count = len(start)
    return Columns(
        keys=[None],
        functions=functions,
        texts=texts,
        key=np.zeros(count, np.int32),
        function=function.astype(np.int32),
        type=kind,
        process=np.arange(count) % 100,
        start=start,
        end=end,
        start_ns=start * 1000,
        end_ns=np.where(end == np.iinfo(np.int64).max, -1, end) * 1000,
        value=value,
        result=result,
    )


def overlapping(count: int, *, width: int) -> tuple[Int64s, Int64s]:
    """Returns starts and ends of operations, of which `width` are always open; each ends before the next `width` begin."""
    number = np.arange(count)
    start = np.where(number < width, number, 2 * number - width + 1)
    return start, 2 * number + width
