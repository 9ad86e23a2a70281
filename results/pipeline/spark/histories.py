"""Histories of events as input: Python decodes the events, Spark pairs them, and the operations become a table.

Each line of `history.jsonl` has its index, so tasks may read the lines in any order. Afterwards a query checks that there is
one header, and that the indexes start at 0 without a gap. As in `labrys check`, a torn last line is left out: the run ended
while it wrote the line. It is the only bad line of its file, it begins as the next event would, and no newline ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.formats.read import EDN, ETCD_LOG, JSONL
from results.pipeline.read.sources import Seen, literal
from results.pipeline.schema import QUARANTINE
from results.pipeline.spark.events import BAD, BARE, EVENT, FAULT, HEADER, SCHEMA, form_events, json_events
from results.pipeline.spark.pairing import paired
from results.pipeline.spark.tables import union, write_operations
from results.pipeline.spark.types import conform

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input

_WHOLE_FILES: Final = {
    # One task reads a file of forms, in order: no split is larger than this, and each file starts a new split.
    "spark.sql.files.maxPartitionBytes": str(1 << 62),
    "spark.sql.files.openCostInBytes": str(1 << 62),
    "spark.sql.files.minPartitionNum": "1",
}
_NONE_READ: Final = "expected a history, found no event in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The contents of histories.

    Attributes:
        operations: Their operations, from the written table; None if there is no event of a client.
        quarantine: The malformed rows; None if there are none.
        seen: The runs.
        fault_events: The events of faults.
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
    events = _stage(spark, sources, f"{staged}/events", keyed=keyed)
    checked = _checked(spark, files, events, sources)
    quarantine = [checked.quarantine] if checked.quarantine is not None else []
    operations = None
    rows = paired(events.where(F.col("row") == EVENT))
    bad_row = F.col("reason").isNotNull()
    breaches = 0
    # Without an event Spark runs nothing, and the observation would be an error.
    if checked.clients:
        counts = Observation("pairing")
        counted = rows.observe(counts, F.count(F.when(bad_row, 1)).alias("bad"))
        days = {_run(source): source.day for source in sources}
        operations = write_operations(spark, counted.where(~bad_row), days, kept)
        breaches = counts.get["bad"]
    if breaches:
        rows.where(bad_row).select("source", "run", "key", "line", "invoke_index", "reason", "sample").write.parquet(
            f"{staged}/breaches"
        )
        quarantine.append(conform(spark.read.parquet(f"{staged}/breaches"), QUARANTINE))
    return Read(
        operations=operations,
        quarantine=union(quarantine) if quarantine else None,
        seen=checked.seen,
        fault_events=events.where(F.col("row") == FAULT),
    )


def _run(source: Input) -> str:
    if source.run is None:
        raise ValueError(f"{source.path} has no run's name")
    return source.run


def _kind(source: Input) -> str:
    return BARE if source.bare else source.format


def _stage(spark: SparkSession, sources: Sequence[Input], folder: str, *, keyed: bool | None) -> DataFrame:
    """Decodes all events once, and writes them."""
    # The settings for whole files need a session of their own. They apply when a query runs, so each query writes at once.
    whole = spark.newSession()
    for name, value in _WHOLE_FILES.items():
        whole.conf.set(name, value)
    written = []
    for kind in (JSONL, BARE, EDN, ETCD_LOG):
        runs = {source.data: _run(source) for source in sources if _kind(source) == kind}
        if runs:
            decode = json_events(runs, keyed=keyed) if kind == JSONL else form_events(runs, kind, keyed=keyed)
            session = spark if kind == JSONL else whole
            lines = session.read.text([literal(path) for path in sorted(runs)], lineSep="\n")
            line = lines.select(F.col("value").cast("binary").alias("line"), F.col("_metadata.file_path").alias("file"))
            path = f"{folder}/{kind}"
            line.mapInArrow(decode, SCHEMA).write.parquet(path)
            written.append(path)
    return spark.read.schema(SCHEMA).parquet(*written)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    quarantine: DataFrame | None
    seen: Sequence[Seen]
    clients: int  # how many events of clients there are


def _checked(spark: SparkSession, files: Files, events: DataFrame, sources: Sequence[Input]) -> _Checked:
    """Checks each history for rows that could not be decoded, and for missing rows."""
    is_event = F.col("row").isin(EVENT, FAULT)
    position = F.when(is_event, F.col("position"))
    buckets = events.groupBy("run", F.expr("bitmap_bucket_number(position)").alias("bucket")).agg(
        F.count(F.when(F.col("row") == HEADER, 1)).alias("headers"),
        F.count(F.when(F.col("row") == BAD, 1)).alias("bad"),
        F.count(F.when(is_event, 1)).alias("events"),
        F.count(F.when(F.col("row") == EVENT, 1)).alias("clients"),
        F.count(F.when((F.col("row") == EVENT) & (F.col("type") == "invoke"), 1)).alias("invokes"),
        F.min(position).alias("least"),
        F.max(position).alias("most"),
        F.bitmap_count(
            F.bitmap_construct_agg(F.bitmap_bit_position(F.when(is_event, F.col("position"))))
        ).alias("distinct"),
        F.max(F.when(F.col("row") == BAD, F.col("sample"))).alias("sample"),
    )  # fmt: skip
    sums = buckets.groupBy("run").agg(
        *(F.sum(name).alias(name) for name in ("headers", "bad", "events", "clients", "invokes", "distinct")),
        F.min("least").alias("least"),
        F.max("most").alias("most"),
        F.max("sample").alias("sample"),
    )
    by_run = {row["run"]: row for row in sums.collect()}
    found: list[tuple[str, str, str]] = []
    torn: list[str] = []
    seen = []
    for source in sources:
        run = _run(source)
        row = by_run.get(run)
        if row is not None and _kind(source) == JSONL and _is_torn(files, source, row):
            torn.append(run)
        found += ((source.data, run, reason) for reason in _missing(_kind(source), row))
        seen.append(Seen(run=run, source=source, operations=int(row["invokes"]) if row is not None else 0))
    bad = sum(int(row["bad"]) for row in by_run.values()) - len(torn)
    parts = []
    if bad:
        undecoded = events.where((F.col("row") == BAD) & ~F.col("run").isin(torn))
        parts.append(conform(undecoded.select("source", "run", "line", "reason", "sample"), QUARANTINE))
    if found:
        parts.append(conform(spark.createDataFrame(found, "source string, run string, reason string"), QUARANTINE))
    clients = sum(int(row["clients"]) for row in by_run.values())
    return _Checked(quarantine=union(parts) if parts else None, seen=seen, clients=clients)


def _missing(kind: str, row: Row | None) -> Iterator[str]:
    """Yields what a history lacks, as sentences."""
    if kind != JSONL:
        if row is None or not (row["events"] or row["bad"]):
            yield _NONE_READ
        return
    if row is None or row["headers"] != 1:
        yield f"expected one header at the beginning, found {row['headers'] if row is not None else 0}"
    if row is not None and not _is_dense(row):
        yield (
            f"expected the indexes from 0 on, each once; found {row['events']} events with {row['distinct']} different "
            f"indexes from {row['least']} to {row['most']}"
        )


def _is_dense(row: Any) -> bool:
    count = row["events"]
    return count == row["distinct"] and (not count or (row["least"] == 0 and row["most"] == count - 1))


def _is_torn(files: Files, source: Input, row: Any) -> bool:
    """Returns whether the only bad line of a history is its torn last line."""
    if row["bad"] != 1 or row["headers"] != 1 or not _is_dense(row):
        return False
    beginning = f'{{"index":{row["events"]},'
    if not (row["sample"].startswith(beginning) or beginning.startswith(row["sample"])):
        return False
    size = files.glob(literal(source.data))[0].size
    return source.data.endswith(".gz") or files.tail(source.data, size, 1) != b"\n"
