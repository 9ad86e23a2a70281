"""Decides registers of any size: Gibbons and Korach's zones as dataflow, in one pass and two shuffles.

Each value has a zone from its least end `m` to its greatest start `M`, forward if `m < M`, else backward (SIAM J. Comput.
26(4), 1997). With unique written values a history is linearizable iff each read has a write that does not begin after the
read's end, and, in the order of their lower ends, no zone meets a forward zone before it that reaches beyond the zone's lower
end (a forward one) or upper end (a backward one). So all that is needed is the greatest upper end of the forward zones before
each.

A window over a key would sort the whole of it in one task. So a key is cut into slices along its timeline: within a slice a
window finds the greatest end before each zone, and of a slice only three numbers go on: whether two of its zones meet, the
greatest end in it, and the least end that must not be passed. What the slices before it had at most is compared with the last.
The two levels say exactly what one window would say, for any width of the slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.contraction import BLOCK, MARKS
from results.pipeline.decide.coding import INF, NEG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, WindowSpec

# Of how many slices that hold a contradiction one is named.
WITNESSES: Final = 16
_ORDER: Final = ("low", "forward", "v")


def zones(clusters: DataFrame, initial: int) -> DataFrame:
    """Adds its zone to each cluster.

    New columns: `m`, `big`, `low`, `high`, `forward`; `limit`, the index that no forward zone before it may pass, which is
    the zone's alone; `late`, the end of an operation that saw a value that has no write, or one that begins only later;
    `placed`, whether it is a zone that others can meet; `ends_v` and `starts_v`, the values of the operations that end first
    and start last.
    """
    is_initial = F.col("v") == initial
    seen = F.least("re", "ke")
    nothing = F.lit(NEG)
    zoned = clusters.withColumns(
        {
            # What nobody wrote has a write that never began.
            "late": F.when(~is_initial & (seen < F.col("ws")), seen),
            "m": F.when(is_initial, nothing).otherwise(F.least("we", "re")),
            "big": F.greatest(F.when(F.col("writers") > 0, F.col("ws")).otherwise(nothing), "rs"),
            "ends_v": F.col("v"),
            "starts_v": F.col("v"),
        }
    )
    return _shaped(zoned, F.col("late").isNull() & ((F.col("writers") > 0) | is_initial))


def blocks(pieces: DataFrame) -> DataFrame:
    """Returns the zones of whole chains, in the columns of `zones`; a chain goes by its first value."""
    told = ("h", "ends_v", "starts_v", *(name for name in MARKS if name in pieces.columns))
    counts = ("writers", "cas", "failed", "general")
    chains = pieces.where(F.col("kind") == BLOCK).select(
        *told,
        F.col("first").alias("v"),
        F.col("at").alias("ws"),
        F.col("ends").alias("m"),
        F.col("starts").alias("big"),
        F.lit(None).cast("long").alias("late"),
        *(F.lit(0).cast("long").alias(name) for name in counts),
    )
    return _shaped(chains, F.lit(col=True))


def _shaped(zoned: DataFrame, possible: Column) -> DataFrame:
    return (
        zoned.withColumn("forward", F.col("m") < F.col("big"))
        .withColumn("low", F.least("m", "big"))
        .withColumn("high", F.greatest("m", "big"))
        .withColumn("limit", F.when(F.col("forward"), F.col("low")).otherwise(F.col("high")))
        # What was never read and perhaps never written can stand anywhere.
        .withColumn("placed", possible & (F.col("high") != INF))
    )


def slices(zoned: DataFrame, initial: int, bucket_events: int) -> DataFrame:
    """Returns a row for each key and slice of its timeline.

    Columns: `h`, `bucket`; `reach`, the greatest end of its forward zones; `weakest`, the least limit; `met`, the least limit
    of those that others of the slice meet; `late`, `early`, `doubled`, `cas`, `failed` and `general` as `scanned` has them.
    """
    placed = F.col("placed")
    reach = F.when(placed & F.col("forward"), F.col("high"))
    limit = F.when(placed, F.col("limit"))
    early = F.col("late").isNotNull() & ((F.col("cas") > 0) | (F.col("waits") > 0))
    doubled = (F.col("writers") > 1) | ((F.col("v") == initial) & (F.col("writers") > 0))
    return (
        _sliced(zoned, bucket_events)
        .withColumn("before", F.max(reach).over(_before(["h", "bucket"], _ORDER)))
        .groupBy("h", "bucket")
        .agg(
            F.max(reach).alias("reach"),
            F.min(limit).alias("weakest"),
            F.min(F.when(F.col("before") > limit, limit)).alias("met"),
            F.min("late").alias("late"),
            F.max(F.coalesce(early, F.lit(col=False))).alias("early"),
            F.max(doubled).alias("doubled"),
            *(F.sum(name).alias(name) for name in ("cas", "failed", "general")),
        )
    )


def scanned(slices: DataFrame) -> DataFrame:
    """Returns a row for each key.

    Columns: `h`; `doubled`, whether a value was written twice or is the initial one, so that zones do not decide; `cas`,
    `failed` and `general`, how many operations are such; `late`, the first end of one that saw what was not written yet;
    `early`, whether there is such a value that compare-and-sets link with others; `limits`, the limits of a few zones that
    others meet, of the first slices in which there are any.
    """
    carried = F.when(F.max("reach").over(_before(["h"], ["bucket"])) > F.col("weakest"), F.col("weakest"))
    named = slices.withColumn("named", F.coalesce(carried, "met"))
    pair = F.when(F.col("named").isNotNull(), F.struct("bucket", "named"))
    return named.groupBy("h").agg(
        F.max("doubled").alias("doubled"),
        *(F.sum(name).alias(name) for name in ("cas", "failed", "general")),
        F.min("late").alias("late"),
        F.max("early").alias("early"),
        F.slice(F.sort_array(F.collect_list(pair)), 1, WITNESSES)["named"].alias("limits"),
    )


def meeting(zoned: DataFrame, slices: DataFrame, bucket_events: int) -> DataFrame:
    """Returns `h` and `v` of all zones that meet another one, whichever of the two is before the other.

    Args:
        zoned: The zones.
        slices: What `slices` says of them.
        bucket_events: How wide those are.
    """
    known = slices.select(
        *("h", "bucket", "reach", "weakest", "met"),
        F.max("reach").over(_before(["h"], ["bucket"])).alias("reach_before"),
        F.min("weakest").over(_after(["h"], ["bucket"])).alias("weakest_after"),
    )
    # Nearly all slices have no zone that meets another one.
    named = known.where("met is not null or reach_before > weakest or reach > weakest_after")
    outside = named.select("h", "bucket", "reach_before", "weakest_after")
    forward, high, limit = F.col("forward"), F.col("high"), F.col("limit")
    reach, weakest = F.max(F.when(forward, high)), F.min(limit)
    within = ["h", "bucket"]
    rows = (
        _sliced(zoned.where("placed"), bucket_events)
        .join(F.broadcast(outside), within)
        .withColumn("reach", F.greatest(reach.over(_before(within, _ORDER)), "reach_before"))
        .withColumn("weakest", F.least(weakest.over(_after(within, _ORDER)), "weakest_after"))
    )
    return rows.where((F.col("reach") > limit) | (forward & (F.col("weakest") < high))).select("h", "v")


def _sliced(zoned: DataFrame, bucket_events: int) -> DataFrame:
    at = F.when(F.col("placed"), F.col("low")).otherwise(F.col("ws"))
    return zoned.withColumn("bucket", slice_of(at, bucket_events))


def _before(keys: Sequence[str], order: Sequence[str]) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)


def _after(keys: Sequence[str], order: Sequence[str]) -> WindowSpec:
    backwards = [F.desc(name) for name in order]
    return Window.partitionBy(*keys).orderBy(*backwards).rowsBetween(Window.unboundedPreceding, -1)


def slice_of(index: Column, width: int) -> Column:
    """Returns the slice of a timeline that an index lies in; what stands before or after everything has one too."""
    return F.floor(F.greatest(F.least(index, F.lit(2**52)), F.lit(-1)) / F.lit(width)).cast("long")
