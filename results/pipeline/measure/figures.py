"""The figures of whole runs, from the tables of runs, verdicts and timelines; `trends` compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.measure.availability import AFTER
from results.pipeline.measure.badness import badness
from results.pipeline.measure.timelines import AVAILABILITY, TOTALS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def figures(runs: DataFrame, verdicts: DataFrame, timelines: Mapping[str, DataFrame]) -> DataFrame:
    """Returns a row for each run with the input of `trends.trends`, beside the columns of `runs.RUNS`.

    The columns are: `severity` (of the worst verdict; null if none was judged), `keys`, `operations`, `measured_s` (the longest
    recovery after a fault), `healed` (how many faults were healed), `unseen` (how many of them show no recovery),
    `availability`, `p50_ms` and `p99_ms`.

    Args:
        runs: The columns of `runs.RUNS`.
        verdicts: The columns of `schema.VERDICTS`.
        timelines: The tables of `timelines.timelines`.
    """
    judged = verdicts.groupBy("run").agg(
        F.max(badness(F.col("verdict"))).alias("severity"),
        F.count("*").alias("keys"),
        F.sum("operations").alias("operations"),
    )
    everyone = timelines[AVAILABILITY].where("node is null and f is null")
    after = F.col("part") == AFTER
    around = everyone.groupBy("run").agg(
        F.max(F.when(after, F.col("sustained_ok_s"))).alias("measured_s"),
        F.count(F.when(after, 1)).alias("healed"),
        F.count(F.when(after & F.col("sustained_ok_s").isNull(), 1)).alias("unseen"),
    )
    totals = (
        timelines[TOTALS]
        .groupBy("run")
        .agg(
            F.try_divide(F.sum("answered"), F.sum("asked")).alias("availability"),
            F.max("p50_ms").alias("p50_ms"),
            F.max("p99_ms").alias("p99_ms"),
        )
    )
    return runs.join(judged, "run", "left").join(around, "run", "left").join(totals, "run", "left")
