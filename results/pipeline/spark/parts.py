"""Large histories in JSON Lines: each task reads a range of the bytes of a file, from one end of a line to another.

`results.pipeline.read.parts` reads the lines of a range, and joins what crosses its ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.read.events import OPERATION, ROWS
from results.pipeline.read.parts import LINE, OPEN, PART, PART_ROWS, UNPLAIN, ends_of, joined, read_part
from results.pipeline.read.sources import literal
from results.pipeline.spark.tables import union
from results.pipeline.spark.types import conform, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.read.sources import Input

PART_BYTES: Final = 1 << 25


def read_in_parts(spark: SparkSession, run: str, source: Input, folder: str, *, keyed: bool | None) -> DataFrame | None:
    """Reads a history of events, and writes its rows; None if one task has to read it.

    Args:
        spark: The session.
        run: The run.
        source: The history, in JSON Lines with a header, not compressed.
        folder: Where the rows are written.
        keyed: As in `labrys check`.
    """
    # Each range is a task of its own. The settings need a session of their own.
    split = spark.newSession()
    for name, value in (("maxPartitionBytes", PART_BYTES), ("openCostInBytes", 1 << 40), ("minPartitionNum", 1)):
        split.conf.set(f"spark.sql.files.{name}", str(value))
    lines = split.read.text(literal(source.data), lineSep="\n").select(
        F.col("value").cast("binary").alias("line"), F.col("_metadata.file_block_start").alias("begin")
    )
    read = partial(read_part, run=run, file=source.data, keyed=bool(keyed))
    lines.mapInArrow(read, struct_of(PART_ROWS)).write.parquet(folder)
    rows = spark.read.schema(struct_of(PART_ROWS)).parquet(folder)
    ends = ends_of([row.asDict() for row in rows.where(F.col("row").isin(PART, UNPLAIN)).collect()])
    if ends is None:
        return None
    crossing = F.broadcast(spark.createDataFrame(ends.crossing, "begin long, process long"))
    open_ones = rows.where(F.col("row") == OPEN)
    left = open_ones.join(crossing, ["begin", "process"], "left_semi").select(*PART_ROWS.names)
    missing = joined(
        ends,
        [row.asDict() for row in left.unionByName(rows.where(F.col("row") == LINE)).collect()],
        run,
        source.data,
        keyed=bool(keyed),
    )
    if missing is None:
        return None
    spark.createDataFrame(pa.Table.from_batches(missing, schema=ROWS)).write.parquet(f"{folder}.joined")
    rest = open_ones.join(crossing, ["begin", "process"], "left_anti").withColumn("row", F.lit(OPERATION))
    parts = [rows.where(F.col("row") == OPERATION), rest]
    named = [conform(part, ROWS) for part in parts]
    return union([*named, spark.read.schema(struct_of(ROWS)).parquet(f"{folder}.joined")])
