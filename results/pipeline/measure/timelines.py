"""Timelines: rates, latencies, concurrency, and availability around each fault, in a bounded number of rows.

The rule: `results.measure.availability` defines availability, `results.measure.leadership` defines leaders, and a bucket is
as wide as in the report. An operation belongs to the moment of its scheduled start. Final reads after healing are left out.
Quantiles come from Spark's `percentile_approx`, which returns a measured latency. It is the nearest rank for up to some
thousand operations in a bucket. For more, its rank differs by at most a ten-thousandth of their number. Spark aggregates the
operations in place. The results have a row for each bucket, function, type and node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.units import NS_PER_MS, NS_PER_S
from harness.watch import Sighting
from results.measure.leadership import Elections
from results.measure.op_outcomes import OUTCOMES, REFUSED
from results.measure.series import MAX_BUCKETS, MIN_MS, NICE_S
from results.pipeline.measure.availability import BEFORE, availability, windows
from results.pipeline.measure.badness import badness

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from pyspark.sql import Column, DataFrame, GroupedData

ACCURACY: Final = 10_000
QUANTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
SHOWN_KEYS: Final = 40

RATES: Final = "rates"  # run, f, type (an outcome), node, time_s (a bucket's start), width_s, operations
LATENCIES: Final = "latencies"  # of ok operations: run, f, time_s, width_s, operations, p50_ms, p95_ms, p99_ms, max_ms
# Of a whole run: run, f, ok, info, fail, refused, the same quantiles; and of the operations that measure availability, how many
# were asked (without refusals) and answered.
TOTALS: Final = "totals"
CONCURRENCY: Final = "concurrency"  # run, time_s, width_s, open: how many operations were open at that time
AVAILABILITY: Final = "availability"
LEADERS: Final = "leaders"  # run, fault, part, changes, leaders, terms; fault and part are null for the whole run
# run, key, time_s, width_s, operations (without refusals), answered; of some keys, see `TimelineOptions`
HEAT: Final = "heat"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineOptions:
    """The options of timelines.

    Attributes:
        answers: Codes of `fail` errors that are answers, for runs that do not list them.
        refusals: Codes of `fail` errors that are refusals, for runs that do not list them.
        shown_keys: For how many keys of a run `heat` has rows: those with the worst verdicts, and among these those with the
            most operations.
    """

    answers: Sequence[str] = ()
    refusals: Sequence[str] = ()
    shown_keys: int = SHOWN_KEYS


def timelines(
    operations: DataFrame,
    faults: DataFrame,
    options: TimelineOptions | None = None,
    *,
    runs: DataFrame | None = None,
    sightings: DataFrame | None = None,
    verdicts: DataFrame | None = None,
) -> dict[str, DataFrame]:
    """Aggregates operations over time.

    Args:
        operations: The columns of `schema.OPERATIONS`. Spark reads them once for each table.
        faults: The columns of `runs.FAULTS`.
        options: The options.
        runs: `run`, and the codes of each run: `answers` and `refusals`; None: those of the options for all.
        sightings: The columns of `runs.SIGHTINGS`; None: no table of leaders.
        verdicts: `run`, `key` and `verdict`; None: none is known.

    Returns:
        The tables by name; the constants of this module list their columns.
    """
    options = options or TimelineOptions()
    asked = _asked(operations, options, runs)
    spans = _spans(asked).localCheckpoint()
    bucketed = _bucketed(asked, spans)
    around = windows(faults, spans).localCheckpoint()
    tables = {
        RATES: bucketed.groupBy("run", "f", "type", "node", "time_s", "width_s").agg(F.count("*").alias("operations")),
        LATENCIES: _with_quantiles(
            bucketed.where("type = 'ok'").groupBy("run", "f", "time_s", "width_s"), F.count("*").alias("operations")
        ),
        TOTALS: _totals(bucketed),
        CONCURRENCY: _concurrency(asked, spans),
        AVAILABILITY: availability(asked, spans, around),
        HEAT: _heat(bucketed, verdicts, options.shown_keys),
    }
    if sightings is not None:
        tables[LEADERS] = _leaders(sightings, around)
    return tables


def _asked(operations: DataFrame, options: TimelineOptions, runs: DataFrame | None) -> DataFrame:
    """Returns the workload's own operations, with the time of each, whether it was answered, and its client."""
    fixed = {
        name: F.array(*(F.lit(code) for code in codes)).cast("array<string>")
        for name, codes in (("answers", options.answers), ("refusals", options.refusals))
    }
    rows = operations
    if runs is not None:
        rows = rows.join(F.broadcast(runs.select("run", *fixed)), "run", "left")
    rows = rows.withColumns({name: codes if runs is None else F.coalesce(name, codes) for name, codes in fixed.items()})
    code = F.regexp_replace(F.substring_index("error", ":", 1), r"(?U)^\s+|\s+$", "")

    def failed_with(codes: str) -> Column:
        return (F.col("type") == "fail") & F.coalesce(F.array_contains(codes, code), F.lit(col=False))

    return rows.where("phase is null").select(
        "run",
        "key",
        "f",
        F.when(failed_with("refusals"), REFUSED).otherwise(F.col("type")).alias("type"),
        "node",
        "start_ns",
        "end_ns",
        "invoke_index",
        F.coalesce("scheduled_ns", "start_ns").alias("wanted_ns"),
        code.alias("code"),
        ((F.col("type") == "ok") | failed_with("answers")).alias("good"),
        failed_with("refusals").alias("refused"),
        F.col("via").isNotNull().alias("follows"),
    )


def _spans(asked: DataFrame) -> DataFrame:
    """Returns for each run `horizon_ns` (right after the last operation), `nodes` (those with clients), and two more columns.

    `following` is whether some clients follow the leader. Then only these measure the system. `functions` has the functions of
    the operations that measure it.
    """
    by_node = asked.groupBy("run", "node").agg(
        (F.max("wanted_ns") + 1).alias("horizon_ns"),
        F.collect_set(F.when(F.col("follows"), F.col("f"))).alias("followed"),
        F.collect_set("f").alias("functions"),
        F.max("follows").alias("following"),
        F.min("follows").alias("none_stays"),
    )
    stayed_at = F.when(~F.col("none_stays"), F.col("node"))
    return (
        by_node.groupBy("run")
        .agg(
            F.max("horizon_ns").alias("horizon_ns"),
            F.collect_list(stayed_at).alias("nodes"),
            F.array_distinct(F.flatten(F.collect_list("followed"))).alias("followed"),
            F.array_distinct(F.flatten(F.collect_list("functions"))).alias("functions"),
            F.max("following").alias("following"),
        )
        .withColumn("functions", F.when(F.col("following"), F.col("followed")).otherwise(F.col("functions")))
        .drop("followed")
    )


def _width_s(horizon_ns: Column) -> Column:
    """Returns the width of a bucket, as `results.measure.series.bucket_s`."""
    duration_s = (horizon_ns - 1) / F.lit(NS_PER_S)
    width: Any = duration_s / MAX_BUCKETS
    for nice in reversed(NICE_S):
        width = F.when(duration_s <= MAX_BUCKETS * nice, F.lit(float(nice))).otherwise(width)
    return F.greatest(width, F.lit(min(NICE_S)))


def _bucketed(asked: DataFrame, spans: DataFrame) -> DataFrame:
    widths = spans.select("run", "following", _width_s(F.col("horizon_ns")).alias("width_s"))
    at_s = F.greatest(F.col("wanted_ns"), F.lit(0)) / F.lit(NS_PER_S)
    # As `//` in Python, where 1.0 // 0.1 is 9.
    place = F.round((at_s - at_s % F.col("width_s")) / F.col("width_s"))
    return asked.join(F.broadcast(widths), "run").withColumn("time_s", place * F.col("width_s"))


def _with_quantiles(rows: GroupedData, *others: Column) -> DataFrame:
    """Aggregates the latencies of ok operations, and other columns; one sketch gives all quantiles."""
    took_ms = F.greatest((F.col("end_ns") - F.col("wanted_ns")) / NS_PER_MS, F.lit(MIN_MS))
    ok_ms = F.when(F.col("type") == "ok", took_ms)
    sketched = F.percentile_approx(ok_ms, list(QUANTILES.values()), ACCURACY)
    found = rows.agg(*others, sketched.alias("quantiles"), F.max(ok_ms).alias("max_ms"))
    named = {name: F.col("quantiles")[place] for place, name in enumerate(QUANTILES)}
    return found.withColumns(named).drop("quantiles")


def _totals(bucketed: DataFrame) -> DataFrame:
    counts = [F.count(F.when(F.col("type") == kind, 1)).alias(kind) for kind in OUTCOMES]
    measures = (F.col("follows") | ~F.col("following")) & ~F.col("refused")
    counts += [
        F.count(F.when(measures, 1)).alias("asked"),
        F.count(F.when(measures & F.col("good"), 1)).alias("answered"),
    ]
    return _with_quantiles(bucketed.groupBy("run", "f"), *counts)


def _concurrency(asked: DataFrame, spans: DataFrame) -> DataFrame:
    """Counts the open operations at the start of each bucket."""
    widths = spans.withColumn("width_s", _width_s(F.col("horizon_ns"))).withColumn(
        "width_ns", F.round(F.col("width_s") * F.lit(NS_PER_S)).cast("bigint")
    )

    def after(time_ns: str) -> Column:
        """Returns the first bucket that begins at or after a time: there, a start counts, and an end no longer does."""
        place = F.ceil(F.greatest(F.col(time_ns), F.lit(0)) / F.col("width_ns"))
        return F.when(F.col(time_ns).isNotNull(), place)  # the greatest of null and 0 would be 0

    # Two small numbers for each operation, summed before the shuffle.
    steps = (
        asked.join(F.broadcast(widths), "run")
        .select(
            "run",
            F.explode(
                F.filter(
                    F.array(
                        F.struct(after("start_ns").alias("place"), F.lit(1).alias("step")),
                        F.struct(after("end_ns").alias("place"), F.lit(-1).alias("step")),
                    ),
                    lambda each: each["place"].isNotNull(),
                )
            ).alias("each"),
        )
        .groupBy("run", "each.place")
        .agg(F.sum("each.step").alias("step"))
    )
    grid = widths.select(
        "run",
        "width_s",
        F.explode(F.sequence(F.lit(0).cast("bigint"), F.floor((F.col("horizon_ns") - 1) / F.col("width_ns")))).alias(
            "place"
        ),
    )
    upto = Window.partitionBy("run").orderBy("place").rowsBetween(Window.unboundedPreceding, 0)
    return (
        grid.join(steps, ["run", "place"], "left")
        .withColumn("open", F.sum(F.coalesce("step", F.lit(0))).over(upto))
        .select("run", (F.col("place") * F.col("width_s")).alias("time_s"), "width_s", "open")
    )


def _heat(bucketed: DataFrame, verdicts: DataFrame | None, keys: int) -> DataFrame:
    counted = bucketed.where("key is not null").groupBy("run", "key").count()
    if verdicts is None:
        judged = counted.withColumn("verdict", F.lit(None).cast("string"))
    else:
        judged = counted.join(verdicts.select("run", "key", "verdict"), ["run", "key"], "left")
    first = Window.partitionBy("run").orderBy(F.desc(badness(F.col("verdict"))), F.desc("count"), "key")
    chosen = judged.withColumn("place", F.row_number().over(first)).where(F.col("place") <= keys).select("run", "key")
    return (
        bucketed.where(~F.col("refused"))
        .join(F.broadcast(chosen), ["run", "key"])
        .groupBy("run", "key", "time_s", "width_s")
        .agg(F.count("*").alias("operations"), F.sum(F.col("good").cast("bigint")).alias("answered"))
    )


def _leaders(sightings: DataFrame, around: DataFrame) -> DataFrame:
    """Counts leader changes of whole runs and around faults; sightings are few, since only changes are recorded."""
    layout = "run string, fault bigint, part string, changes bigint, leaders array<string>, terms array<bigint>"
    asked = around.where(F.col("part") != BEFORE).select("run", "fault", "part", "from_ns", "to_ns")
    nothing = [F.lit(None).cast("bigint").alias(name) for name in ("from_ns", "to_ns")]
    whole = sightings.select("run").distinct().select("run", F.lit(None).cast("bigint").alias("fault"),
        F.lit(None).cast("string").alias("part"), *nothing)  # fmt: skip
    stretches = F.collect_list(F.struct("fault", "part", "from_ns", "to_ns")).alias("stretches")
    by_run = asked.unionByName(whole).groupBy("run").agg(stretches)
    rows = F.collect_list(F.struct("time_ns", "node", "role", "term", "leader")).alias("sightings")
    joined = sightings.groupBy("run").agg(rows).join(by_run, "run")
    return joined.mapInPandas(_elections, layout)


def _elections(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    import pandas as pd  # noqa: PLC0415 - only executors need it

    for frame in frames:
        rows = []
        for run, seen, stretches in zip(frame["run"], frame["sightings"], frame["stretches"], strict=True):
            counted = Elections([Sighting(**_plain(each)) for each in seen])
            for stretch in map(_plain, stretches):
                led = counted.within(stretch["from_ns"], stretch["to_ns"])
                rows.append((run, stretch["fault"], stretch["part"], led.changes, list(led.leaders), list(led.terms)))
        columns = ["run", "fault", "part", "changes", "leaders", "terms"]
        yield pd.DataFrame(rows, columns=columns).astype({"fault": "Int64", "changes": "int64"})


def _plain(row: Any) -> dict[str, Any]:
    return dict(row) if isinstance(row, dict) else row.asDict()
