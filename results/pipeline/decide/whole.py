"""Tells apart and gathers whole keys from the rows of a partition, which come in batches of any length."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from results.pipeline.decide.columns import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Columns = list[NDArray[Any]]


def stretches(*columns: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yields where each stretch of rows that are equal in all columns begins and ends."""
    size = len(columns[0])
    new = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return pairwise([0, *(np.flatnonzero(new) + 1).tolist(), size] if size else [])


def whole_keys(
    batches: Iterator[pa.RecordBatch], names: Sequence[str], most: int
) -> Iterator[tuple[int, Columns | None]]:
    """Yields each key with its columns; None for those of a key with more rows than `most`.

    Args:
        batches: Rows with the column `address`, all of a key together.
        names: The columns that are wanted, without nulls.
        most: How many rows of a key are kept at most.
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
                # A slice would hold all of its batch.
                parts.append([column[low:high].copy() for column in columns])
    if key is not None:
        yield key, gathered()
