"""Decides registers of any size: Gibbons and Korach's zones as dataflow, in one pass and two shuffles.

The zone of a value is the interval between its minimum end and its maximum start. It is forward if the minimum end comes first,
else backward (SIAM J. Comput. 26(4), 1997). Let the written values be unique, and sort the zones by their lower ends. Then a
history is linearizable iff

- each read has a write that does not begin after the end of the read, and
- no zone meets an earlier forward zone, that is, one that reaches beyond the `limit` of the zone: its lower end if it is
  forward, its upper end if it is backward.

So a zone needs only the maximum upper end of the forward zones before it.

A window over a key would sort the whole key in one task. So the timeline of a key is cut into slices. Within a slice, a window
finds the maximum upper end before each zone. A slice then reduces to three numbers: the minimum limit of zones that others of
the slice meet, the maximum upper end, and the minimum limit. A second window compares the maximum upper end of the earlier
slices with the minimum limit of each slice. The two levels give the result of a single window, for any width of the slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.decide.coding import ADDRESS, INF, NEG
from results.pipeline.large_keys.contraction import BLOCK, MARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, WindowSpec

# How many slices with a contradiction the result names.
WITNESSES: Final = 16
_ORDER: Final = ("low", "forward", "value")


def zones(clusters: DataFrame, initial: int) -> DataFrame:
    """Adds its zone to each cluster.

    New columns: `min_end`, `max_start`, `low`, `high`, `forward`; `limit`, the index beyond which no earlier forward
    zone may reach, a property of the zone alone; `late`, the end of an operation that observed a value without a write, or
    before its write began; `placed`, whether other zones can meet it; `min_end_value` and `max_start_value`, the values
    of the operations that end first and start last.
    """
    is_initial, written = F.col("value") == initial, F.col("writers") > 0
    seen = F.least("first_read_end", "first_expecting_end")
    nothing = F.lit(NEG)
    zoned = clusters.withColumns(
        {
            # The start of a missing write is `INF`.
            "late": F.when(~is_initial & (seen < F.col("write_start")), seen),
            "min_end": F.when(is_initial, nothing).otherwise(F.least("write_end", "first_read_end")),
            "max_start": F.greatest(F.when(written, F.col("write_start")).otherwise(nothing), "last_read_start"),
            "min_end_value": F.col("value"),
            "max_start_value": F.col("value"),
        }
    )
    return _shaped(zoned, F.col("late").isNull() & (written | is_initial))


def blocks(pieces: DataFrame) -> DataFrame:
    """Returns the zones of whole chains, in the columns of `zones`; the first value of a chain is its `value`."""
    ends = ("min_end", "min_end_value", "max_start", "max_start_value")
    marks = (name for name in MARKS if name in pieces.columns)
    counts = ("writers", "cas", "failed", "general")
    chains = pieces.where(F.col("outcome") == BLOCK).select(
        *(ADDRESS, "write_start", *ends, *marks),
        F.col("first_value").alias("value"),
        F.lit(None).cast("long").alias("late"),
        *(F.lit(0).cast("long").alias(name) for name in counts),
    )
    return _shaped(chains, F.lit(col=True))


def _shaped(zoned: DataFrame, possible: Column) -> DataFrame:
    return (
        zoned.withColumn("forward", F.col("min_end") < F.col("max_start"))
        .withColumn("low", F.least("min_end", "max_start"))
        .withColumn("high", F.greatest("min_end", "max_start"))
        .withColumn("limit", F.when(F.col("forward"), F.col("low")).otherwise(F.col("high")))
        # A value that was never read, and perhaps never written, can stand anywhere.
        .withColumn("placed", possible & (F.col("high") != INF))
    )


def slices(zoned: DataFrame, initial: int, bucket_events: int) -> DataFrame:
    """Returns a row for each key and slice of its timeline.

    Columns: `address`, `slice`; `reach`, the maximum end of its forward zones; `least_limit`, the minimum limit; `met_limit`,
    the minimum limit of the zones that others of the slice meet; `late`, `early`, `doubled`, `cas`, `failed` and `general` as
    in `scanned`.
    """
    placed = F.col("placed")
    reach = F.when(placed & F.col("forward"), F.col("high"))
    limit = F.when(placed, F.col("limit"))
    early = F.col("late").isNotNull() & ((F.col("cas") > 0) | (F.col("waits") > 0))
    doubled = (F.col("writers") > 1) | ((F.col("value") == initial) & (F.col("writers") > 0))
    return (
        _sliced(zoned, bucket_events)
        .withColumn("reach_before", F.max(reach).over(_before([ADDRESS, "slice"], _ORDER)))
        .groupBy(ADDRESS, "slice")
        .agg(
            F.max(reach).alias("reach"),
            F.min(limit).alias("least_limit"),
            F.min(F.when(F.col("reach_before") > limit, limit)).alias("met_limit"),
            F.min("late").alias("late"),
            F.max(F.coalesce(early, F.lit(col=False))).alias("early"),
            F.max(doubled).alias("doubled"),
            *(F.sum(name).alias(name) for name in ("cas", "failed", "general")),
        )
    )


def scanned(slices: DataFrame) -> DataFrame:
    """Returns a row for each key.

    Columns: `address`; `doubled`, whether a value was written twice, or the initial value was written, so that zones cannot
    decide; `cas`, `failed` and `general`, the number of such operations; `late`, the first end of an operation that observed a
    value before its write began; `early`, whether compare-and-sets link such a value with others; `limits`, the limits of a few
    zones that others meet, one from each of the first such slices.
    """
    carried = F.when(F.max("reach").over(_before([ADDRESS], ["slice"])) > F.col("least_limit"), F.col("least_limit"))
    named = slices.withColumn("named", F.coalesce(carried, "met_limit"))
    pair = F.when(F.col("named").isNotNull(), F.struct("slice", "named"))
    return named.groupBy(ADDRESS).agg(
        F.max("doubled").alias("doubled"),
        *(F.sum(name).alias(name) for name in ("cas", "failed", "general")),
        F.min("late").alias("late"),
        F.max("early").alias("early"),
        F.slice(F.sort_array(F.collect_list(pair)), 1, WITNESSES)["named"].alias("limits"),
    )


def meeting(zoned: DataFrame, slices: DataFrame, bucket_events: int) -> DataFrame:
    """Returns `address` and `value` of all zones that meet another zone, whichever comes first.

    Args:
        zoned: The zones.
        slices: The rows of `slices` for them.
        bucket_events: The width of the slices.
    """
    known = slices.select(
        *(ADDRESS, "slice", "reach", "least_limit", "met_limit"),
        F.max("reach").over(_before([ADDRESS], ["slice"])).alias("reach_before"),
        F.min("least_limit").over(_after([ADDRESS], ["slice"])).alias("least_limit_after"),
    )
    # In nearly all slices, no zone meets another zone.
    named = known.where("met_limit is not null or reach_before > least_limit or reach > least_limit_after")
    outside = named.select(ADDRESS, "slice", "reach_before", "least_limit_after")
    forward, high, limit = F.col("forward"), F.col("high"), F.col("limit")
    reach, least_limit = F.max(F.when(forward, high)), F.min(limit)
    within = [ADDRESS, "slice"]
    rows = (
        _sliced(zoned.where("placed"), bucket_events)
        .join(F.broadcast(outside), within)
        .withColumn("reach", F.greatest(reach.over(_before(within, _ORDER)), "reach_before"))
        .withColumn("least_limit", F.least(least_limit.over(_after(within, _ORDER)), "least_limit_after"))
    )
    return rows.where((F.col("reach") > limit) | (forward & (F.col("least_limit") < high))).select(ADDRESS, "value")


def _sliced(zoned: DataFrame, bucket_events: int) -> DataFrame:
    at = F.when(F.col("placed"), F.col("low")).otherwise(F.col("write_start"))
    return zoned.withColumn("slice", slice_of(at, bucket_events))


def _before(keys: Sequence[str], order: Sequence[str]) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)


def _after(keys: Sequence[str], order: Sequence[str]) -> WindowSpec:
    backwards = [F.desc(name) for name in order]
    return Window.partitionBy(*keys).orderBy(*backwards).rowsBetween(Window.unboundedPreceding, -1)


def slice_of(index: Column, width: int) -> Column:
    """Returns the slice of a timeline that contains an index; `INF` and `NEG` have a slice too."""
    return F.floor(F.greatest(F.least(index, F.lit(2**52)), F.lit(-1)) / F.lit(width)).cast("long")
