"""Tables of operations as input: runs' `operations.parquet`, and tables of Spark or others with the same columns.

Spark reads them in place. One pass before the analysis finds the runs in them, and the rows that are no operations. Nearly
always there are none, and then later passes need no filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t

from checker.formats.parquet import COLUMNS
from harness.op import OpType
from results.pipeline.errors import Unreadable, root_of, run_twice
from results.pipeline.read.sources import literal
from results.pipeline.schema import MOST_NS, OPERATIONS, QUARANTINE, TYPES, conform
from results.pipeline.spark.events import SAMPLE_CHARACTERS, plain_uri

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from results.pipeline.read.sources import Input

# The partitions of a written table. `run` stays a column, so that each file is complete; `run_folder` is derived from it.
PARTITIONS: Final = ("day", "run_folder")
MAX_FOLDER_NAME: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run in the input.

    Attributes:
        run: Its name.
        source: Its source.
        operations: How many rows it has; None for events that are not counted yet.
    """

    run: str
    source: Input
    operations: int | None


def read_tables(spark: SparkSession, sources: Sequence[Input]) -> DataFrame:
    """Returns the rows of tables of operations, with `source`, their URI, and Spark's `file`.

    Raises:
        Unreadable: A table cannot be read, lacks a column, or has one of another type.
    """
    parts = []
    if files := [source for source in sources if not source.is_folder]:
        # One query reads all files; a column that a file lacks is null, so its rows go to quarantine.
        rows = spark.read.schema(OPERATIONS).parquet(*(literal(source.data) for source in files))
        place = F.regexp_replace(
            F.expr("url_decode(replace(_metadata.file_path, '+', '%2B'))"), "^([a-z0-9+.-]+):///", "$1:/"
        )
        file = F.col("_metadata.file_path").alias("file")
        parts.append(rows.select(*OPERATIONS.names, place.alias("source"), file))
    for source in sources:
        if source.is_folder:
            try:
                rows = spark.read.parquet(literal(source.data))
            except (PySparkException, Py4JJavaError) as error:
                raise Unreadable(source.path, f"cannot be read as a table: {root_of(error)}") from error
            _require_columns(source, rows)
            place = F.lit(source.data)
            parts.append(conform(rows, OPERATIONS).withColumns({"source": place, "file": place}))
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


def trouble() -> Column:
    """Returns the problem of a row of a table of operations; null if there is none."""
    kind, last = F.col("type"), F.col("complete_index")
    return F.coalesce(
        *(
            F.when(F.col(column.name).isNull(), F.lit(f"expected a value in column {column.name!r}, found null"))
            for column in COLUMNS
            if not column.nullable
        ),
        F.when(
            ~kind.isin(*TYPES), F.format_string("expected a type ok, fail or info, found %s", F.substring(kind, 1, 60))
        ),
        F.when(
            (kind != str(OpType.INFO)) & last.isNull(),
            F.format_string("expected a complete_index for type %s, found null", kind),
        ),
        *(
            F.when(
                ~F.col(name).between(0, MOST_NS - 1),
                F.format_string(f"expected {name} within 0 and {MOST_NS} ns, found %s", name),
            )
            for name in ("start_ns", "end_ns", "scheduled_ns")
        ),
        *(
            F.when(F.col(name) < 0, F.format_string(f"expected {name} from 0 on, found %s", name))
            for name in ("process", "invoke_index")
        ),
        F.when(last <= F.col("invoke_index"), F.lit("expected a complete_index above the invoke_index")),
        F.when(
            last.isNull() & F.col("order").isNotNull(),
            F.format_string(
                "expected null in column 'order' of an operation without a completion, found %s", F.col("order")
            ),
        ),
        F.when(
            F.col("end_ns") < F.col("start_ns"),
            F.format_string("time decreases, from %s to %s ns", F.col("start_ns"), F.col("end_ns")),
        ),
        *(
            F.when(_is_no_json(name), F.lit(f"expected the JSON of a value in column {name!r}"))
            for name in ("value", "result")
        ),
    )


def _is_no_json(name: str) -> Column:
    # Nearly all values are integers; a cast is much cheaper than parsing.
    return F.expr(f"{name} is not null and try_cast({name} as bigint) is null and try_parse_json({name}) is null")


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
    counted = rows.groupBy("run", "file").agg(F.count("*").alias("rows"), F.count(trouble()).alias("bad")).collect()
    for run, file, count, bad in counted:
        refused_rows += bad
        source = by_data[file if file in by_data else plain_uri(file)]
        if run is None:
            continue
        if run in seen:
            raise run_twice(run, seen[run].source.path, source.path)
        seen[run] = Seen(run=run, source=source, operations=count)
    with_rows = {each.source.path for each in seen.values()}
    for source in sources:
        if source.path not in with_rows:
            if source.name in seen:
                raise run_twice(source.name, seen[source.name].source.path, source.path)
            seen[source.name] = Seen(run=source.name, source=source, operations=0)
    return sorted(seen.values(), key=lambda each: each.run), refused_rows


def refused(rows: DataFrame) -> DataFrame:
    """Returns the malformed rows of tables, for quarantine."""
    sample = F.substring(F.to_json(F.struct(*OPERATIONS.names)), 1, SAMPLE_CHARACTERS)
    bad = rows.select("source", "run", "key", "invoke_index", trouble().alias("reason"), sample.alias("sample"))
    return conform(bad.where("reason is not null"), QUARANTINE)


def fitting(rows: DataFrame) -> DataFrame:
    """Returns the rows of tables that are operations."""
    return rows.where(trouble().isNull()).select(*OPERATIONS.names)


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
    return spark.read.schema(OPERATIONS).parquet(folder).select(*OPERATIONS.names)
