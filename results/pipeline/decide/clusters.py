"""From the operations of a register to one row for each value: who wrote it, and between what it was seen.

Grouping is by value, so one key that holds all operations is no heavier than many keys, and all who saw one value are combined
before they travel. Every number is kept as a plain 64-bit integer, because then Spark aggregates in place and without sorting.

A row has `address` and `value`, and

- of its writers: `writers` (how many), `write_start` and `write_end` (interval), `cas` (how many were a compare-and-set),
  `expected`;
- of the reads that returned it: `reads`, `last_read_start` (greatest start), `first_read_end` (least end);
- of the compare-and-sets that expect it: `waits` (how many), `first_expecting_end` (least end);
- `failed`: how many failed compare-and-sets say that the value was not this one;
- `general`: how many operations are not said in integers;
- where it is asked from when on something is seen that began after `after_0` and `after_1`: these, and `since_0` and
  `since_1`, the least ends of such reads.

`results.pipeline.decide.columns` has the type of each.
`NEG` and `INF` stand for the greatest and least of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from results.pipeline.decide.coding import GENERAL, INF, NEG
from results.pipeline.decide.columns import ADDRESS, schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

AFTER: Final = ("after_0", "after_1")


def value_of() -> Column:
    """Returns the value that a coded operation makes or sees."""
    return F.when(F.col("opcode") == CAS, F.col("second_argument")).otherwise(F.col("first_argument"))


def has_cas(touches: DataFrame) -> bool:
    """Says whether there is a compare-and-set among coded operations."""
    return not touches.where(F.col("opcode") == CAS).isEmpty()


def clusters(touches: DataFrame, *, chained: bool) -> DataFrame:
    """Returns a row for each key and value of coded operations.

    Args:
        touches: Coded operations; those with the columns `AFTER` are asked about what began after these.
        chained: Whether there may be compare-and-sets. Without them nobody expects a value, which is quicker to find.
    """
    opcode, start, end = F.col("opcode"), F.col("start"), F.col("end")
    least, greatest = F.lit(INF), F.lit(NEG)
    expects = F.lit(col=False)
    if chained:
        # A compare-and-set says something of two values.
        sides = F.when(opcode == CAS, F.array(F.lit(col=False), F.lit(col=True))).otherwise(F.array(F.lit(col=False)))
        touches = touches.withColumn("expects", F.explode(sides))
        expects = F.col("expects")
    writes, reads = opcode.isin(WRITE, CAS) & ~expects, opcode == READ
    is_cas = (opcode == CAS) & ~expects

    def count(what: Column) -> Column:
        return F.sum(F.when(what, 1).otherwise(0).cast("long"))

    def lowest(what: Column, number: Column) -> Column:
        return F.min(F.when(what, number).otherwise(least))

    asked = {}
    if AFTER[0] in touches.columns:
        for mark, after in enumerate(AFTER):
            asked[f"since_{mark}"] = lowest(reads & (start > F.col(after)), end)
            asked[after] = F.min(after)
    columns = {
        "writers": count(writes),
        "write_start": lowest(writes, start),
        "write_end": lowest(writes, end),
        "cas": count(is_cas),
        "expected": lowest(is_cas, F.col("first_argument")),
        "reads": count(reads),
        "last_read_start": F.max(F.when(reads, start).otherwise(greatest)),
        "first_read_end": lowest(reads, end),
        "failed": count(opcode == CAS_FAIL),
        "general": count(opcode >= GENERAL),
        **asked,
    }
    if chained:
        columns |= {"waits": count(expects), "first_expecting_end": lowest(expects, end)}
    value = F.when(expects, F.col("first_argument")).otherwise(value_of())
    named = [column.alias(name) for name, column in columns.items()]
    values = touches.groupBy(ADDRESS, value.alias("value")).agg(*named)
    return values if chained else values.withColumns({"waits": F.lit(0).cast("long"), "first_expecting_end": least})


def until(touches: DataFrame, ends: Mapping[int, int]) -> DataFrame:
    """Returns histories up to and with the returns at `ends`, by `address`.

    What returned later is open, and what began later is not there. Keys without an end are left out. A read that is still open
    says nothing.
    """
    spark = touches.sparkSession
    bounds = spark.createDataFrame(list(ends.items()), schema_of(ADDRESS, "until"))
    last = F.lit(max(ends.values()))
    open_then = F.col("end") > F.col("until")
    return (
        touches.where(F.col("start") <= last)
        .join(F.broadcast(bounds), ADDRESS)
        .where((F.col("start") <= F.col("until")) & ~(open_then & (F.col("opcode") == READ)))
        .withColumn("end", F.when(open_then, F.lit(INF)).otherwise(F.col("end")))
        .drop("until")
    )
