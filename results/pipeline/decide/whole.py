"""Splits the rows of a partition into whole keys; rows come in batches of any length."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Columns = list[NDArray[Any]]


def stretches(*columns: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yields the bounds of each stretch of rows that are equal in all columns."""
    size = len(columns[0])
    new = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return pairwise([0, *(np.flatnonzero(new) + 1).tolist(), size] if size else [])
