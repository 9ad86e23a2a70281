"""From the operations of a register to one row for each value: who wrote it, and between what it was seen.

Grouping is by value, so one key that holds all operations is no heavier than many keys, and all who saw one value are combined
before they travel. Every number is kept as a plain 64-bit integer, because then Spark aggregates in place and without sorting.

A row has `h` and the value `v`, and

- of its writers: `writers` (how many), `ws` and `we` (interval), `cas` (how many were a compare-and-set), `expected`;
- of the reads that returned it: `reads`, `rs` (greatest start), `re` (least end);
- `failed`: how many failed compare-and-sets say that the value was not this one;
- `general`: how many operations are not said in integers.

`NEG` and `INF` stand for the greatest and least of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from results.pipeline.coding import GENERAL, INF, NEG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame


def value_of(f: Column, a: Column, b: Column) -> Column:
    """Returns the value that an operation makes or sees."""
    return F.when(f == CAS, b).otherwise(a)


def clusters(touches: DataFrame) -> DataFrame:
    """Returns a row for each key and value of coded operations."""
    f, s, e = touches["f"], touches["s"], touches["e"]
    writes, reads = f.isin(WRITE, CAS), f == READ
    least, greatest = F.lit(INF), F.lit(NEG)

    def count(what: Column) -> Column:
        return F.when(what, 1).otherwise(0).cast("long")

    return (
        touches.select(
            "h",
            value_of(f, touches["a"], touches["b"]).alias("v"),
            count(writes).alias("writers"),
            F.when(writes, s).otherwise(least).alias("ws"),
            F.when(writes, e).otherwise(least).alias("we"),
            count(f == CAS).alias("cas"),
            F.when(f == CAS, touches["a"]).otherwise(least).alias("expected"),
            count(reads).alias("reads"),
            F.when(reads, s).otherwise(greatest).alias("rs"),
            F.when(reads, e).otherwise(least).alias("re"),
            count(f == CAS_FAIL).alias("failed"),
            count(f >= GENERAL).alias("general"),
        )
        .groupBy("h", "v")
        .agg(
            F.sum("writers").alias("writers"),
            F.min("ws").alias("ws"),
            F.min("we").alias("we"),
            F.sum("cas").alias("cas"),
            F.min("expected").alias("expected"),
            F.sum("reads").alias("reads"),
            F.max("rs").alias("rs"),
            F.min("re").alias("re"),
            F.sum("failed").alias("failed"),
            F.sum("general").alias("general"),
        )
    )


def until(touches: DataFrame, ends: Mapping[int, int]) -> DataFrame:
    """Returns histories up to and with the returns at `ends`, by `h`.

    What returned later is open, and what began later is not there. Keys without an end are left out. A read that is still open
    says nothing.
    """
    spark = touches.sparkSession
    bounds = spark.createDataFrame(list(ends.items()), "h bigint, until bigint")
    last = F.lit(max(ends.values()))
    open_then = F.col("e") > F.col("until")
    return (
        touches.where(F.col("s") <= last)
        .join(F.broadcast(bounds), "h")
        .where((F.col("s") <= F.col("until")) & ~(open_then & (F.col("f") == READ)))
        .withColumn("e", F.when(open_then, F.lit(INF)).otherwise(F.col("e")))
        .drop("until")
    )
