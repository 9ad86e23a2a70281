"""Verdicts of runs that were not read completely.

The rule: a history with rows in quarantine gets no definite verdict. A missing row may be the write that explains a read, or
the read that nothing explains. The verdict is unknown, and its cause names the first missing row. The verdict on the system's
own order is then unknown too. A row with a known key affects only that key. A row without a known run affects every run of its
source.

A history is also unknown if it is unreadable, if it has no operation, or if no model for it is known: nothing was tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.verdict import Verdict
from results.pipeline.schema import VERDICTS, conform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from results.pipeline.read.documents import Known
    from results.pipeline.spark.tables import Seen

NOTHING: Final = "none"
ENGINE: Final = "spark"
_DEFINITE: Final = ("kind", "op_invoke_index", "op_complete_index", "explanation", "counterexample")


def withheld(verdicts: DataFrame, quarantine: DataFrame, seen: Sequence[Seen]) -> DataFrame:
    """Returns verdicts, where rows in quarantine make a verdict unknown.

    Args:
        verdicts: Rows of `schema.VERDICTS`.
        quarantine: Rows of `schema.QUARANTINE`, of histories only.
        seen: The runs and their sources.
    """
    spark = verdicts.sparkSession
    places = spark.createDataFrame([(each.run, each.source.data) for each in seen], "found string, source string")
    # An unreadable source has its reason already, and its row in quarantine is no row of a history.
    unread = spark.createDataFrame([(each.run,) for each in seen if each.source.trouble is not None], "run string")
    of_histories = quarantine.join(F.broadcast(unread), "run", "left_anti").withColumn("located", _located_reason())
    columns = ("run", "key", "line", "located")
    of_sources = of_histories.where("run is null").drop("run", "key").join(F.broadcast(places), "source")
    rows = (
        of_histories.where("run is not null")
        .select(*columns)
        .unionByName(of_sources.select(F.col("found").alias("run"), F.lit(None).alias("key"), "line", "located"))
    )
    first = F.min(F.struct(F.coalesce("line", F.lit(0)).alias("line"), "located"))["located"]
    by_run = rows.where("key is null").groupBy("run").agg(F.count("*").alias("of_run"), first.alias("reason_of_run"))
    of_keys = rows.where("key is not null").groupBy("run", "key")
    by_key = of_keys.agg(F.count("*").alias("of_key"), first.alias("reason_of_key"))
    joined = _with_lost_keys(verdicts, by_key)
    joined = joined.join(F.broadcast(by_run), "run", "left").join(F.broadcast(by_key), ["run", "key"], "left")
    missing = F.coalesce("of_run", F.lit(0)) + F.coalesce("of_key", F.lit(0))
    doubt = missing > 0
    cause = F.format_string(
        "%s rows of this history are in quarantine, so it is not whole; the first: %s",
        missing,
        F.coalesce("reason_of_run", "reason_of_key"),
    )
    changed = joined.withColumn("cause", F.when(doubt, cause).otherwise(F.col("cause"))).withColumn(
        "verdict", F.when(doubt, F.lit(str(Verdict.UNKNOWN))).otherwise(F.col("verdict"))
    )
    ordered = doubt & F.col("order_agrees").isNotNull()
    changed = changed.withColumns(
        {
            "order_agrees": F.when(ordered, F.lit(str(Verdict.UNKNOWN))).otherwise(F.col("order_agrees")),
            "order_reason": F.when(ordered, cause).otherwise(F.col("order_reason")),
        }
    )
    for name in _DEFINITE:
        changed = changed.withColumn(name, F.when(~doubt, F.col(name)))
    return conform(changed, VERDICTS)


def _located_reason() -> Column:
    """Returns the reason of a row in quarantine with the file and the line."""
    place = F.concat_ws(":", "source", F.col("line").cast("string"))
    reason = F.col("reason")
    return F.when(reason.startswith(F.col("source")), reason).otherwise(F.concat(place, F.lit(": "), reason))


def _with_lost_keys(verdicts: DataFrame, by_key: DataFrame) -> DataFrame:
    """Adds a row for each key that has rows in quarantine, but no well-formed operation."""
    models = verdicts.groupBy("run").agg(F.max("model").alias("model"))
    lost = by_key.join(verdicts.select("run", "key"), ["run", "key"], "left_anti").join(models, "run")
    named = lost.withColumns(
        {
            "verdict": F.lit(str(Verdict.UNKNOWN)),
            "analyzer": F.lit(NOTHING),
            "engine": F.lit(ENGINE),
            "operations": F.lit(0),
        }
    )
    # If a run has only such keys, their rows suffice; a row for the whole run would count it twice.
    nothing_fits = (F.col("engine") == ENGINE) & (F.col("model") != "") & (F.col("operations") > 0)
    has_lost = lost.select("run").distinct().withColumn("has_lost", F.lit(col=True))
    others = verdicts.join(F.broadcast(has_lost), "run", "left").where(F.col("has_lost").isNull() | ~nothing_fits)
    return others.drop("has_lost").unionByName(conform(named, VERDICTS))


def not_judged(spark: SparkSession, runs: Sequence[Seen], known: Known) -> DataFrame:
    """Returns an unknown verdict for each run that was not judged: unreadable, without operations, or without a model.

    Args:
        spark: The session.
        runs: The runs.
        known: The model or the judge of each run.
    """
    rows = [tuple(unjudged(each, known).values()) for each in runs]
    schema = "run string, verdict string, model string, analyzer string, engine string, cause string, operations long"
    return conform(spark.createDataFrame(rows, schema), VERDICTS)


def unjudged(each: Seen, known: Known) -> dict[str, Any]:
    """Returns the unknown verdict of a run that was not judged, by columns of `schema.VERDICTS`."""
    return {
        "run": each.run,
        "verdict": str(Verdict.UNKNOWN),
        "model": known.name(each.run),
        "analyzer": NOTHING,
        "engine": ENGINE,
        "cause": _cause(each, known),
        "operations": each.operations or 0,
    }


def _cause(each: Seen, known: Known) -> str:
    if each.source.trouble is not None:
        return each.source.trouble
    if not each.operations:
        return f"{each.source.data}: the history holds no operation"
    if known.deciders[each.run] is None:
        damaged = known.damaged.get(each.run)
        undecided = known.undecided[each.run]
        return undecided if damaged is None else f"{undecided}; {damaged}"
    return f"{each.source.data}: none of the history's {each.operations} operations can be judged"
