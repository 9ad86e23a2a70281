"""Makes one row for each value of a register from its operations: its writer, and the interval in which it was observed.

Spark groups by value, so one key with all operations costs no more than many keys. It combines the operations of a value before
the shuffle. Every number is a plain 64-bit integer, which Spark aggregates in place and without sorting.

A row has `address`, `value`, and these columns:

- of its writers: `writers` (how many), `write_start` and `write_end` (interval), `cas` (how many are compare-and-sets),
  `expected`;
- of the reads that returned it: `reads`, `last_read_start` (maximum start), `first_read_end` (minimum end);
- of the compare-and-sets that expect it: `waits` (how many), `first_expecting_end` (minimum end);
- `failed`: how many failed compare-and-sets observed that the value was not this one;
- `general`: how many operations have no coding in integers;
- if the operations have the columns `after_0` and `after_1`: these, and `since_0` and `since_1`, the minimum end of the reads
  that begin after them.

`results.pipeline.large_keys.columns` has the types. `NEG` is the maximum of no numbers, and `INF` the minimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from results.pipeline.decide.coding import ADDRESS, GENERAL, INF, NEG
from results.pipeline.large_keys.columns import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

AFTER: Final = ("after_0", "after_1")


def value_of() -> Column:
    """Returns the value that a coded operation writes or observes."""
    return F.when(F.col("opcode") == CAS, F.col("second_argument")).otherwise(F.col("first_argument"))


def has_cas(touches: DataFrame) -> bool:
    """Returns whether coded operations contain a compare-and-set."""
    return not touches.where(F.col("opcode") == CAS).isEmpty()


def clusters(touches: DataFrame, *, chained: bool) -> DataFrame:
    """Returns a row for each key and value of coded operations.

    Args:
        touches: Coded operations, perhaps with the columns `AFTER`.
        chained: Whether there may be compare-and-sets. The query is faster without them, since no operation expects a value.
    """
    opcode, start, end = F.col("opcode"), F.col("start"), F.col("end")
    least, greatest = F.lit(INF), F.lit(NEG)
    expects = F.lit(col=False)
    if chained:
        # A compare-and-set belongs to two values.
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
    """Returns the prefixes of histories that end with the returns at `ends`, by `address`.

    Operations that return later are open, and operations that begin later are left out. So are open reads, which observe
    nothing, and keys without an end.
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
