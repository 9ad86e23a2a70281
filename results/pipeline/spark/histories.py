"""Histories of events as input: tasks read them as rows, and the operations become a table.

`results.pipeline.read.events` says what a row is, and what becomes of bad lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.formats.readers import JSONL
from results.pipeline.read.events import BAD, FAULT, NONE_READ, OPERATION, ROWS, TORN, is_torn, kind_of
from results.pipeline.read.sources import Seen, literal
from results.pipeline.schema import QUARANTINE
from results.pipeline.spark import parts
from results.pipeline.spark.events import events_read
from results.pipeline.spark.tables import union, write_operations
from results.pipeline.spark.types import conform, struct_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The contents of histories.

    Attributes:
        operations: Their operations, from the written table; None if there is no event of a client.
        quarantine: The malformed rows; None if there are none.
        seen: The runs.
        fault_events: The events of faults, as rows of `results.pipeline.read.events`.
    """

    operations: DataFrame | None
    quarantine: DataFrame | None
    seen: Sequence[Seen]
    fault_events: DataFrame


def read_histories(
    spark: SparkSession, files: Files, sources: Sequence[Input], *, staged: str, kept: str, keyed: bool | None
) -> Read:
    """Reads histories, and writes their operations.

    Args:
        spark: The session.
        files: The file systems.
        sources: The histories, one run in each.
        staged: A folder for temporary files of the job.
        kept: The folder for the table of operations.
        keyed: Whether values of events are pairs of a key and a value; None: detected for each history.
    """
    runs = {_run(source): source for source in sources}
    rows = _staged(spark, files, runs, f"{staged}/events", keyed=keyed)
    counts = {
        row["run"]: row
        for row in rows.groupBy("run")
        .agg(
            F.max("invokes").alias("invokes"),
            F.count_if(F.col("row") == BAD).alias("bad"),
            F.count_if(F.col("row") == TORN).alias("torn"),
        )
        .collect()
    }
    torn = [run for run, row in counts.items() if row["torn"] and is_torn(files, runs[run])]
    quarantine = []
    if sum(row["bad"] + row["torn"] for row in counts.values()) > len(torn):
        bad = (F.col("row") == BAD) | ((F.col("row") == TORN) & ~F.col("run").isin(torn))
        quarantine.append(conform(rows.where(bad), QUARANTINE))
    # A file without a line has no row.
    empty = [(source.data, run, NONE_READ) for run, source in runs.items() if run not in counts]
    if empty:
        quarantine.append(conform(spark.createDataFrame(empty, "source string, run string, reason string"), QUARANTINE))
    seen = [
        Seen(run=run, source=source, operations=counts[run]["invokes"] if run in counts else 0)
        for run, source in runs.items()
    ]
    operations = None
    if any(history.operations for history in seen):
        days = {run: source.day for run, source in runs.items()}
        operations = write_operations(spark, rows.where(F.col("row") == OPERATION), days, kept)
    return Read(
        operations=operations,
        quarantine=union(quarantine) if quarantine else None,
        seen=seen,
        fault_events=rows.where(F.col("row") == FAULT),
    )


def _run(source: Input) -> str:
    if source.run is None:
        raise ValueError(f"{source.path} has no run's name")
    return source.run


def _staged(spark: SparkSession, files: Files, runs: dict[str, Input], folder: str, *, keyed: bool | None) -> DataFrame:
    """Reads all events once, and writes their rows."""
    large = {run: source for run, source in runs.items() if _is_large(files, source)}
    frames = [
        parts.read_in_parts(spark, run, source, f"{folder}/{index}", keyed=keyed)
        for index, (run, source) in enumerate(large.items())
    ]
    in_parts = [rows for rows in frames if rows is not None]
    rest = {run: source for run, source in runs.items() if run not in large}
    rest |= {run: source for (run, source), rows in zip(large.items(), frames, strict=True) if rows is None}
    if rest:
        in_parts.append(_read_whole(spark, rest, f"{folder}/whole", keyed=keyed))
    return union(in_parts)


def _is_large(files: Files, source: Input) -> bool:
    """Returns whether several tasks read a history."""
    if source.format != JSONL or source.bare or source.data.endswith(".gz"):
        return False
    return sum(entry.size for entry in files.glob(literal(source.data))) > parts.PART_BYTES


def _read_whole(spark: SparkSession, runs: dict[str, Input], folder: str, *, keyed: bool | None) -> DataFrame:
    """Reads each history in one task."""
    # A task reads several files, and no file of less than a tebibyte is split. The settings need a session of their own.
    whole = spark.newSession()
    tasks = 4 * spark.sparkContext.defaultParallelism
    for name, value in (("maxPartitionBytes", 1 << 62), ("openCostInBytes", 1 << 40), ("minPartitionNum", tasks)):
        whole.conf.set(f"spark.sql.files.{name}", str(value))
    by_file = {source.data: (run, kind_of(source)) for run, source in runs.items()}
    lines = whole.read.text([literal(path) for path in sorted(by_file)], lineSep="\n")
    line = lines.select(F.col("value").cast("binary").alias("line"), F.col("_metadata.file_path").alias("file"))
    line.mapInArrow(events_read(by_file, keyed=keyed), struct_of(ROWS)).write.parquet(folder)
    return spark.read.schema(struct_of(ROWS)).parquet(folder)
