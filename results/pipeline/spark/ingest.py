"""From histories to one table of operations, and a table of the malformed rows.

The rule: each row of the input is in the operations, or in quarantine with the reason. No row is lost, and none is repaired. An
unreadable source is a run without operations, and its reason is in quarantine. A run with rows in quarantine may lack an
operation that its verdict depends on; `results.pipeline.spark.job` takes care of that. Tables of operations are read in
place. Events are paired once and written, because later steps read them several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checker.formats.readers import PARQUET
from results.pipeline.errors import run_twice
from results.pipeline.read.sources import Seen
from results.pipeline.schema import OPERATIONS, QUARANTINE
from results.pipeline.spark.histories import read_histories
from results.pipeline.spark.tables import fitting, look_over, read_tables, refused, union, write_operations
from results.pipeline.spark.types import conform, struct_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedFrames:
    """The input as tables.

    Attributes:
        operations: Clients' operations, in the columns of `schema.OPERATIONS`.
        quarantine: The malformed rows, in the columns of `schema.QUARANTINE`; None if there are none.
        seen: The runs.
        fault_events: The faults' events of histories; None if no source consists of events.
        written: Whether operations were written as a table.
    """

    operations: DataFrame
    quarantine: DataFrame | None
    seen: Sequence[Seen]
    fault_events: DataFrame | None
    written: bool


def ingest(
    spark: SparkSession,
    files: Files,
    sources: Sequence[Input],
    *,
    staged: str,
    kept: str,
    keyed: bool | None = None,
    copy: bool = False,
    known: Mapping[str, str] | None = None,
) -> IngestedFrames:
    """Reads all sources, of which there is at least one.

    Args:
        spark: The session.
        files: The file systems.
        sources: The sources.
        staged: A folder for temporary files of the job.
        kept: The folder for the table of operations.
        keyed: Whether values of events are pairs of a key and a value; None: detected for each history.
        copy: Whether to write also operations that are in a table already.
        known: The sources of the other runs in the output folder, by the run's name.

    Raises:
        Unreadable: Spark cannot read a source.
        BadInput: Two sources hold a run of the same name.
    """
    broken = [source for source in sources if source.trouble is not None]
    tables = [source for source in sources if source.trouble is None and source.format == PARQUET]
    events = [source for source in sources if source.trouble is None and source.format != PARQUET]
    frames: list[DataFrame] = []
    quarantine: list[DataFrame] = []
    seen = [Seen(run=source.name, source=source, operations=0) for source in broken]
    fault_events = None
    if broken:
        rows = [(source.data, source.name, source.trouble) for source in broken]
        quarantine.append(conform(spark.createDataFrame(rows, "source string, run string, reason string"), QUARANTINE))
    if tables:
        read_rows = read_tables(spark, tables)
        histories, bad = look_over(read_rows, tables)
        seen += histories
        if bad:
            quarantine.append(refused(read_rows))
            read_rows = fitting(read_rows)
        frames.append(read_rows.select(*OPERATIONS.names))
    _require_one_source(
        [*seen, *(Seen(run=source.name, source=source, operations=None) for source in events)], known or {}
    )
    written = copy and bool(frames)
    if written:
        days = {history.run: history.source.day for history in seen}
        frames = [write_operations(spark, frames[0], days, f"{kept}/copied")]
    if events:
        read = read_histories(spark, files, events, staged=staged, kept=f"{kept}/paired", keyed=keyed)
        frames += [read.operations] if read.operations is not None else []
        written = written or read.operations is not None
        quarantine += [read.quarantine] if read.quarantine is not None else []
        seen += read.seen
        fault_events = read.fault_events
    return IngestedFrames(
        operations=union(frames) if frames else spark.createDataFrame([], struct_of(OPERATIONS)),
        quarantine=union(quarantine) if quarantine else None,
        seen=sorted(seen, key=lambda history: history.run),
        fault_events=fault_events,
        written=written,
    )


def _require_one_source(seen: Sequence[Seen], known: Mapping[str, str]) -> None:
    """Raises an error if two sources hold a run of the same name: they would be judged as one history."""
    where = dict(known)
    for history in seen:
        if (other := where.setdefault(history.run, history.source.path)) != history.source.path:
            raise run_twice(history.run, other, history.source.path)
