"""Joins the values that compare-and-sets link into chains, as dataflow.

A compare-and-set links the value that it expects to the value that it writes. Spark brings the operations of one value together
by its number, but neighbours in a chain have different numbers. They are close in time, though. So the join has two steps:

1. Values go into slices of the timeline. Nearly every chain finds its next value in the same slice, and
   `results.pipeline.large_keys.contraction` joins the values of a slice.
2. One worker for each key joins the pieces that are left, in the order of time. There are about as many pieces as slices and
   processes. The worker keeps only the pieces that still wait for another one.

Each complete chain is then a block: it stands among the other zones as a single value does.

A key gets the outcome `UNSOLVED` if its waiting pieces need more than the memory limit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.decide.coding import ADDRESS, INF, NEG
from results.pipeline.large_keys.clusters import AFTER
from results.pipeline.large_keys.columns import schema_of
from results.pipeline.large_keys.contraction import COLUMNS, MARKS, OPEN, ROOTED, UNSOLVED, UNWRITTEN, contract
from results.pipeline.large_keys.zones import slice_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from results.pipeline.large_keys.contraction import Contracted, Integers, Pieces

_ROWS_PER_CALL: Final = 1 << 17
# The memory of a piece while it is joined: its columns, the columns of the result, and working arrays.
BYTES_PER_PIECE: Final = 800


def linked() -> Column:
    """Returns whether a value is part of a chain: a compare-and-set writes it, or one expects it."""
    return (F.col("cas") > 0) | (F.col("waits") > 0)


def pieces(values: DataFrame, initial: int) -> DataFrame:
    """Returns a piece for each of these values."""
    is_initial, is_cas, written = F.col("value") == initial, F.col("cas") > 0, F.col("writers") > 0
    previous = F.when(is_cas, F.col("expected")).when(written | is_initial, ROOTED).otherwise(UNWRITTEN)
    seen = F.least("write_end", "first_read_end", "first_expecting_end") < INF
    ends = F.when(is_initial, NEG).otherwise(F.least("write_end", "first_read_end"))
    columns = {
        ADDRESS: F.col(ADDRESS),
        "write_start": F.when(is_initial, -1).otherwise(F.col("write_start")),
        "previous_value": previous,
        "first_value": F.col("value"),
        "last_value": F.col("value"),
        "waits": F.col("waits"),
        "alive": F.when(is_cas & ~seen, 0).otherwise(1),
        "min_end": ends,
        "min_end_value": F.col("value"),
        "max_start": F.greatest(F.when(written, F.col("write_start")).otherwise(NEG), "last_read_start"),
        "max_start_value": F.col("value"),
    }
    for mark, after in enumerate(AFTER) if AFTER[0] in values.columns else ():
        late = written & (F.col("write_start") > F.col(after))
        since = F.col(f"since_{mark}")
        columns[f"since_{mark}"] = F.when(late & is_cas, F.least(since, ends)).when(late, NEG).otherwise(since)
        columns[f"opened_{mark}"] = F.when(late & is_cas, 1).otherwise(0)
    return values.select(*(column.cast("long").alias(name) for name, column in columns.items()))


def joined_in_slices(pieces: DataFrame, bucket_events: int) -> DataFrame:
    """Joins pieces that are close in time; returns rows with an `outcome`, which is `OPEN` for pieces that still wait."""
    spread = pieces.withColumn("slice", slice_of(F.col("write_start"), bucket_events)).repartition(ADDRESS, "slice")
    rows = spread.sortWithinPartitions(ADDRESS, "slice", "write_start").drop("slice")
    return rows.mapInArrow(_join_some, schema_of("outcome", *pieces.columns))


def joined_at_last(left: DataFrame, memory_limit: int) -> DataFrame:
    """Joins the pieces that are left of the slices; no row of the result is `OPEN`."""
    rows = left.drop("outcome").repartition(ADDRESS).sortWithinPartitions(ADDRESS, "write_start")
    most = max(memory_limit // BYTES_PER_PIECE, 1)
    return rows.mapInArrow(partial(_join_all, most=most), schema_of("outcome", *rows.columns))


def _join_some(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts: list[Pieces] = []
    rows = 0
    for batch in batches:
        parts.append(_columns(batch))
        rows += batch.num_rows
        if rows >= _ROWS_PER_CALL:
            yield from _rows(contract(_together(parts), whole=False))
            parts, rows = [], 0
    if rows:
        yield from _rows(contract(_together(parts), whole=False))


def _join_all(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Joins the pieces of whole keys, which come in the order of time; keeps at most `most` pieces of a key."""
    parts: list[Pieces] = []
    rows, due = 0, min(_ROWS_PER_CALL, most)
    given_up: int | None = None
    for batch in batches:
        columns = _columns(batch)
        if given_up is not None:
            columns = _where(columns, columns[ADDRESS] != given_up)
        parts.append(columns)
        rows += len(columns[ADDRESS])
        if rows < due:
            continue
        # All keys but the last are whole.
        pieces = _together(parts)
        last = int(pieces[ADDRESS][-1])
        yield from _rows(contract(_where(pieces, pieces[ADDRESS] != last), whole=True))
        answer = contract(_where(pieces, pieces[ADDRESS] == last), whole=False)
        yield from _done(answer.done)
        parts, rows = [answer.left], len(answer.left[ADDRESS])
        if rows > most:
            given_up = last
            yield from _done({name: np.array([UNSOLVED if name == "outcome" else last]) for name in answer.done})
            parts, rows = [], 0
        # Doubled, so that waiting pieces are not scanned again for each batch.
        due = max(min(_ROWS_PER_CALL, most), 2 * rows)
    if rows:
        yield from _rows(contract(_together(parts), whole=True))


def _columns(batch: pa.RecordBatch) -> Pieces:
    names = [name for name in (*COLUMNS, *MARKS) if name in batch.schema.names]
    return {name: batch.column(name).to_numpy() for name in names}


def _together(parts: Sequence[Pieces]) -> Pieces:
    return parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _where(pieces: Pieces, which: Integers) -> Pieces:
    return {name: column[which] for name, column in pieces.items()}


def _rows(answer: Contracted) -> Iterator[pa.RecordBatch]:
    left = {"outcome": np.full(len(answer.left[ADDRESS]), OPEN, np.int64), **answer.left}
    yield from _done(_together([left, answer.done]))


def _done(rows: Pieces) -> Iterator[pa.RecordBatch]:
    if len(rows[ADDRESS]):
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in rows.values()], names=list(rows))
