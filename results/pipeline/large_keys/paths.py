"""Finds the values that other values depend on: back along compare-and-sets to a write or to the initial value.

A chain can be as long as the history, but each link is only a few numbers. So one worker examines all links of a key, if they
fit into its memory limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.decide.coding import ADDRESS
from results.pipeline.decide.whole import whole_keys
from results.pipeline.large_keys.columns import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    Wanted = Mapping[int, Sequence[int]]

# The longest path in a counterexample, in values: nobody can read a longer one.
LONGEST: Final = 2000
# The memory of a link: its columns twice, while they are sorted.
BYTES_PER_LINK: Final = 64
_PATHS: Final = schema_of(ADDRESS, "path", "root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """What some values of a key depend on.

    Attributes:
        values: The values that lead to them, and these themselves.
        root: The first value of the chain of the first of them.
    """

    values: frozenset[int]
    root: int


def paths(values: DataFrame, wanted: Wanted, memory_limit: int) -> dict[int, Path]:
    """Returns by key the paths to some values; keys are left out if the links or the path are too long.

    Args:
        values: The rows of `results.pipeline.large_keys.clusters`.
        wanted: Values by key.
        memory_limit: Bytes for the links of a key.
    """
    keys = F.broadcast(values.sparkSession.createDataFrame([(address,) for address in wanted], schema_of(ADDRESS)))
    walk = partial(_walk, wanted=wanted, most=memory_limit // BYTES_PER_LINK, longest=LONGEST)
    rows = links(values.join(keys, ADDRESS, "left_semi")).mapInArrow(walk, _PATHS).collect()
    # A key without compare-and-sets has no row.
    found = {address: Path(values=frozenset(some), root=some[0]) for address, some in wanted.items()}
    for row in rows:
        if row["path"] is None:
            del found[row[ADDRESS]]
        else:
            found[row[ADDRESS]] = Path(values=frozenset(row["path"]), root=row["root"])
    return found


def links(values: DataFrame) -> DataFrame:
    """Returns the value that each compare-and-set writes and the value that it expects, sorted by key."""
    rows = values.where(F.col("cas") > 0).select(ADDRESS, "value", "expected")
    return rows.repartition(ADDRESS).sortWithinPartitions(ADDRESS)


def _walk(batches: Iterator[pa.RecordBatch], wanted: Wanted, most: int, longest: int) -> Iterator[pa.RecordBatch]:
    for key, columns in whole_keys(batches, ("value", "expected"), most):
        yield _row(key, None if columns is None else _path(columns, wanted[key], longest))


def _path(links: Sequence[NDArray[np.int64]], values: Sequence[int], longest: int) -> Path | None:
    made, expected = links
    order = np.argsort(made)
    made, expected = made[order], expected[order]
    path: set[int] = set()
    roots = []
    for value in values:
        current = value
        while current not in path:
            path.add(current)
            if len(path) > longest:
                return None
            place = int(np.searchsorted(made, current))
            if place == len(made) or made[place] != current:
                break
            current = int(expected[place])
        roots.append(current)
    return Path(values=frozenset(path), root=roots[0])


def _row(key: int, path: Path | None) -> pa.RecordBatch:
    columns = [
        pa.array([key], pa.int64()),
        pa.array([None if path is None else sorted(path.values)], pa.list_(pa.int64())),
        pa.array([None if path is None else path.root], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=_PATHS.names)
