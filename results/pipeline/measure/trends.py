"""Runs beside the runs before them: verdicts, availability and latency by day, system version and test, and what became worse.

The rule, which is applied to each run and the runs of the same test and system that started before it: a figure is a regression
if it is worse than the median of the last `HISTORY` runs that have it by more than `DEVIATIONS` times their median absolute
deviation (scaled to a standard deviation) and by more than a least step, which is a tenth of the median for times and one
percent point for availability. It takes at least `LEAST_RUNS` such runs. A verdict is a regression if it is invalid and the
last one was not. Recovery as runs report it is compared with such alone, and so is that which operations show. Medians are used
so that one bad night does not hide the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t

from results.pipeline.measure.availability import AFTER
from results.pipeline.measure.badness import INVALID, badness, word
from results.pipeline.measure.timelines import AVAILABILITY, TOTALS
from results.pipeline.schema import conform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

HISTORY: Final = 10
LEAST_RUNS: Final = 3
DEVIATIONS: Final = 4.0
_TO_SIGMA: Final = 1.4826

# Where the figure of recovery is from. A run says in results.json how long its system took after everything was healed, in
# `parts.recovered`. Of other runs it is the longest time from the end of a fault until operations succeeded steadily.
BY_RUN: Final = "run"
BY_OPERATIONS: Final = "operations"

TRENDS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("day", t.StringType()),
        t.StructField("started", t.StringType()),
        t.StructField("test", t.StringType()),
        t.StructField("system", t.StringType()),
        t.StructField("system_version", t.StringType()),
        t.StructField("workload", t.StringType()),
        t.StructField("faults", t.StringType()),
        t.StructField("verdict", t.StringType()),  # the worst of the run's keys; null if none was judged
        t.StructField("keys", t.LongType()),
        t.StructField("operations", t.LongType()),
        t.StructField("availability", t.DoubleType()),  # the share answered over the run, 0 to 1
        t.StructField("recovery_s", t.DoubleType()),  # null if the system did not recover, or nothing is known of it
        t.StructField("recovery_from", t.StringType()),  # `BY_RUN` or `BY_OPERATIONS`; null: nothing is known of it
        t.StructField(
            "restarted", t.BooleanType()
        ),  # whether the run had to restart every node; null if it does not say
        t.StructField("unrecovered", t.LongType()),  # how often no recovery was seen
        t.StructField("p50_ms", t.DoubleType()),  # the greatest of the run's functions
        t.StructField("p99_ms", t.DoubleType()),
        t.StructField("regressions", t.ArrayType(t.StringType())),  # names of the figures above that became worse
    ]
)

# Figure: whether more is worse, and the least step, as a share of the median and as a number.
FIGURES: Final[Mapping[str, tuple[bool, float, float]]] = {
    "availability": (False, 0.0, 0.01),
    "recovery_s": (True, 0.1, 0.1),
    "p50_ms": (True, 0.1, 0.1),
    "p99_ms": (True, 0.1, 0.1),
}


def trends(runs: DataFrame, verdicts: DataFrame, timelines: Mapping[str, DataFrame]) -> DataFrame:
    """Returns a row of `TRENDS` for each run.

    Args:
        runs: The columns of `runs.RUNS`.
        verdicts: The columns of `schema.VERDICTS`.
        timelines: What `timelines.timelines` returns.
    """
    judged = verdicts.groupBy("run").agg(
        F.max(badness(F.col("verdict"))).alias("badness"),
        F.count("*").alias("keys"),
        F.sum("operations").alias("operations"),
    )
    everyone = timelines[AVAILABILITY].where("node is null")
    after = F.col("part") == AFTER
    bore = everyone.groupBy("run").agg(
        F.max(F.when(after, F.col("sustained_ok_s"))).alias("measured_s"),
        F.count(F.when(after, 1)).alias("healed"),
        F.count(F.when(after & F.col("sustained_ok_s").isNull(), 1)).alias("unseen"),
    )
    took = (
        timelines[TOTALS]
        .groupBy("run")
        .agg(
            F.try_divide(F.sum("answered"), F.sum("asked")).alias("availability"),
            F.max("p50_ms").alias("p50_ms"),
            F.max("p99_ms").alias("p99_ms"),
        )
    )
    rows = runs.join(judged, "run", "left").join(bore, "run", "left").join(took, "run", "left")
    rows = rows.withColumns(_recovery())
    return conform(with_regressions(rows).withColumn("verdict", word(F.col("badness"))), TRENDS)


def _recovery() -> dict[str, Column]:
    """Returns the columns of recovery: as the run says it, else as its operations show it."""
    by_run = F.col("said_recovery_s").isNotNull()
    by_operations = ~by_run & (F.col("healed") > 0)
    failed = F.col("said_recovery_error").isNotNull()
    return {
        "recovery_s": F.when(by_run, F.when(~failed, F.col("said_recovery_s"))).otherwise(F.col("measured_s")),
        "recovery_from": F.when(by_run, F.lit(BY_RUN)).when(by_operations, F.lit(BY_OPERATIONS)),
        "restarted": F.when(by_run, F.col("said_restarted")),
        "unrecovered": F.when(by_run, failed.cast("bigint")).when(by_operations, F.col("unseen")),
    }


def with_regressions(rows: DataFrame) -> DataFrame:
    """Adds the names of the figures that became worse, by the rule of this module."""
    by_start = (F.col("started").asc_nulls_first(), F.col("run"))
    order = Window.partitionBy("test", "system").orderBy(*by_start)
    before = order.rowsBetween(-HISTORY, -1)
    # The figures before each run, of as many runs as the rule looks at.
    # A recovery that the run says and one that its operations show are two figures, and not compared.
    alike = Window.partitionBy("test", "system", "recovery_from").orderBy(*by_start).rowsBetween(-HISTORY, -1)
    windows = {name: alike if name == "recovery_s" else before for name in FIGURES}
    past = rows.withColumns({f"past_{name}": F.collect_list(name).over(windows[name]) for name in FIGURES})
    marks = [F.when(_worse(name), F.lit(name)) for name in FIGURES]
    last = F.lag("badness").over(order)
    fell = F.when((F.col("badness") == INVALID) & (last < INVALID), F.lit("verdict"))
    found = F.array_compact(F.array(fell, *marks))
    return past.withColumn("regressions", found).drop(*(f"past_{name}" for name in FIGURES))


def _worse(name: str) -> Column:
    more_is_worse, share, number = FIGURES[name]
    past = F.col(f"past_{name}")
    middle = median(past)
    spread = median(F.transform(past, lambda value: F.abs(value - middle))) * _TO_SIGMA
    step = F.greatest(spread * DEVIATIONS, F.abs(middle) * share, F.lit(number))
    by = F.col(name) - middle if more_is_worse else middle - F.col(name)
    return F.when(F.size(past) >= LEAST_RUNS, by > step)


def median(values: Column) -> Column:
    """Returns the median of an array; null for an empty one."""
    ordered, count = F.array_sort(values), F.size(values)
    low = F.try_element_at(ordered, F.greatest(F.floor((count + 1) / 2), F.lit(1)).cast("int"))
    high = F.try_element_at(ordered, (F.floor(count / 2) + 1).cast("int"))
    return F.when(count > 0, (low + high) / 2)
