"""From histories to one table of operations, with all that does not fit in a table of its own.

The law: each row of the input is in the operations, or in quarantine with the reason; none is lost without a trace and none is
repaired. A source that cannot be read at all is a run without operations, and its reason is in quarantine. A run that has
rows in quarantine may lack an operation that its verdict depends on, so whoever judges it has to know (`results.pipeline.job`
does). Tables of operations are read where they are. Events are paired once and written, because all that follows reads them
several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checker.formats.read import PARQUET
from results.pipeline.errors import run_twice
from results.pipeline.read.histories import read_histories
from results.pipeline.read.tables import Seen, fitting, look_over, read_tables, refused, union, write_operations
from results.pipeline.schema import OPERATIONS, QUARANTINE, conform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What was read.

    Attributes:
        operations: Clients' operations, in the columns of `schema.OPERATIONS`.
        quarantine: What does not fit, in the columns of `schema.QUARANTINE`; None if everything fits.
        seen: The runs.
        fault_events: The faults' events of histories; None where none was read as events.
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
) -> Ingested:
    """Reads all sources, of which there is at least one.

    Args:
        spark: The session.
        files: The file systems.
        sources: What to read.
        staged: A folder for what is needed only while the job runs.
        kept: The folder for the table of operations.
        keyed: Whether values of events are pairs of a key and a value; None: as each history shows it.
        copy: Whether operations that are in a table already are written too.
        known: The sources of runs that the output folder has from elsewhere, by the run's name.

    Raises:
        Unreadable: A source cannot be read, which only Spark has found out.
        BadInput: Two sources hold a run of one name.
    """
    broken = [source for source in sources if source.trouble is not None]
    tables = [source for source in sources if source.trouble is None and source.format == PARQUET]
    events = [source for source in sources if source.trouble is None and source.format != PARQUET]
    there: list[DataFrame] = []
    quarantine: list[DataFrame] = []
    seen = [Seen(run=source.name, source=source, operations=0) for source in broken]
    fault_events = None
    if broken:
        told = [(source.data, source.name, source.trouble) for source in broken]
        quarantine.append(conform(spark.createDataFrame(told, "source string, run string, reason string"), QUARANTINE))
    if tables:
        rows = read_tables(spark, tables)
        found, bad = look_over(rows, tables)
        seen += found
        if bad:
            quarantine.append(refused(rows))
            rows = fitting(rows)
        there.append(rows.select(*OPERATIONS.names))
    _hold_apart([*seen, *(Seen(run=source.name, source=source, operations=None) for source in events)], known or {})
    written = copy and bool(there)
    if written:
        days = {each.run: each.source.day for each in seen}
        there = [write_operations(spark, there[0], days, f"{kept}/copied")]
    if events:
        read = read_histories(spark, files, events, staged=staged, kept=f"{kept}/paired", keyed=keyed)
        there += [read.operations] if read.operations is not None else []
        written = written or read.operations is not None
        quarantine += [read.quarantine] if read.quarantine is not None else []
        seen += read.seen
        fault_events = read.fault_events
    return Ingested(
        operations=union(there) if there else spark.createDataFrame([], OPERATIONS),
        quarantine=union(quarantine) if quarantine else None,
        seen=sorted(seen, key=lambda each: each.run),
        fault_events=fault_events,
        written=written,
    )


def _hold_apart(seen: Sequence[Seen], known: Mapping[str, str]) -> None:
    """Holds the input to one source for each run, for otherwise two histories would be judged as one."""
    where = dict(known)
    for each in seen:
        if (other := where.setdefault(each.run, each.source.path)) != each.source.path:
            raise run_twice(each.run, other, each.source.path)
