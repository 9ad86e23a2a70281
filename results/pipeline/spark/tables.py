"""Tables of operations as input: runs' `operations.parquet`, and tables of Spark or others with the same columns.

Spark reads them in place. One pass before the analysis finds the runs in them, and the rows that are no operations. Nearly
always there are none, and then later passes need no filter.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t

from checker.formats.parquet import COLUMNS
from results.pipeline.errors import Unreadable, root_of, run_twice
from results.pipeline.read.rules import refused as refused_of
from results.pipeline.read.rules import troubles
from results.pipeline.read.sources import Seen, literal
from results.pipeline.schema import OPERATIONS, QUARANTINE
from results.pipeline.spark.events import plain_uri
from results.pipeline.spark.types import conform, struct_of
from results.pipeline.write.tables import MAX_FOLDER_NAME, PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.read.sources import Input

_COUNTED: Final = pa.schema({"run": pa.string(), "file": pa.string(), "rows": pa.int64(), "bad": pa.int64()})


def read_tables(spark: SparkSession, sources: Sequence[Input]) -> DataFrame:
    """Returns the rows of tables of operations, with `source`, their URI, and Spark's `file`.

    Raises:
        Unreadable: A table cannot be read, lacks a column, or has one of another type.
    """
    parts = []
    if files := [source for source in sources if not source.is_folder]:
        # One query reads all files; a column that a file lacks is null, so its rows go to quarantine.
        rows = spark.read.schema(struct_of(OPERATIONS)).parquet(*(literal(source.data) for source in files))
        address = F.regexp_replace(
            F.expr("url_decode(replace(_metadata.file_path, '+', '%2B'))"), "^([a-z0-9+.-]+):///", "$1:/"
        )
        file = F.col("_metadata.file_path").alias("file")
        parts.append(rows.select(*OPERATIONS.names, address.alias("source"), file))
    for source in sources:
        if source.is_folder:
            try:
                rows = spark.read.parquet(literal(source.data))
            except (PySparkException, Py4JJavaError) as error:
                raise Unreadable(source.path, f"cannot be read as a table: {root_of(error)}") from error
            _require_columns(source, rows)
            address = F.lit(source.data)
            parts.append(conform(rows, OPERATIONS).withColumns({"source": address, "file": address}))
    return union(parts)


def _require_columns(source: Input, rows: DataFrame) -> None:
    have = {field.name: field.dataType for field in rows.schema.fields}
    for column in COLUMNS:
        if column.name not in have:
            if column.optional:
                continue
            raise Unreadable(source.path, f"expected a column {column.name!r}, found {', '.join(have)}")
        kind = have[column.name]
        fits = isinstance(kind, t.IntegralType if column.kind == "int64" else t.StringType | t.NullType)
        if not fits:
            expected = "integers" if column.kind == "int64" else "strings"
            raise Unreadable(source.path, f"expected {expected} in column {column.name!r}, found {kind.simpleString()}")


def look_over(rows: DataFrame, sources: Sequence[Input]) -> tuple[list[Seen], int]:
    """Reads all rows of tables once.

    Returns:
        The runs in the tables, and the number of malformed rows. A source without rows is a run without operations.

    Raises:
        BadInput: Two sources hold a run of the same name.
    """
    by_data = {source.data: source for source in sources}
    seen: dict[str, Seen] = {}
    refused_rows = 0
    # Grouped by Spark's name of a file: making a URI of it for each row takes longer than all the rest.
    partial = rows.select(*OPERATIONS.names, "file").mapInArrow(_counted, struct_of(_COUNTED))
    counted = partial.groupBy("run", "file").agg(F.sum("rows").alias("rows"), F.sum("bad").alias("bad")).collect()
    for run, file, count, bad in counted:
        refused_rows += bad
        source = by_data[file if file in by_data else plain_uri(file)]
        if run is None:
            continue
        if run in seen:
            raise run_twice(run, seen[run].source.path, source.path)
        seen[run] = Seen(run=run, source=source, operations=count)
    with_rows = {history.source.path for history in seen.values()}
    for source in sources:
        if source.path not in with_rows:
            if source.name in seen:
                raise run_twice(source.name, seen[source.name].source.path, source.path)
            seen[source.name] = Seen(run=source.name, source=source, operations=0)
    return sorted(seen.values(), key=lambda history: history.run), refused_rows


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Counts the rows of each run and file, and those that are no operations."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        reasons = troubles(rows)
        bad = pa.nulls(rows.num_rows, pa.string()) if reasons is None else reasons
        groups = rows.select(["run", "file"]).append_column("bad", bad).group_by(["run", "file"], use_threads=False)
        counts = groups.aggregate([([], "count_all"), ("bad", "count")])
        yield from pa.table([counts.column(index) for index in range(4)], schema=_COUNTED).to_batches()


def refused(rows: DataFrame) -> DataFrame:
    """Returns the malformed rows of tables, for quarantine."""

    def bad(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            its = pa.Table.from_batches([batch])
            reasons = troubles(its)
            if reasons is not None:
                # A batch has rows of several files, in their order.
                yield from refused_of(its, reasons, its.column("source")).to_batches()

    return rows.select(*OPERATIONS.names, "source").mapInArrow(bad, struct_of(QUARANTINE))


def fitting(rows: DataFrame) -> DataFrame:
    """Returns the rows of tables that are operations."""

    def good(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            reasons = troubles(pa.Table.from_batches([batch]))
            yield batch if reasons is None else batch.filter(pc.is_null(reasons))

    return rows.select(*OPERATIONS.names).mapInArrow(good, struct_of(OPERATIONS))


def union(parts: Sequence[DataFrame]) -> DataFrame:
    """Returns the rows of all parts, of which there is at least one."""
    return reduce(lambda one, other: one.unionByName(other), parts)


def write_operations(spark: SparkSession, operations: DataFrame, days: Mapping[str, str], folder: str) -> DataFrame:
    """Writes a table of operations, in folders of days and runs, and returns its rows.

    `labrys check` can read each file: it has all columns, and its rows are sorted by their invokes.

    Args:
        spark: The session.
        operations: The operations.
        days: The day of each run.
        folder: The folder of the table, which does not exist yet.
    """
    day = spark.createDataFrame(sorted(days.items()), "run string, day string")
    name = F.substring(F.regexp_replace("run", "[^A-Za-z0-9._+-]", "_"), -MAX_FOLDER_NAME, MAX_FOLDER_NAME)
    (
        operations.select(*OPERATIONS.names)
        .join(F.broadcast(day), "run", "left")
        .select(*OPERATIONS.names, "day", name.alias("run_folder"))
        .hint("rebalance", *PARTITIONS)
        .sortWithinPartitions(*PARTITIONS, "run", "invoke_index")
        .write.partitionBy(*PARTITIONS)
        .parquet(folder)
    )
    return spark.read.schema(struct_of(OPERATIONS)).parquet(folder).select(*OPERATIONS.names)
