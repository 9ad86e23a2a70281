"""Reads the operations of runs into memory.

The rule: this module reads what Spark would read, row for row. Malformed rows and events go to quarantine with the reason.
`NotSuited` has the reason if a file breaks off.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from checker.formats.errors import BrokenSource
from checker.formats.readers import PARQUET
from checker.formats.source import opened
from results.pipeline.errors import NotSuited, Unreadable, run_twice
from results.pipeline.measure.spans import in_order
from results.pipeline.read.documents import parsed
from results.pipeline.read.events import (
    BAD,
    FAULT,
    OPERATION,
    ROWS,
    TORN,
    fault_of,
    is_torn,
    kind_of,
    read_events,
    read_plain,
)
from results.pipeline.read.local_files import LocalFiles, local
from results.pipeline.read.rules import refused, troubles
from results.pipeline.read.sources import RESULTS, TEST, Seen
from results.pipeline.schema import OPERATIONS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from results.pipeline.read.sources import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run with its operations.

    Attributes:
        seen: The run.
        operations: The columns of `schema.OPERATIONS`, in the order of the invokes.
        from_events: Whether they were paired from events; else they are in a table already.
        fault_events: The faults in its events: for each `fault`, `kind`, `begins`, `targets`, `position`, `time_ns`.
        documents: The rows of `documents.parsed` for its `test.json` and its `results.json`.
    """

    seen: Seen
    operations: pa.Table
    from_events: bool = False
    fault_events: Sequence[Mapping[str, Any]] = field(default_factory=list)
    documents: Sequence[Mapping[str, Any]] = field(default_factory=list)


def read_source(source: Input, *, keyed: bool | None) -> tuple[list[Run], pa.Table]:
    """Reads a source.

    Args:
        source: The source.
        keyed: Whether values of events are pairs of a key and a value; None: detected for each history.

    Returns:
        Its runs; the run of an unreadable source has no operations. And its malformed rows, in the columns of
        `schema.QUARANTINE`.

    Raises:
        NotSuited: A history cannot be read to its end.
        Unreadable: A table cannot be read.
    """
    quarantine = [QUARANTINE.empty_table()]
    runs = [replace(run, documents=list(_documents(run))) for run in _runs(source, quarantine, keyed=keyed)]
    return runs, pa.concat_tables(quarantine)


def joined(read: Iterable[tuple[list[Run], pa.Table]], known: Mapping[str, str]) -> tuple[list[Run], pa.Table]:
    """Joins what was read of all sources.

    Args:
        read: The results of `read_source`.
        known: The sources of the other runs in the output folder, by the run's name.

    Returns:
        All runs, sorted by name, and all malformed rows.

    Raises:
        BadInput: Two sources hold a run of the same name.
    """
    where = dict(known)
    joined_runs: list[Run] = []
    quarantine = [QUARANTINE.empty_table()]
    for runs, malformed in read:
        quarantine.append(malformed)
        for run in runs:
            name, path = run.seen.run, run.seen.source.path
            if name in where:
                raise run_twice(name, where[name], path)
            where[name] = path
            joined_runs.append(run)
    return sorted(joined_runs, key=lambda run: run.seen.run), pa.concat_tables(quarantine)


def _documents(run: Run) -> Iterator[dict[str, Any]]:
    """Yields the rows of the two files of a run."""
    source = run.seen.source
    for name, exists in ((TEST, source.has_test), (RESULTS, source.has_results)):
        if exists:
            file = f"{source.path}/{name}"
            yield parsed(run.seen.run, file, local(file).read_bytes())


def _runs(source: Input, quarantine: list[pa.Table], *, keyed: bool | None) -> Iterator[Run]:
    if source.trouble is not None:
        yield Run(seen=Seen(run=source.name, source=source, operations=0), operations=OPERATIONS.empty_table())
    elif source.format == PARQUET:
        yield from _of_table(source, quarantine)
    else:
        yield _of_events(source, quarantine, keyed=keyed)


def _of_table(source: Input, quarantine: list[pa.Table]) -> Iterator[Run]:
    """Yields the runs of a table."""
    try:
        rows = parquet.read_table(local(source.data))
        rows = pa.table([_column(rows, column) for column in OPERATIONS], schema=OPERATIONS)
    except (pa.ArrowException, OSError, TypeError) as error:
        raise Unreadable(source.data, f"cannot be read: {error}") from error
    counts = {row["values"]: row["counts"] for row in pc.value_counts(rows.column("run")).to_pylist()}
    counts.pop(None, None)
    reasons = troubles(rows)
    if reasons is not None:
        quarantine.append(refused(rows, reasons, pa.chunked_array([pa.repeat(source.data, rows.num_rows)])))
        rows = rows.filter(pc.is_null(reasons))
    if not counts:
        yield Run(seen=Seen(run=source.name, source=source, operations=0), operations=rows)
    for name, count in counts.items():
        its = rows.filter(pc.equal(rows.column("run"), name)) if len(counts) > 1 else rows
        yield Run(seen=Seen(run=name, source=source, operations=count), operations=in_order(its))


def _column(rows: pa.Table, wanted: pa.Field) -> pa.ChunkedArray:
    """Returns a column of a table with its type; nulls for an optional column that is missing.

    Raises:
        TypeError: The column has another type.
    """
    if wanted.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(rows.num_rows, wanted.type)])
    column = rows.column(wanted.name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    fits = pa.types.is_integer if pa.types.is_integer(wanted.type) else pa.types.is_string
    if not fits(kind) and not pa.types.is_null(kind):
        raise TypeError(f"column: [{wanted.name}]: expected {wanted.type}, found {kind}")
    return column.cast(wanted.type)


def _of_events(source: Input, quarantine: list[pa.Table], *, keyed: bool | None) -> Run:
    """Returns the run of a history of events."""
    assert source.run is not None  # noqa: S101 - a history has the name of its file
    try:
        with opened(str(local(source.data))) as lines:
            lines.name = source.data
            batches = read_plain(lines, source.run, kind_of(source), keyed=keyed)
            if batches is None:
                batches = list(read_events(lines, source.run, kind_of(source), keyed=keyed))
    except (BrokenSource, OSError) as error:
        raise NotSuited(str(error)) from error
    rows = pa.Table.from_batches(batches, ROWS)

    def of(kind: str) -> pa.Table:
        return rows.filter(pc.equal(rows.column("row"), kind))

    bad = [of(BAD)]
    if (torn := of(TORN)).num_rows and not is_torn(LocalFiles(), source):
        bad.append(torn)
    quarantine += [table.select(QUARANTINE.names).cast(QUARANTINE) for table in bad if table.num_rows]
    return Run(
        seen=Seen(run=source.run, source=source, operations=pc.sum(rows.column("invokes")).as_py()),
        operations=of(OPERATION).select(OPERATIONS.names).sort_by("invoke_index"),
        from_events=True,
        fault_events=[event for row in of(FAULT).to_pylist() if (event := fault_of(row)) is not None],
    )
