"""From the operations of a register to one row for each value: who wrote it, and between what it was seen.

Grouping is by value, so one key that holds all operations is no heavier than many keys, and all who saw one value are combined
before they travel. Every number is kept as a plain 64-bit integer, because then Spark aggregates in place and without sorting.

A row has `h` and the value `v`, and

- of its writers: `writers` (how many), `ws` and `we` (interval), `cas` (how many were a compare-and-set), `expected`;
- of the reads that returned it: `reads`, `rs` (greatest start), `re` (least end);
- of the compare-and-sets that expect it: `waits` (how many), `ke` (least end);
- `failed`: how many failed compare-and-sets say that the value was not this one;
- `general`: how many operations are not said in integers;
- where it is asked from when on something is seen that began after `after_0` and `after_1`: these, and `since_0` and
  `since_1`, the least ends of such reads.

`NEG` and `INF` stand for the greatest and least of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from results.pipeline.decide.coding import GENERAL, INF, NEG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

AFTER: Final = ("after_0", "after_1")


def value_of(f: Column, a: Column, b: Column) -> Column:
    """Returns the value that an operation makes or sees."""
    return F.when(f == CAS, b).otherwise(a)


def has_cas(touches: DataFrame) -> bool:
    """Says whether there is a compare-and-set among coded operations."""
    return not touches.where(F.col("f") == CAS).isEmpty()


def clusters(touches: DataFrame, *, chained: bool) -> DataFrame:
    """Returns a row for each key and value of coded operations.

    Args:
        touches: Coded operations; those with the columns `AFTER` are asked about what began after these.
        chained: Whether there may be compare-and-sets. Without them nobody expects a value, which is quicker to find.
    """
    f, s, e = F.col("f"), F.col("s"), F.col("e")
    least, greatest = F.lit(INF), F.lit(NEG)
    expects = F.lit(col=False)
    if chained:
        # A compare-and-set says something of two values.
        sides = F.when(f == CAS, F.array(F.lit(col=False), F.lit(col=True))).otherwise(F.array(F.lit(col=False)))
        touches = touches.withColumn("expects", F.explode(sides))
        expects = F.col("expects")
    writes, reads = f.isin(WRITE, CAS) & ~expects, f == READ
    is_cas = (f == CAS) & ~expects

    def count(what: Column) -> Column:
        return F.sum(F.when(what, 1).otherwise(0).cast("long"))

    def lowest(what: Column, number: Column) -> Column:
        return F.min(F.when(what, number).otherwise(least))

    asked = {}
    if AFTER[0] in touches.columns:
        for mark, after in enumerate(AFTER):
            asked[f"since_{mark}"] = lowest(reads & (s > F.col(after)), e)
            asked[after] = F.min(after)
    columns = {
        "writers": count(writes),
        "ws": lowest(writes, s),
        "we": lowest(writes, e),
        "cas": count(is_cas),
        "expected": lowest(is_cas, F.col("a")),
        "reads": count(reads),
        "rs": F.max(F.when(reads, s).otherwise(greatest)),
        "re": lowest(reads, e),
        "failed": count(f == CAS_FAIL),
        "general": count(f >= GENERAL),
        **asked,
    }
    if chained:
        columns |= {"waits": count(expects), "ke": lowest(expects, e)}
    value = F.when(expects, F.col("a")).otherwise(value_of(f, F.col("a"), F.col("b")))
    named = [column.alias(name) for name, column in columns.items()]
    values = touches.groupBy("h", value.alias("v")).agg(*named)
    return values if chained else values.withColumns({"waits": F.lit(0).cast("long"), "ke": least})


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
