"""Rows of several tables in one DataFrame, so that one function of a run can take and give all of them.

An envelope is `run`, `kind` and `content`, a JSON value. The rows of a table have the table's name as their `kind`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.schema import TABLES
from results.pipeline.spark.types import struct_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

ENVELOPE: Final = pa.schema({"run": pa.string(), "kind": pa.string(), "content": pa.string()})
_LAYOUT: Final = struct_of(ENVELOPE)

# By kind, the contents of a run.
Contents: TypeAlias = "Mapping[str, list[Any]]"


def sealed(rows: Iterable[tuple[str, str, Any]]) -> pa.Table:
    """Returns envelopes of a run, a kind and a content each."""
    texts = [(run, kind, json.dumps(content)) for run, kind, content in rows]
    columns = zip(*texts, strict=True) if texts else ((), (), ())
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=ENVELOPE)


def posted(spark: SparkSession, rows: Iterable[tuple[str, str, Any]]) -> DataFrame:
    """Returns envelopes that the driver makes."""
    return spark.createDataFrame([tuple(row.values()) for row in sealed(rows).to_pylist()], _LAYOUT)


def opened(envelopes: pa.Table) -> Contents:
    """Returns the contents of the envelopes of a run, by kind."""
    contents: dict[str, list[Any]] = {}
    for kind, content in zip(*(envelopes.column(name).to_pylist() for name in ("kind", "content")), strict=True):
        contents.setdefault(kind, []).append(json.loads(content))
    return contents


def mapped(rows: DataFrame, seal: Callable[[pa.RecordBatch], Iterable[tuple[str, str, Any]]]) -> DataFrame:
    """Returns the envelopes that a function makes of each batch of rows."""

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from sealed(seal(batch)).to_batches()

    return rows.mapInArrow(make, _LAYOUT)


def by_run(envelopes: DataFrame, tables: Callable[[str, Contents], Mapping[str, Iterable[Any]]]) -> DataFrame:
    """Returns the rows of tables that a function makes for each run, as envelopes.

    Args:
        envelopes: The envelopes of runs.
        tables: Returns rows by the name of their table, given a run and its contents.
    """

    def make(its: pa.Table) -> pa.Table:
        run = its.column("run")[0].as_py()
        made = tables(run, opened(its))
        return sealed((run, name, row) for name, rows in made.items() for row in rows)

    return envelopes.groupBy("run").applyInArrow(make, _LAYOUT)


def table_of(envelopes: DataFrame, name: str) -> DataFrame:
    """Returns the rows of a table from their envelopes."""
    layout = TABLES[name]
    maps = [field.name for field in layout if pa.types.is_map(field.type)]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [json.loads(content) for content in batch.column(0).to_pylist()]
            for row in rows if maps else ():
                row |= {column: [tuple(pair) for pair in row[column]] for column in maps}
            yield pa.RecordBatch.from_pylist(
                [{column: row.get(column) for column in layout.names} for row in rows], layout
            )

    return envelopes.where(F.col("kind") == name).select("content").mapInArrow(read, struct_of(layout))
