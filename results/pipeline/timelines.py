"""What happened over time: rates, latencies, concurrency, and how the system bore each fault, in a bounded number of rows.

The law: availability means exactly what `results.availability` says it means, and leaders what `results.leadership` says; a
bucket of time is as wide as the report would make it. An operation belongs to the moment at which it was wanted, and the reads
after healing are left out. Quantiles over time are those of Spark's `percentile_approx`: a latency that was measured, the
nearest rank for up to some thousand operations in a bucket, and for more of them one whose rank is off by at most a
ten-thousandth of their number. Operations are aggregated where they are; what leaves is a row for each bucket, function, type
and node.

For availability the operations of one window are looked at together, as two arrays of 9 bytes for each, in a worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t

from harness.watch import Sighting
from results.availability import SUSTAINED_RATIO, SUSTAINED_S
from results.leadership import Elections
from results.pipeline.schema import conform
from results.series import LEAST_MS, MAX_BUCKETS, NICE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

ACCURACY: Final = 10_000
SHOWN_KEYS: Final = 40
_NS: Final = 1_000_000_000

RATES: Final = "rates"  # run, f, type, node, time_s (a bucket's start), width_s, operations
LATENCIES: Final = "latencies"  # run, f, time_s, width_s, operations, p50_ms, p95_ms, p99_ms, max_ms; of ok operations
TOTALS: Final = "totals"  # run, f, ok, info, fail, and the same quantiles; over the whole run
CONCURRENCY: Final = "concurrency"  # run, time_s, width_s, open: how many were asked and not answered at that time
AVAILABILITY: Final = "availability"
LEADERS: Final = "leaders"  # run, fault, part, changes, leaders, terms; fault and part are null for the whole run
HEAT: Final = "heat"  # run, key, time_s, width_s, operations, answered; of the keys with the most operations

AVAILABILITY_COLUMNS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("fault", t.LongType(), nullable=False),
        t.StructField("kind", t.StringType(), nullable=False),
        t.StructField("node", t.StringType()),  # null: all clients
        t.StructField("part", t.StringType(), nullable=False),  # during, after
        t.StructField("start_s", t.DoubleType(), nullable=False),
        t.StructField("end_s", t.DoubleType(), nullable=False),
        t.StructField("operations", t.LongType(), nullable=False),
        t.StructField("answered", t.LongType(), nullable=False),
        t.StructField("first_ok_s", t.DoubleType()),
        t.StructField("sustained_ok_s", t.DoubleType()),
        t.StructField("longest_gap_s", t.DoubleType(), nullable=False),
        t.StructField("errors", t.MapType(t.StringType(), t.LongType())),
        t.StructField("overlaps", t.ArrayType(t.LongType())),
    ]
)

_MEASURED: Final = (
    "run string, fault bigint, part string, node string, operations bigint, answered bigint, "
    "first_ns bigint, sustained_ns bigint, gap_ns bigint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineOptions:
    """What is asked.

    Attributes:
        answers: Codes of `fail` errors that are answers, of runs that do not say it.
        shown_keys: For how many keys of a run `heat` has rows, those with the most operations.
    """

    answers: Sequence[str] = ()
    shown_keys: int = SHOWN_KEYS


def timelines(
    operations: DataFrame,
    faults: DataFrame,
    options: TimelineOptions | None = None,
    *,
    runs: DataFrame | None = None,
    sightings: DataFrame | None = None,
) -> dict[str, DataFrame]:
    """Aggregates operations over time.

    Args:
        operations: The columns of `schema.OPERATIONS`. It is read once for each table.
        faults: The columns of `runs.FAULTS`.
        options: What is asked.
        runs: `run` and `answers`, the codes of each run that are answers; None: those of the options for all.
        sightings: The columns of `runs.SIGHTINGS`; None: nothing is said of leaders.

    Returns:
        The tables by name, as the constants of this module name and describe them.
    """
    options = options or TimelineOptions()
    asked = _asked(operations, options, runs)
    spans = asked.groupBy("run").agg((F.max("wanted_ns") + 1).alias("horizon_ns")).localCheckpoint()
    bucketed = _bucketed(asked, spans)
    tables = {
        RATES: bucketed.groupBy("run", "f", "type", "node", "time_s", "width_s").agg(F.count("*").alias("operations")),
        LATENCIES: bucketed.where("type = 'ok'")
        .groupBy("run", "f", "time_s", "width_s")
        .agg(F.count("*").alias("operations"), *_quantiles()),
        TOTALS: _totals(bucketed),
        CONCURRENCY: _concurrency(asked, spans),
        AVAILABILITY: _availability(asked, spans, faults),
        HEAT: _heat(bucketed, options.shown_keys),
    }
    if sightings is not None:
        tables[LEADERS] = _leaders(sightings, _windows(faults, spans))
    return tables


def _asked(operations: DataFrame, options: TimelineOptions, runs: DataFrame | None) -> DataFrame:
    """Returns the workload's own operations, with when each was wanted and whether it was answered."""
    fixed = F.array(*(F.lit(code) for code in options.answers)).cast("array<string>")
    if runs is None:
        rows = operations.withColumn("answers", fixed)
    else:
        known = runs.select("run", F.coalesce("answers", fixed).alias("answers"))
        rows = operations.join(F.broadcast(known), "run", "left").withColumn("answers", F.coalesce("answers", fixed))
    code = F.regexp_replace(F.substring_index("error", ":", 1), r"(?U)^\s+|\s+$", "")
    good = (F.col("type") == "ok") | (
        (F.col("type") == "fail") & F.coalesce(F.array_contains("answers", code), F.lit(col=False))
    )
    return rows.where("phase is null").select(
        "run",
        "key",
        "f",
        "type",
        "node",
        "start_ns",
        "end_ns",
        "invoke_index",
        F.coalesce("scheduled_ns", "start_ns").alias("wanted_ns"),
        code.alias("code"),
        good.alias("good"),
    )


def _width_s(horizon_ns: Column) -> Column:
    """Returns what `results.series.bucket_s` does."""
    duration_s = (horizon_ns - 1) / F.lit(_NS)
    width: Any = duration_s / MAX_BUCKETS
    for nice in reversed(NICE_S):
        width = F.when(duration_s <= MAX_BUCKETS * nice, F.lit(float(nice))).otherwise(width)
    return F.greatest(width, F.lit(min(NICE_S)))


def _bucketed(asked: DataFrame, spans: DataFrame) -> DataFrame:
    widths = spans.select("run", _width_s(F.col("horizon_ns")).alias("width_s"))
    at_s = F.greatest(F.col("wanted_ns"), F.lit(0)) / F.lit(_NS)
    # As Python floors, where 1.0 // 0.1 is 9.
    place = F.round((at_s - at_s % F.col("width_s")) / F.col("width_s"))
    return asked.join(F.broadcast(widths), "run").withColumn("time_s", place * F.col("width_s"))


def _quantiles() -> list[Column]:
    took_ms = F.greatest((F.col("end_ns") - F.col("wanted_ns")) / 1e6, F.lit(LEAST_MS))
    ok_ms = F.when(F.col("type") == "ok", took_ms)
    names = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
    return [
        *(F.percentile_approx(ok_ms, share, ACCURACY).alias(name) for name, share in names.items()),
        F.max(ok_ms).alias("max_ms"),
    ]


def _totals(bucketed: DataFrame) -> DataFrame:
    counts = [F.count(F.when(F.col("type") == kind, 1)).alias(kind) for kind in ("ok", "info", "fail")]
    return bucketed.groupBy("run", "f").agg(*counts, *_quantiles())


def _concurrency(asked: DataFrame, spans: DataFrame) -> DataFrame:
    """Counts, at the start of each bucket, what had been asked and was not answered."""
    widths = spans.withColumn("width_s", _width_s(F.col("horizon_ns"))).withColumn(
        "width_ns", F.round(F.col("width_s") * F.lit(_NS)).cast("bigint")
    )

    def after(time_ns: str) -> Column:
        """The first bucket that begins at or after a time, for which what began then counts, and what ended does not."""
        place = F.ceil(F.greatest(F.col(time_ns), F.lit(0)) / F.col("width_ns"))
        return F.when(F.col(time_ns).isNotNull(), place)  # the greatest of null and 0 would be 0

    # Two small sums for each operation, combined before they travel.
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


def _heat(bucketed: DataFrame, keys: int) -> DataFrame:
    busiest = Window.partitionBy("run").orderBy(F.desc("count"), "key")
    chosen = (
        bucketed.where("key is not null")
        .groupBy("run", "key")
        .count()
        .withColumn("place", F.row_number().over(busiest))
        .where(F.col("place") <= keys)
        .select("run", "key")
    )
    return (
        bucketed.join(F.broadcast(chosen), ["run", "key"])
        .groupBy("run", "key", "time_s", "width_s")
        .agg(F.count("*").alias("operations"), F.sum(F.col("good").cast("bigint")).alias("answered"))
    )


def _windows(faults: DataFrame, spans: DataFrame) -> DataFrame:
    """Returns the stretches during and after each fault, and what other faults were on in them."""
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
    met = F.struct("other_fault", "other_start_ns", "other_end_ns")
    grouped = (
        every.where("end_ns > start_ns")
        .join(others, "run")
        .groupBy("run", "fault", "kind", "start_ns", "end_ns", "horizon_ns")
        .agg(later.alias("next_ns"), F.collect_list(F.when(F.col("other_fault") != F.col("fault"), met)).alias("met"))
        .withColumn("until_ns", F.least("next_ns", "horizon_ns"))
        .withColumn(
            "overlaps",
            F.expr(
                "array_sort(transform(filter(met, o -> o.other_start_ns < greatest(until_ns, end_ns)"
                " and o.other_end_ns > start_ns), o -> o.other_fault))"
            ),
        )
    )
    parts = F.array(
        F.struct(F.lit("during").alias("part"), F.col("start_ns").alias("from_ns"), F.col("end_ns").alias("to_ns")),
        F.struct(F.lit("after").alias("part"), F.col("end_ns").alias("from_ns"), F.col("until_ns").alias("to_ns")),
    )
    return (
        grouped.select("run", "fault", "kind", "overlaps", F.explode(parts).alias("window"))
        .select("run", "fault", "kind", "overlaps", "window.*")
        .where("to_ns > from_ns")
    )


def _availability(asked: DataFrame, spans: DataFrame, faults: DataFrame) -> DataFrame:
    windows = _windows(faults, spans).localCheckpoint()
    bounds = F.broadcast(windows.select("run", "fault", "part", "from_ns", "to_ns"))
    within = asked.select("run", "node", "wanted_ns", "good", "code", "invoke_index").join(bounds, "run")
    inside = within.where("wanted_ns >= from_ns and wanted_ns < to_ns").select(
        "run", "fault", "part", "from_ns", "to_ns", "wanted_ns", "good", "code", "invoke_index",
        F.explode(F.array_distinct(F.array(F.lit(None).cast("string"), F.col("node")))).alias("node"),
    )  # fmt: skip
    address = ["run", "fault", "part", "node"]
    measured = (
        inside.select(*address, "from_ns", "to_ns", "wanted_ns", "good", "invoke_index")
        .repartition(*address)
        .sortWithinPartitions(*address, "wanted_ns", "invoke_index")
        .mapInArrow(_measure, _MEASURED)
    )
    errors = (
        inside.where("code is not null")
        .groupBy(*address, "code")
        .count()
        .groupBy(*address)
        .agg(F.map_from_entries(F.collect_list(F.struct("code", "count"))).alias("errors"))
    )
    nodes = asked.where("node is not null").select("run", "node").distinct()
    all_of_them = windows.withColumn("node", F.lit(None).cast("string"))
    grid = all_of_them.unionByName(windows.join(F.broadcast(nodes), "run"))

    def same(left: DataFrame, right: DataFrame) -> DataFrame:
        """Joins by address, where no node is equal to no node."""
        renamed = right.withColumnsRenamed({name: f"its_{name}" for name in address})
        on = [left[name].eqNullSafe(renamed[f"its_{name}"]) for name in address]
        return left.join(renamed, on, "left").drop(*(f"its_{name}" for name in address))

    rows = same(same(grid, measured), errors)
    second = F.lit(float(_NS))
    no_errors = F.create_map().cast("map<string,bigint>")
    return conform(
        rows.select(
            *address,
            "kind",
            "overlaps",
            (F.col("from_ns") / second).alias("start_s"),
            (F.col("to_ns") / second).alias("end_s"),
            F.coalesce("operations", F.lit(0)).alias("operations"),
            F.coalesce("answered", F.lit(0)).alias("answered"),
            (F.col("first_ns") / second).alias("first_ok_s"),
            (F.col("sustained_ns") / second).alias("sustained_ok_s"),
            (F.coalesce("gap_ns", F.col("to_ns") - F.col("from_ns")) / second).alias("longest_gap_s"),
            F.coalesce("errors", no_errors).alias("errors"),
        ),
        AVAILABILITY_COLUMNS,
    )


def _measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Measures windows whose operations come one window after the other, in the order of time."""
    import pyarrow as pa  # noqa: PLC0415 - the executors' alone

    def measured(
        address: tuple[Any, ...], times: list[NDArray[np.int64]], good: list[NDArray[np.bool_]]
    ) -> pa.RecordBatch:
        *names, from_ns, to_ns = address
        found = window_of(np.concatenate(times), np.concatenate(good), from_ns, to_ns)
        row = dict(zip(("run", "fault", "part", "node"), names, strict=True)) | found
        kinds = {name: pa.string() if kind == "string" else pa.int64() for name, kind in _columns(_MEASURED)}
        return pa.RecordBatch.from_pylist([row], schema=pa.schema(kinds.items()))

    current: tuple[Any, ...] | None = None
    times: list[NDArray[np.int64]] = []
    good: list[NDArray[np.bool_]] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        fields = [batch.column(name) for name in ("run", "fault", "part", "node", "from_ns", "to_ns")]
        for first, last in _stretches(fields[:4]):
            address = tuple(field[first].as_py() for field in fields)
            if address != current and current is not None:
                yield measured(current, times, good)
                times, good = [], []
            current = address
            part = batch.slice(first, last - first)
            times.append(part.column("wanted_ns").to_numpy(zero_copy_only=False))
            good.append(part.column("good").to_numpy(zero_copy_only=False).astype(np.bool_))
    if current is not None:
        yield measured(current, times, good)


def _columns(ddl: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (column.split() for column in ddl.split(", "))]


def _stretches(columns: Sequence[pa.Array]) -> list[tuple[int, int]]:
    """Returns where rows that are equal in all columns begin and end."""
    size = len(columns[0])
    differs = np.zeros(size, np.bool_)
    for column in columns:
        codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        differs[1:] |= codes[1:] != codes[:-1]
    edges = [0, *np.flatnonzero(differs).tolist(), size]
    return list(pairwise(edges))


def window_of(times: NDArray[np.int64], good: NDArray[np.bool_], start_ns: int, end_ns: int) -> dict[str, int | None]:
    """Measures a window as `results.availability` defines it.

    Args:
        times: When each of the window's operations was wanted, ascending.
        good: Whether it was answered.
        start_ns: The window's start.
        end_ns: Its end.
    """
    good_ns = times[good]
    gap_ns = int(np.diff(np.concatenate(([start_ns], good_ns, [end_ns]))).max())
    sums = np.concatenate(([0], np.cumsum(good)))
    places = np.flatnonzero(good & (times + int(SUSTAINED_S * _NS) <= end_ns))
    until = np.searchsorted(times, times[places] + int(SUSTAINED_S * _NS), side="right")
    lasting = places[sums[until] - sums[places] >= SUSTAINED_RATIO * (until - places)]
    return {
        "operations": int(times.size),
        "answered": int(good_ns.size),
        "first_ns": int(good_ns[0]) - start_ns if good_ns.size else None,
        "sustained_ns": int(times[lasting[0]]) - start_ns if lasting.size else None,
        "gap_ns": gap_ns,
    }


def _leaders(sightings: DataFrame, windows: DataFrame) -> DataFrame:
    """Counts leader changes of whole runs and around faults; the sightings of a run are changes only, so they are few."""
    layout = "run string, fault bigint, part string, changes bigint, leaders array<string>, terms array<bigint>"
    asked = windows.select("run", "fault", "part", "from_ns", "to_ns")
    nothing = [F.lit(None).cast("bigint").alias(name) for name in ("from_ns", "to_ns")]
    whole = sightings.select("run").distinct().select("run", F.lit(None).cast("bigint").alias("fault"),
        F.lit(None).cast("string").alias("part"), *nothing)  # fmt: skip
    stretches = F.collect_list(F.struct("fault", "part", "from_ns", "to_ns")).alias("stretches")
    by_run = asked.unionByName(whole).groupBy("run").agg(stretches)
    told = F.collect_list(F.struct("time_ns", "node", "role", "term", "leader")).alias("told")
    joined = sightings.groupBy("run").agg(told).join(by_run, "run")
    return joined.mapInPandas(_elections, layout)


def _elections(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    import pandas as pd  # noqa: PLC0415 - the executors' alone

    for frame in frames:
        rows = []
        for run, told, stretches in zip(frame["run"], frame["told"], frame["stretches"], strict=True):
            seen = [Sighting(**_plain(each)) for each in told]
            counted = Elections(seen)
            for stretch in map(_plain, stretches):
                led = counted.within(stretch["from_ns"], stretch["to_ns"])
                rows.append((run, stretch["fault"], stretch["part"], led.changes, list(led.leaders), list(led.terms)))
        columns = ["run", "fault", "part", "changes", "leaders", "terms"]
        yield pd.DataFrame(rows, columns=columns).astype({"fault": "Int64", "changes": "int64"})


def _plain(row: Any) -> dict[str, Any]:
    return dict(row) if isinstance(row, dict) else row.asDict()
