"""Availability around each fault, from any number of operations.

The rule: each number equals the one of `results.measure.availability`. A worker measures one slice of a time window. It also
reads the operations of the two seconds after the slice, which decide whether answers were sustained. Then the slices of a
window are combined. So a worker holds the operations of one slice, and all cores work on one window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from harness.units import NS_PER_S
from results.measure.availability import BEFORE_S, SUSTAINED_RATIO, SUSTAINED_S
from results.pipeline.decide.whole import stretches
from results.pipeline.schema import conform

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

SPAN_NS: Final = int(SUSTAINED_S * NS_PER_S)
SLICE_NS: Final = 20 * NS_PER_S
BEFORE_NS: Final = int(BEFORE_S * NS_PER_S)
# Above this number, slices become longer instead. A run with damaged times can seem to last for years.
MAX_SLICES: Final = 10_000

AVAILABILITY_COLUMNS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("fault", t.LongType(), nullable=False),
        t.StructField("kind", t.StringType(), nullable=False),
        t.StructField("node", t.StringType()),  # the clients that stay there; null: those that measure the system
        t.StructField("f", t.StringType()),  # null: all functions; a row has a node, a function, or neither
        t.StructField("part", t.StringType(), nullable=False),  # during, after
        t.StructField("start_s", t.DoubleType(), nullable=False),
        t.StructField("end_s", t.DoubleType(), nullable=False),
        t.StructField("operations", t.LongType(), nullable=False),
        t.StructField("answered", t.LongType(), nullable=False),
        t.StructField("refused", t.LongType(), nullable=False),
        t.StructField(
            "rate_before", t.DoubleType()
        ),  # of `during` for all clients; null if nothing was measured before
        t.StructField("rate_share", t.DoubleType()),
        t.StructField("first_ok_s", t.DoubleType()),
        t.StructField("sustained_ok_s", t.DoubleType()),
        t.StructField("longest_gap_s", t.DoubleType(), nullable=False),
        t.StructField("errors", t.MapType(t.StringType(), t.LongType())),
        t.StructField("overlaps", t.ArrayType(t.LongType())),
    ]
)

_SLICE: Final = t.StructType(
    [
        t.StructField("window", t.LongType()),
        t.StructField("slice_ns", t.LongType()),
        t.StructField("node", t.StringType()),
        t.StructField("f", t.StringType()),
        t.StructField("operations", t.LongType()),
        t.StructField("answered", t.LongType()),
        t.StructField("refused", t.LongType()),
        t.StructField("first_ns", t.LongType()),
        t.StructField("last_ns", t.LongType()),
        t.StructField("gap_ns", t.LongType()),
        t.StructField("sustained_ns", t.LongType()),
        t.StructField("errors", t.MapType(t.StringType(), t.LongType())),
    ]
)

_ASKED: Final = ("run", "node", "f", "wanted_ns", "invoke_index", "good", "code", "refused", "follows")
_WHOSE: Final = ("window", "node", "f")
BEFORE, DURING, AFTER = "before", "during", "after"


def availability(asked: DataFrame, spans: DataFrame, measured: DataFrame) -> DataFrame:
    """Measures the windows during and after each fault.

    Args:
        asked: For each operation `run`, `node`, `f`, `wanted_ns`, `invoke_index`, `good` (whether it was answered), `code` (of
            its error), `refused` (whether a node named the leader), and `follows` (whether its client follows the leader).
        spans: For each run `run`, `horizon_ns` (right after the last operation), `nodes` (those with clients of their own),
            `functions` (those of the operations that measure the system), and `following` (whether some clients follow the
            leader).
        measured: The rows of `windows`, as a checkpoint, because the window numbers must be the same each time.

    Returns:
        The columns of `AVAILABILITY_COLUMNS`: a row for each window of the system (`node` and `f` are null), one for each
        node, and one for each function.
    """
    rows = (
        _inside(asked, measured, spans)
        .repartition("window", "slice_ns")
        .sortWithinPartitions("window", "slice_ns", "wanted_ns", "invoke_index")
        .drop("invoke_index")
        .mapInArrow(_slices, _SLICE)
        .localCheckpoint()  # few rows, and read twice
    )
    nobody = F.lit(None).cast("string")
    nodes = spans.select("run", F.explode("nodes").alias("node"), nobody.alias("f"))
    functions = spans.select("run", nobody.alias("node"), F.explode("functions").alias("f"))
    system = measured.withColumns({"node": nobody, "f": nobody})
    grid = system.unionByName(measured.join(F.broadcast(nodes.unionByName(functions)), "run"))
    second = F.lit(float(NS_PER_S))
    no_errors = F.create_map().cast("map<string,bigint>")
    measures = _same(_same(grid, _whole(rows, measured)), _errors(rows))
    start, end = F.col("from_ns"), F.col("to_ns")
    edges = F.greatest(F.col("gap_ns"), end - F.coalesce("last_ns", start))
    rate = F.coalesce("answered", F.lit(0)) / ((end - start) / second)
    of_fault = Window.partitionBy("run", "fault", "node", "f")
    whole = F.col("node").isNull() & F.col("f").isNull()
    rates = (
        measures.withColumn("rate_before", F.max(F.when(F.col("part") == BEFORE, rate)).over(of_fault))
        .where(F.col("part") != BEFORE)
        .withColumn("rate_before", F.when((F.col("part") == DURING) & whole, F.col("rate_before")))
    )
    return conform(
        rates.select(
            *("run", "fault", "kind", "node", "f", "part", "overlaps"),
            (start / second).alias("start_s"),
            (end / second).alias("end_s"),
            F.coalesce("operations", F.lit(0)).alias("operations"),
            F.coalesce("answered", F.lit(0)).alias("answered"),
            F.coalesce("refused", F.lit(0)).alias("refused"),
            "rate_before",
            F.when(F.col("rate_before") > 0, rate / F.col("rate_before")).alias("rate_share"),
            ((F.col("first_ns") - start) / second).alias("first_ok_s"),
            ((F.col("sustained_ns") - start) / second).alias("sustained_ok_s"),
            (edges / second).alias("longest_gap_s"),
            F.coalesce("errors", no_errors).alias("errors"),
        ),
        AVAILABILITY_COLUMNS,
    )


def windows(faults: DataFrame, spans: DataFrame) -> DataFrame:
    """Returns the windows before, during and after each fault, with a number (`window`) and the faults that overlap them."""
    every = faults.join(spans, "run", "left").select(
        "run",
        "fault",
        "kind",
        "start_ns",
        F.coalesce("horizon_ns", F.lit(0)).alias("horizon_ns"),
        F.coalesce("end_ns", F.greatest("start_ns", F.coalesce("horizon_ns", F.lit(0)))).alias("end_ns"),
    )
    others = every.select("run", *(F.col(name).alias(f"other_{name}") for name in ("fault", "start_ns", "end_ns")))
    later = F.min(F.when(F.col("other_start_ns") >= F.col("end_ns"), F.col("other_start_ns")))
    is_other = (F.col("other_fault") != F.col("fault")) & (F.col("other_end_ns") > F.col("other_start_ns"))
    is_on = (F.col("other_start_ns") <= F.col("start_ns")) & (F.col("other_end_ns") > F.col("start_ns"))
    met = F.struct("other_fault", "other_start_ns", "other_end_ns")
    grouped = (
        every.where("end_ns > start_ns")
        .join(others, "run")
        .groupBy("run", "fault", "kind", "start_ns", "end_ns", "horizon_ns")
        .agg(
            later.alias("next_ns"),
            F.max(F.when(is_other & (F.col("other_end_ns") <= F.col("start_ns")), F.col("other_end_ns"))).alias(
                "healed_ns"
            ),
            F.coalesce(F.max(is_other & is_on), F.lit(col=False)).alias("within"),
            F.collect_list(F.when(F.col("other_fault") != F.col("fault"), met)).alias("met"),
        )
        .withColumn("before_ns", F.greatest(F.coalesce("healed_ns", F.lit(0)), F.col("start_ns") - BEFORE_NS, F.lit(0)))
        .withColumn("until_ns", F.least("next_ns", "horizon_ns"))
        .withColumn(
            "overlaps",
            F.expr(
                "array_sort(transform(filter(met, o -> o.other_start_ns < greatest(until_ns, end_ns)"
                " and o.other_end_ns > start_ns), o -> o.other_fault))"
            ),
        )
    )
    begin = F.when(F.col("within"), F.col("start_ns")).otherwise(F.col("before_ns"))
    parts = F.array(
        F.struct(F.lit(BEFORE).alias("part"), begin.alias("from_ns"), F.col("start_ns").alias("to_ns")),
        F.struct(F.lit(DURING).alias("part"), F.col("start_ns").alias("from_ns"), F.col("end_ns").alias("to_ns")),
        F.struct(F.lit(AFTER).alias("part"), F.col("end_ns").alias("from_ns"), F.col("until_ns").alias("to_ns")),
    )
    return (
        grouped.select("run", "fault", "kind", "overlaps", F.explode(parts).alias("window"))
        .select("run", "fault", "kind", "overlaps", "window.*")
        .where("to_ns > from_ns")
        .withColumn("window", F.monotonically_increasing_id())
    )


def _same(left: DataFrame, right: DataFrame) -> DataFrame:
    """Joins by window, node and function; a null equals a null."""
    renamed = right.withColumnsRenamed({name: f"its_{name}" for name in _WHOSE})
    on = [left[name].eqNullSafe(renamed[f"its_{name}"]) for name in _WHOSE]
    return left.join(renamed, on, "left").drop(*(f"its_{name}" for name in _WHOSE))


def _inside(asked: DataFrame, measured: DataFrame, spans: DataFrame) -> DataFrame:
    """Returns operations with each window that contains their time: in their own slice, and in the slice just before it."""
    width = F.greatest(F.lit(SLICE_NS), F.expr(f"horizon_ns div {MAX_SLICES}"), F.lit(SPAN_NS))
    widths = spans.select("run", "horizon_ns", "following", width.alias("width_ns"))
    begun = measured.join(widths, "run").where("from_ns < horizon_ns")
    first, last = _slice(F.col("from_ns")), _slice(F.least("to_ns", "horizon_ns") - 1)
    slices = begun.select(
        *("window", "run", "from_ns", "to_ns"), F.explode(F.sequence(first, last, F.col("width_ns"))).alias("slice_ns")
    )
    own = _slice(F.col("wanted_ns"))
    ahead = F.col("wanted_ns") - own < SPAN_NS
    both = F.when(ahead, F.array(own, own - F.col("width_ns"))).otherwise(F.array(own))
    return (
        asked.join(F.broadcast(widths), "run")
        .withColumn("measures", F.col("follows") | ~F.col("following"))
        .select(*_ASKED, "measures", "width_ns", F.explode(both).alias("slice_ns"))
        .join(F.broadcast(slices), ["run", "slice_ns"])
        .where("wanted_ns >= from_ns and wanted_ns < to_ns")
        .select(
            "window",
            "slice_ns",
            *_ASKED[1:],
            "measures",
            (F.col("wanted_ns") < F.col("slice_ns") + F.col("width_ns")).alias("own"),
            (F.col("wanted_ns") + SPAN_NS <= F.col("to_ns")).alias("in_time"),
        )
    )


def _slice(time_ns: Column) -> Column:
    """Returns the start of the slice that contains a time."""
    return time_ns - F.pmod(time_ns, F.col("width_ns"))


def _slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Measures slices; operations come sorted by slice and time."""
    pending: list[pa.RecordBatch] = []
    current: tuple[int, int] | None = None
    for batch in batches:
        window, begins = (batch.column(name).to_numpy() for name in ("window", "slice_ns"))
        for low, high in stretches(window, begins):
            address = int(window[low]), int(begins[low])
            if pending and address != current:
                yield _measured(pending)
                pending = []
            current = address
            pending.append(batch.slice(low, high - low))
    if pending:
        yield _measured(pending)


def _measured(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Measures one slice: for the system, for the clients of each node, and for each function."""
    rows = pa.Table.from_batches(parts)
    about = {name: rows.column(name)[0].as_py() for name in ("window", "slice_ns")}
    times, good, own, in_time = (rows.column(name).to_numpy() for name in ("wanted_ns", "good", "own", "in_time"))
    refused, follows, measures = (rows.column(name).to_numpy() for name in ("refused", "follows", "measures"))
    nodes, functions, errors = (
        rows.column(name).combine_chunks().dictionary_encode() for name in ("node", "f", "code")
    )
    node_of, f_of, error_of = (each.indices.fill_null(-1).to_numpy() for each in (nodes, functions, errors))
    codes = errors.dictionary.to_pylist()
    whose: list[tuple[str | None, str | None, Any]] = [(None, None, measures)]
    whose += [(each, None, ~follows & (node_of == place)) for place, each in enumerate(nodes.dictionary.to_pylist())]
    whose += [(None, each, measures & (f_of == place)) for place, each in enumerate(functions.dictionary.to_pylist())]
    found = []
    for node, f, is_theirs in whose:
        counts = np.bincount(error_of[is_theirs & own & (error_of >= 0)], minlength=len(codes))
        kept = is_theirs & ~refused
        errors_by_code = [(codes[place], int(counts[place])) for place in np.flatnonzero(counts)]
        found.append(
            {
                **about,
                "node": node,
                "f": f,
                **slice_of(times[kept], good[kept], own[kept], in_time[kept]),
                "refused": int(np.count_nonzero(is_theirs & refused & own)),
                "errors": errors_by_code,
            }
        )
    return pa.RecordBatch.from_pylist(found, schema=to_arrow_schema(_SLICE))


def slice_of(
    times: NDArray[np.int64], good: NDArray[np.bool_], own: NDArray[np.bool_], in_time: NDArray[np.bool_]
) -> dict[str, int | None]:
    """Measures a slice of a window as `results.measure.availability` defines it.

    Args:
        times: The time of each operation in ns, ascending: the slice, and the window's operations in the `SPAN_NS` after it.
        good: Whether the operation was answered.
        own: Whether it belongs to the slice.
        in_time: Whether the window lasts for `SPAN_NS` after it.
    """
    good_ns = times[good & own]
    sums = np.concatenate(([0], np.cumsum(good)))
    places = np.flatnonzero(good & own & in_time)
    until = np.searchsorted(times, times[places] + SPAN_NS, side="right")
    lasting = places[sums[until] - sums[places] >= SUSTAINED_RATIO * (until - places)]
    return {
        "operations": int(np.count_nonzero(own)),
        "answered": int(good_ns.size),
        "first_ns": int(good_ns[0]) if good_ns.size else None,
        "last_ns": int(good_ns[-1]) if good_ns.size else None,
        "gap_ns": int(np.diff(good_ns).max()) if good_ns.size > 1 else None,
        "sustained_ns": int(times[lasting[0]]) if lasting.size else None,
    }


def _errors(slices: DataFrame) -> DataFrame:
    """Counts the errors of each window by their codes."""
    return (
        slices.select(*_WHOSE, F.explode("errors").alias("code", "count"))
        .groupBy(*_WHOSE, "code")
        .agg(F.sum("count").alias("count"))
        .groupBy(*_WHOSE)
        .agg(F.map_from_entries(F.collect_list(F.struct("code", "count"))).alias("errors"))
    )


def _whole(slices: DataFrame, measured: DataFrame) -> DataFrame:
    """Combines the slices of each window."""
    earlier = Window.partitionBy(*_WHOSE).orderBy("slice_ns").rowsBetween(Window.unboundedPreceding, -1)
    before_ns = F.coalesce(F.last("last_ns", ignorenulls=True).over(earlier), "from_ns")
    return (
        slices.join(F.broadcast(measured.select("window", "from_ns")), "window")
        .withColumn("gap_ns", F.greatest("gap_ns", F.col("first_ns") - before_ns))
        .groupBy(*_WHOSE)
        .agg(
            *(F.sum(name).alias(name) for name in ("operations", "answered", "refused")),
            *(F.min(name).alias(name) for name in ("first_ns", "sustained_ns")),
            *(F.max(name).alias(name) for name in ("last_ns", "gap_ns")),
        )
    )
