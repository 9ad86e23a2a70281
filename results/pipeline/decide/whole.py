"""Splits the rows of a partition into whole keys; rows come in batches of any length."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from results.pipeline.decide.coding import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Columns = list[NDArray[Any]]


def stretches(*columns: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yields the bounds of each stretch of rows that are equal in all columns."""
    size = len(columns[0])
    new = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return pairwise([0, *(np.flatnonzero(new) + 1).tolist(), size] if size else [])


def whole_keys(
    batches: Iterator[pa.RecordBatch], names: Sequence[str], most: int
) -> Iterator[tuple[int, Columns | None]]:
    """Yields each key with its columns; None instead of the columns if it has more rows than `most`.

    Args:
        batches: Rows with the column `address`, sorted by it.
        names: The other columns, without nulls.
        most: The maximum number of rows of a key.
    """
    parts: list[Columns] = []
    key: int | None = None
    rows = 0

    def gathered() -> Columns | None:
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)] if rows <= most else None

    for batch in batches:
        addresses, *columns = (batch.column(name).to_numpy() for name in (ADDRESS, *names))
        for low, high in stretches(addresses):
            if addresses[low] != key:
                if key is not None:
                    yield key, gathered()
                key, rows, parts = int(addresses[low]), 0, []
            rows += high - low
            if rows > most:
                parts.clear()
            else:
                # Copies, because a slice would hold its whole batch in memory.
                parts.append([column[low:high].copy() for column in columns])
    if key is not None:
        yield key, gathered()
