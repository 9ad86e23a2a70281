"""From histories to one table of operations, with all that does not fit in a table of its own.

The law: each row of the input is in the operations, or in quarantine with the reason; none is lost without a trace and none is
repaired. A run that has rows in quarantine may lack an operation that its verdict depends on, so whoever judges it has to know
(`results.pipeline.job` does). Tables of operations are read where they are. Events are paired once and written, because all
that follows reads them several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checker.formats.read import PARQUET
from results.pipeline.errors import BadInput
from results.pipeline.histories import read_histories
from results.pipeline.schema import OPERATIONS
from results.pipeline.tables import fitting, look_over, read_tables, refused, union, write_operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.files import Files
    from results.pipeline.sources import Source
    from results.pipeline.tables import Seen


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
    sources: Sequence[Source],
    *,
    staged: str,
    kept: str,
    keyed: bool | None = None,
    copy: bool = False,
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

    Raises:
        BadInput: A source cannot be read, or two hold a run of one name.
    """
    tables = [source for source in sources if source.format == PARQUET]
    events = [source for source in sources if source.format != PARQUET]
    there: list[DataFrame] = []
    quarantine: list[DataFrame] = []
    seen: list[Seen] = []
    fault_events = None
    if tables:
        rows = read_tables(spark, tables)
        seen, bad = look_over(rows, tables)
        if bad:
            quarantine.append(refused(rows))
            rows = fitting(rows)
        there.append(rows.select(*OPERATIONS.names))
    if copy and there:
        days = {each.run: each.source.day for each in seen}
        there = [write_operations(spark, there[0], days, f"{kept}/copied")]
    if events:
        read = read_histories(spark, files, events, staged=staged, kept=f"{kept}/paired", keyed=keyed)
        there.append(read.operations)
        quarantine += [read.quarantine] if read.quarantine is not None else []
        seen += read.seen
        fault_events = read.fault_events
    _hold_apart(seen)
    return Ingested(
        operations=union(there),
        quarantine=union(quarantine) if quarantine else None,
        seen=sorted(seen, key=lambda each: each.run),
        fault_events=fault_events,
        written=bool(events) or copy,
    )


def _hold_apart(seen: Sequence[Seen]) -> None:
    """Holds the input to one source for each run, for otherwise two histories would be judged as one."""
    where: dict[str, str] = {}
    for each in seen:
        if (other := where.setdefault(each.run, each.source.path)) != each.source.path:
            raise BadInput(f"the run {each.run} is in {other} and in {each.source.path}; give only one of them")
