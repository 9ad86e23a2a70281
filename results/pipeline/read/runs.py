"""Reads the operations of runs into memory.

The rule: this module reads what Spark would read, row for row. Malformed rows of a table go to quarantine with the reason. A
history of events must be whole: `NotSuited` has the reason if the readers of `labrys check` refuse it, or if only Spark reads
the form of a source. Then Spark reads all sources, and puts malformed events into quarantine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from checker.formats.errors import BadHistory
from checker.formats.etcd_log import EtcdLogEvents
from checker.formats.jepsen_reader import JepsenEvents
from checker.formats.jsonl import JsonlEvents
from checker.formats.parquet import NAMES, values_of
from checker.formats.read import EDN, JSONL, PARQUET
from checker.formats.source import opened
from harness.errors import InputError
from harness.op import NEMESIS
from harness.pairing import Pairing
from results.pipeline.errors import NotSuited, Unreadable, run_twice
from results.pipeline.measure.spans import in_order
from results.pipeline.read.documents import event_row
from results.pipeline.read.local_files import local
from results.pipeline.read.rules import refused, troubles
from results.pipeline.read.sources import Seen
from results.pipeline.schema import MOST_NS, OPERATIONS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.op import Op
    from results.pipeline.read.sources import Input

_UNFIT: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run with its operations.

    Attributes:
        seen: The run.
        operations: The columns of `schema.OPERATIONS`, in the order of the invokes.
        from_events: Whether they were paired from events; else they are in a table already.
        fault_events: The faults in its events: for each `fault`, `kind`, `begins`, `targets`, `position`, `time_ns`.
    """

    seen: Seen
    operations: pa.Table
    from_events: bool = False
    fault_events: Sequence[Mapping[str, Any]] = field(default_factory=list)


def read_runs(sources: Sequence[Input], known: Mapping[str, str], *, keyed: bool | None) -> tuple[list[Run], pa.Table]:
    """Reads all sources.

    Args:
        sources: The sources.
        known: The sources of the other runs in the output folder, by the run's name.
        keyed: Whether values of events are pairs of a key and a value; None: detected for each history.

    Returns:
        The runs, sorted by name; the run of an unreadable source has no operations. And the malformed rows, in the columns of
        `schema.QUARANTINE`.

    Raises:
        NotSuited: An event is malformed, or only Spark can read a source.
        Unreadable: A table cannot be read.
        BadInput: Two sources hold a run of the same name.
    """
    where = dict(known)
    found: list[Run] = []
    quarantine = [QUARANTINE.empty_table()]
    for source in sources:
        for run in _runs(source, quarantine, keyed=keyed):
            name = run.seen.run
            if name in where:
                raise run_twice(name, where[name], source.path)
            where[name] = source.path
            found.append(run)
    return sorted(found, key=lambda run: run.seen.run), pa.concat_tables(quarantine)


def _runs(source: Input, quarantine: list[pa.Table], *, keyed: bool | None) -> Iterator[Run]:
    if source.trouble is not None:
        yield Run(seen=Seen(run=source.name, source=source, operations=0), operations=OPERATIONS.empty_table())
    elif source.format == PARQUET:
        yield from _of_table(source, quarantine)
    else:
        yield _of_events(source, keyed=keyed)


def _of_table(source: Input, quarantine: list[pa.Table]) -> Iterator[Run]:
    """Yields the runs of a table."""
    try:
        rows = parquet.read_table(local(source.data))
        rows = pa.table([_column(rows, each) for each in OPERATIONS], schema=OPERATIONS)
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


def _of_events(source: Input, *, keyed: bool | None) -> Run:
    """Returns the run of a history of events."""
    assert source.run is not None  # noqa: S101 - a history has the name of its file
    path = str(local(source.data))
    faults: list[dict[str, Any]] = []
    pairing = Pairing(partial(BadHistory, path))
    try:
        with opened(path) as opened_source:
            events: JsonlEvents | JepsenEvents | EtcdLogEvents
            if source.format == JSONL:
                events = JsonlEvents(opened_source, keyed=keyed)
            elif source.format == EDN:
                events = JepsenEvents(opened_source, keyed=keyed)
            else:
                events = EtcdLogEvents(opened_source)
            for event in events:
                _require_fits(path, event.op)
                pairing.add(event)
                if event.op.process == NEMESIS and (fault := event_row(event.op.f, event.op.value)) is not None:
                    faults.append({**fault, "position": event.op.index, "time_ns": event.op.time_ns})
        operations = pairing.finish()
        if not pairing.events and not events.may_be_empty:
            raise NotSuited(f"{path}: no event in it")
        columns = [[source.run] * len(operations), *(values_of(operations, name) for name in NAMES[1:])]
        table = pa.table(
            [pa.array(column, each.type) for column, each in zip(columns, OPERATIONS, strict=True)], schema=OPERATIONS
        )
    except (InputError, OSError, *_UNFIT) as error:
        raise NotSuited(str(error)) from error
    seen = Seen(run=source.run, source=source, operations=table.num_rows)
    return Run(seen=seen, operations=table, from_events=True, fault_events=faults)


def _require_fits(path: str, op: Op) -> None:
    """Checks that tables of operations can hold an event.

    Raises:
        NotSuited: They cannot.
    """
    scheduled = 0 if op.scheduled_ns is None else op.scheduled_ns
    if not (op.time_ns < MOST_NS and -MOST_NS < scheduled < MOST_NS):
        raise NotSuited(f"{path}: event {op.index} has a time of {MOST_NS} ns or more")
    if isinstance(op.process, str) and op.process != NEMESIS:
        raise NotSuited(f"{path}: event {op.index} has a process that is not a number")
