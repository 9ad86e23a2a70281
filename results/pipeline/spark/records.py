"""The tables of runs, of faults and of sightings, from `test.json` and `results.json`.

A run with a missing or damaged file still has a row, with what is known. The run's own verdict is only quoted; it never
replaces the verdict of this job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t

from checker.formats.parquet import decode_value
from results.pipeline.read.documents import MERGED, PARSED, Known, event_row, known_of, parsed
from results.pipeline.read.sources import RESULTS, TEST, literal
from results.pipeline.schema import FAULTS, RUNS, SIGHTINGS, conform
from results.pipeline.spark.events import plain_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from checker.search.deciders import Wanted
    from results.pipeline.spark.tables import Seen

# The fault in an event of the nemesis.
_FAULT_EVENTS: Final = t.StructType(
    [
        t.StructField("run", t.StringType()),
        t.StructField("position", t.LongType()),
        t.StructField("time_ns", t.LongType()),
        t.StructField("fault", t.LongType()),
        t.StructField("kind", t.StringType()),
        t.StructField("begins", t.BooleanType()),
        t.StructField("targets", t.ArrayType(t.StringType())),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of runs.

    Attributes:
        runs: A row of `RUNS` for each run.
        faults: A row of `FAULTS` for each fault.
        sightings: A row of `SIGHTINGS` for each change of a node's role, term or leader.
        problems: `source`, `run` and `reason` of damaged files, which do not affect verdicts; None if there are none.
        known: The model or judge of each run.
    """

    runs: DataFrame
    faults: DataFrame
    sightings: DataFrame
    problems: DataFrame | None
    known: Known


def read_records(
    spark: SparkSession, seen: Sequence[Seen], fault_events: DataFrame | None, *, wanted: Wanted, staged: str
) -> Records:
    """Reads the records of runs.

    Args:
        spark: The session.
        seen: The runs.
        fault_events: Events of faults, for runs without a record of them.
        wanted: The user's model or workload.
        staged: A folder for temporary files of the job.
    """
    parsed_rows = spark.createDataFrame([], PARSED)
    files = {
        f"{each.source.path}/{name}": each.run
        for each in seen
        for name, there in ((TEST, each.source.has_test), (RESULTS, each.source.has_results))
        if there
    }
    if files:
        text = spark.read.text([literal(path) for path in sorted(files)], wholetext=True)
        content = text.select(
            F.col("value").cast("binary").alias("content"), F.col("_metadata.file_path").alias("file")
        )
        content.mapInArrow(_parser(files), PARSED).write.parquet(f"{staged}/records")
        parsed_rows = spark.read.schema(PARSED).parquet(f"{staged}/records")
    merged = parsed_rows.groupBy("run").agg(*(F.first(name, ignorenulls=True).alias(name) for name in MERGED))
    files_read = parsed_rows.select("run", "source", "workload", "options", "problem").collect() if files else []
    problems = parsed_rows.where("problem is not null").select("source", "run", F.col("problem").alias("reason"))
    known = known_of(seen, (row.asDict() for row in files_read), wanted)
    rows = [
        (each.run, each.source.day, each.source.format, each.source.path, each.source.report, known.name(each.run))
        for each in seen
    ]
    names = spark.createDataFrame(
        rows, "run string, changed string, format string, source string, report string, model string"
    )
    recorded = merged.select("run", F.explode("fault_rows").alias("fault")).select("run", "fault.*")
    faults = recorded if fault_events is None else recorded.unionByName(_of_events(fault_events, merged))
    runs = (
        names.join(merged, "run", "left")
        .join(
            faults.groupBy("run").agg(F.array_join(F.array_sort(F.collect_set("kind")), ",").alias("faults")),
            "run",
            "left",
        )
        .withColumn("day", F.coalesce(F.substring("started", 1, 10), "changed"))
        .withColumn("faults", F.coalesce("faults", F.lit("")))
    )
    sightings = merged.select("run", F.explode("sighting_rows").alias("sighting")).select("run", "sighting.*")
    return Records(
        runs=conform(runs, RUNS),
        faults=conform(faults, FAULTS),
        sightings=conform(sightings, SIGHTINGS),
        problems=problems if any(row["problem"] is not None for row in files_read) else None,
        known=known,
    )


def _of_events(events: DataFrame, merged: DataFrame) -> DataFrame:
    """Returns the faults of histories without a record of them: kinds, targets and times, without proof."""
    recorded = merged.where("fault_rows is not null").select("run")
    others = events.join(recorded, "run", "left_anti").select("run", "position", "time_ns", "f", "value")
    decoded = others.mapInArrow(_decode_events, _FAULT_EVENTS)
    starts = F.col("begins")
    return (
        decoded.groupBy("run", "fault")
        .agg(
            F.min(F.when(starts, F.col("kind"))).alias("kind"),
            F.max_by(F.when(starts, F.col("targets")), F.when(starts, F.col("position"))).alias("targets"),
            F.min(F.when(starts, F.col("time_ns"))).alias("start_ns"),
            F.max(F.when(~starts, F.col("time_ns"))).alias("end_ns"),
            F.lit(None).cast("boolean").alias("effective"),
            F.lit(None).cast("string").alias("proof"),
        )
        .where("start_ns is not null")
    )


def _decode_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the faults in events of the nemesis; events without a fault are left out."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - only executors need it

    layout = to_arrow_schema(_FAULT_EVENTS)
    for batch in batches:
        rows = []
        for row in batch.to_pylist():
            try:
                event = event_row(row["f"], decode_value(row["value"]) if row["value"] is not None else None)
            except ValueError:
                continue  # a value that is no JSON has no fault
            if event is not None:
                rows.append(row | event)
        yield pa.RecordBatch.from_pylist([{name: row[name] for name in layout.names} for row in rows], schema=layout)


def _parser(runs: Mapping[str, str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that parses whole files on the executors."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - only executors need it

        layout = to_arrow_schema(PARSED)
        for batch in batches:
            for content, place in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                file = plain_uri(place)
                yield parsed(runs[file], file, content, layout)

    return parse
