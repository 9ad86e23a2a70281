"""Pairs events into operations as dataflow: a window over each process of each run, in the order of the events.

The rules are those of `harness.pairing`. There the first breach refuses the history. Here each breach is a row for
quarantine, and the rest goes on, so that one bad line does not cost a night's runs. A test compares the two: they give the same
operations, and one refuses a history iff the other has a row for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.op import OpType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHOWN_CHARACTERS: Final = 60
_INVOKE, _INFO, _FAIL, _OK = (str(kind) for kind in (OpType.INVOKE, OpType.INFO, OpType.FAIL, OpType.OK))


def paired(events: DataFrame) -> DataFrame:
    """Returns a row for each operation and each breach.

    Args:
        events: Clients' events as rows of `results.pipeline.spark.events`.

    Returns:
        The columns of operations, then `source`, `line`, `reason` and `sample`; `reason` is null for an operation.
    """
    order = Window.partitionBy("run", "process").orderBy("position")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    this = ("type", "f", "key", "value", "time_ns", "line", "error", "position")
    rows = events.withColumn("before", F.lag(F.struct(*this)).over(order)).withColumn(
        "ended", F.max(F.when(F.col("type") == _INFO, F.col("line"))).over(earlier)
    )
    rows = rows.withColumn("breach", F.when(F.col("type") == _INVOKE, _of_invoke()).otherwise(_of_completion()))
    bad = F.col("breach").isNotNull()
    rows = rows.withColumn("bad_before", F.lag(bad).over(order)).withColumn(
        "after",
        F.lead(F.struct("type", "value", "time_ns", "error", "via", "order", "position", bad.alias("bad"))).over(order),
    )
    # The completion of an invoke in quarantine has nothing to complete.
    orphan = (F.col("type") != _INVOKE) & F.coalesce("bad_before", F.expr("false"))
    breach = F.coalesce(
        "breach",
        F.when(
            orphan,
            F.format_string("process %s completes %s, whose invoke is in quarantine", F.col("process"), F.col("f")),
        ),
    )
    after = F.col("after")
    completes = after.isNotNull() & (after["type"] != _INVOKE) & ~after["bad"]
    return rows.where((F.col("type") == _INVOKE) | breach.isNotNull()).select(
        "run",
        "key",
        "process",
        "f",
        F.when(completes, after["type"]).otherwise(_INFO).alias("type"),
        F.col("time_ns").alias("start_ns"),
        F.when(completes, after["time_ns"]).alias("end_ns"),
        "value",
        F.when(completes & (after["type"] == _OK), after["value"]).alias("result"),
        "node",
        F.when(completes, after["error"]).alias("error"),
        "scheduled_ns",
        "phase",
        F.col("position").alias("invoke_index"),
        F.when(completes, after["position"]).alias("complete_index"),
        F.when(completes, after["via"]).alias("via"),
        F.when(completes, after["order"]).alias("order"),
        "source",
        "line",
        breach.alias("reason"),
        F.concat_ws(" ", "type", "process", "f", F.substring(F.coalesce("value", F.lit("null")), 1, 80)).alias(
            "sample"
        ),
    )


def _of_invoke() -> Column:
    """Returns the breach of an invoke; null if there is none."""
    before, process, f = F.col("before"), F.col("process"), F.col("f")
    still_open = F.format_string(
        "process %s invokes %s, but its %s of line %s is still open; a process has one operation at a time",
        process, f, before["f"], before["line"],
    )  # fmt: skip
    works_again = F.format_string(
        "process %s invokes %s, but ended with the info of line %s; a process whose operation is unknown never works again",
        process, f, F.col("ended"),
    )  # fmt: skip
    return (
        F.when(before["type"] == _INVOKE, still_open)
        .when(F.col("ended").isNotNull(), works_again)
        .when(before["time_ns"] > F.col("time_ns"), _back("its last operation completed"))
    )


def _of_completion() -> Column:
    """Returns the breach of a completion; null if there is none."""
    before, f, key, value = F.col("before"), F.col("f"), F.col("key"), F.col("value")
    has_value = F.col("has_value")
    not_open = F.format_string(
        "process %s completes %s, but has no operation open; expected an invoke before it", F.col("process"), f
    )
    other_f = F.format_string("expected the completion of %s of line %s, found %s", before["f"], before["line"], f)
    other_key = F.format_string(
        "expected a completion on key %s as invoked in line %s, found %s",
        _shown(before["key"]), before["line"], _shown(key),
    )  # fmt: skip
    other_value = F.format_string(
        "expected the value %s as invoked in line %s, found %s; a failed operation keeps its value",
        _shown(before["value"]), before["line"], _shown(value),
    )  # fmt: skip
    return (
        F.when(before.isNull() | (before["type"] != _INVOKE), not_open)
        .when(before["f"] != f, other_f)
        .when(~before["key"].eqNullSafe(key) & (has_value | key.isNotNull()), other_key)
        .when(before["time_ns"] > F.col("time_ns"), _back("it was invoked"))
        .when((F.col("type") == _FAIL) & has_value & ~before["value"].eqNullSafe(value), other_value)
    )


def _shown(text: Column) -> Column:
    return F.substring(F.coalesce(text, F.lit("nil")), 1, SHOWN_CHARACTERS)


def _back(what: str) -> Column:
    return F.format_string(
        f"time decreases: process %s has an event at %s ns, but {what} at %s ns",
        F.col("process"), F.col("time_ns"), F.col("before")["time_ns"],
    )  # fmt: skip
