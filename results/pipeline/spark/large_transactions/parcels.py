"""Moves rows through Spark in parcels: many rows of one bucket are one value of Spark.

The rule: Spark moves, sorts and spills parcels, and never single rows. So a shuffle costs what its bytes cost. A parcel is a
batch in Arrow's format between processes, without its schema, which both ends know. The rows of a bucket fit into the
memory of a worker; those of a partition of Spark need not.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from results.pipeline.decide.whole import stretches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker.formats.columns import Int64s

PARCELS: Final = pa.schema({"bucket": pa.int64(), "content": pa.binary()})
PARCEL_BYTES: Final = 1 << 22  # of rows that become one parcel, at most
_BATCH_BYTES: Final = 1 << 25  # of parcels that go to Spark at once, about


def packed(rows: Iterator[tuple[Int64s, pa.RecordBatch]], schema: pa.Schema, memory: int) -> Iterator[pa.RecordBatch]:
    """Yields parcels (`PARCELS`).

    Args:
        rows: Batches of rows, each with the buckets of its rows.
        schema: Of the rows.
        memory: Bytes of rows that are collected, so that parcels have many rows.
    """
    kept: list[pa.RecordBatch] = []
    buckets: list[Int64s] = []
    size = 0
    for of, batch in rows:
        if not batch.num_rows:
            continue
        kept.append(batch)
        buckets.append(of)
        size += batch.nbytes
        if size > memory:
            yield from _parcels(np.concatenate(buckets), pa.Table.from_batches(kept, schema=schema))
            kept, buckets, size = [], [], 0
    if kept:
        yield from _parcels(np.concatenate(buckets), pa.Table.from_batches(kept, schema=schema))


def _parcels(buckets: Int64s, table: pa.Table) -> Iterator[pa.RecordBatch]:
    most = max(1, PARCEL_BYTES * table.num_rows // max(1, table.nbytes))
    order = np.argsort(buckets, kind="stable")
    buckets = buckets[order]
    rows = table.take(pa.array(order)).combine_chunks().to_batches()[0]
    numbers: list[int] = []
    parts: list[pa.RecordBatch] = []
    size = 0
    for low, high in stretches(buckets):
        for at in range(low, high, most):
            part = rows.slice(at, min(most, high - at))
            numbers.append(int(buckets[low]))
            parts.append(part)
            size += part.nbytes
        if size > _BATCH_BYTES:
            yield _batch(numbers, parts, table.schema)
            numbers, parts, size = [], [], 0
    if parts:
        yield _batch(numbers, parts, table.schema)


def _batch(numbers: Sequence[int], parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(numbers, pa.int64()), contents(parts, schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=PARCELS)


def contents(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Array:
    """Returns the content of a parcel for each batch, as a column of bytes."""
    sink = pa.BufferOutputStream()
    begin = schema.serialize().size
    ends = [begin]
    with ipc.new_stream(sink, schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        for batch in batches:
            writer.write_batch(batch)
            ends.append(sink.tell())
    offsets = pa.py_buffer(np.array(ends, np.int32))
    return pa.Array.from_buffers(pa.binary(), len(batches), [None, offsets, sink.getvalue()])


def batch_of(content: pa.BinaryScalar, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the rows of a parcel."""
    return ipc.read_record_batch(content.as_buffer(), schema)


def unpacked(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Yields each bucket with its rows, from parcels in the order of buckets."""

    def parcels() -> Iterator[tuple[int, Any]]:
        for batch in batches:
            yield from zip(batch.column("bucket").to_pylist(), batch.column("content"), strict=True)

    for bucket, some in groupby(parcels(), itemgetter(0)):
        yield bucket, (batch_of(content, schema) for _, content in some)
