"""What may be said of runs that were not read whole.

The law: no verdict is given on a history of which rows are in quarantine, neither valid nor invalid, because what is missing
may be the write that explains a read, or the read that nothing explains. Such a verdict is unknown, and its cause says why. A
row whose key is known touches that key alone; one whose run is not known touches every run of its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.schema import VERDICTS, conform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.tables import Seen

_DEFINITE = ("kind", "op_invoke_index", "op_complete_index", "explanation", "counterexample")


def withheld(verdicts: DataFrame, quarantine: DataFrame, seen: Sequence[Seen]) -> DataFrame:
    """Returns verdicts without those that rows in quarantine put in doubt.

    Args:
        verdicts: Rows of `schema.VERDICTS`.
        quarantine: Rows of `schema.QUARANTINE`, of histories alone.
        seen: The runs and their sources.
    """
    spark = verdicts.sparkSession
    places = spark.createDataFrame([(each.run, each.source.data) for each in seen], "found string, source string")
    rows = (
        quarantine.join(F.broadcast(places), "source", "left")
        .where("run is not null or found is not null")
        .select(F.coalesce("run", "found").alias("run"), F.when(F.col("run").isNotNull(), F.col("key")).alias("key"))
    )
    by_run = rows.where("key is null").groupBy("run").agg(F.count("*").alias("of_run"))
    by_key = rows.where("key is not null").groupBy("run", "key").agg(F.count("*").alias("of_key"))
    joined = verdicts.join(F.broadcast(by_run), "run", "left").join(F.broadcast(by_key), ["run", "key"], "left")
    missing = F.coalesce("of_run", F.lit(0)) + F.coalesce("of_key", F.lit(0))
    doubt = missing > 0
    cause = F.format_string("%s rows of this history are in quarantine, so it is not whole", missing)
    changed = joined.withColumn("cause", F.when(doubt, cause).otherwise(F.col("cause"))).withColumn(
        "verdict", F.when(doubt, F.lit("unknown")).otherwise(F.col("verdict"))
    )
    for name in _DEFINITE:
        changed = changed.withColumn(name, F.when(~doubt, F.col(name)))
    return conform(changed, VERDICTS)


def without_operations(spark: SparkSession, runs: Sequence[Seen], models: Mapping[str, str | None]) -> DataFrame:
    """Returns a verdict for each of some runs that has none: for want of a model, or of operations.

    Args:
        spark: The session.
        runs: The runs.
        models: The model of each run; None where none is known.
    """
    rows = []
    for each in runs:
        model = models[each.run]
        cause = None if model else "no model is known for the workload; say it with --model"
        rows.append(
            (each.run, "valid" if model else "unknown", model or "", "none", "spark", cause, each.operations or 0)
        )
    told = "run string, verdict string, model string, analyzer string, engine string, cause string, operations long"
    return conform(spark.createDataFrame(rows, told), VERDICTS)
