"""The tables of runs, of faults and of sightings: `results.pipeline.read.documents`, on the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.read.documents import known_of, parsed, recorded
from results.pipeline.read.events import fault_of
from results.pipeline.read.sources import RESULTS, TEST, literal
from results.pipeline.spark.envelopes import by_run, mapped, posted
from results.pipeline.spark.events import plain_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from checker.deciders import Wanted
    from results.pipeline.read.documents import Known
    from results.pipeline.read.sources import Seen
    from results.pipeline.spark.envelopes import Contents

_DOCUMENT, _EVENT, _SEEN = "document", "event", "seen"
# What the driver needs of a document.
_OF_DRIVER = "run string, source string, workload string, options string, problem string"


def read_records(
    spark: SparkSession, seen: Sequence[Seen], fault_events: DataFrame | None, *, wanted: Wanted, staged: str
) -> tuple[DataFrame, Known, list[dict[str, Any]]]:
    """Reads the records of runs.

    Args:
        spark: The session.
        seen: The runs.
        fault_events: Events of faults, for runs without a record of them.
        wanted: The user's model or workload.
        staged: A folder for temporary files of the job.

    Returns:
        The rows of the tables of runs, faults and sightings, as envelopes; the model or judge of each run; and `source`, `run`
        and `reason` of damaged files, which do not affect verdicts.
    """
    files = {
        f"{history.source.path}/{name}": history.run
        for history in seen
        for name, exists in ((TEST, history.source.has_test), (RESULTS, history.source.has_results))
        if exists
    }
    contents = posted(spark, ((history.run, _SEEN, None) for history in seen))
    rows: list[dict[str, Any]] = []
    if files:
        text = spark.read.text([literal(path) for path in sorted(files)], wholetext=True)
        content = text.select(
            F.col("value").cast("binary").alias("content"), F.col("_metadata.file_path").alias("file")
        )

        def parse(batch: pa.RecordBatch) -> Iterator[tuple[str, str, Any]]:
            for its, uri in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                file = plain_uri(uri)
                yield files[file], _DOCUMENT, parsed(files[file], file, its)

        mapped(content, parse).write.parquet(f"{staged}/records")
        documents = spark.read.parquet(f"{staged}/records")
        rows = [
            row["it"].asDict() for row in documents.select(F.from_json("content", _OF_DRIVER).alias("it")).collect()
        ]
        contents = contents.unionByName(documents)
    if fault_events is not None:
        contents = contents.unionByName(
            mapped(fault_events.select("run", "invoke_index", "start_ns", "f", "value"), _events)
        )
    known = known_of(seen, rows, wanted)
    by_name = {history.run: history for history in seen}

    def tables(run: str, its: Contents) -> Mapping[str, Sequence[Any]]:
        return recorded(by_name[run], its.get(_DOCUMENT, ()), its.get(_EVENT, ()), names[run])

    names = {run: known.name(run) for run in by_name}
    damaged = [
        {"source": row["source"], "run": row["run"], "reason": row["problem"]}
        for row in rows
        if row["problem"] is not None
    ]
    return by_run(contents, tables), known, damaged


def _events(batch: pa.RecordBatch) -> Iterator[tuple[str, str, Any]]:
    """Yields the faults in events of the nemesis; events without a fault are left out."""
    for row in batch.to_pylist():
        event = fault_of(row)
        if event is not None:
            yield row["run"], _EVENT, event
