"""Reads the operations of runs into memory, if all their rows are well-formed.

The rule: this module reads what Spark would read, row for row. It raises `NotSuited` with the reason if a row is malformed, if
only Spark reads the form of a source, or if the readers of `labrys check` refuse the history. Then Spark reads all sources, and
puts malformed rows into quarantine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from checker.formats.etcd_log import EtcdLogEvents
from checker.formats.jepsen_reader import JepsenEvents
from checker.formats.jsonl import JsonlEvents
from checker.formats.pairing import Pairing
from checker.formats.parquet import COLUMNS, NAMES, values_of
from checker.formats.read import EDN, JSONL, PARQUET
from checker.formats.source import opened
from harness.errors import InputError
from harness.op import NEMESIS, OpType
from results.pipeline.errors import run_twice
from results.pipeline.read.documents import event_row
from results.pipeline.read.local_files import local
from results.pipeline.schema import MOST_NS, OPERATIONS, TYPES
from results.pipeline.single.errors import NotSuited
from results.pipeline.spark.tables import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.op import Op
    from results.pipeline.read.sources import Input

LAYOUT: Final = to_arrow_schema(OPERATIONS)
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


def read_runs(sources: Sequence[Input], known: Mapping[str, str], *, keyed: bool | None) -> list[Run]:
    """Reads all sources.

    Args:
        sources: The sources.
        known: The sources of the other runs in the output folder, by the run's name.
        keyed: Whether values of events are pairs of a key and a value; None: detected for each history.

    Returns:
        The runs, sorted by name; the run of an unreadable source has no operations.

    Raises:
        NotSuited: A row is malformed, or only Spark can read a source.
        BadInput: Two sources hold a run of the same name.
    """
    where = dict(known)
    found: list[Run] = []
    for source in sources:
        for run in _runs(source, keyed=keyed):
            name = run.seen.run
            if name in where:
                raise run_twice(name, where[name], source.path)
            where[name] = source.path
            found.append(run)
    return sorted(found, key=lambda run: run.seen.run)


def _runs(source: Input, *, keyed: bool | None) -> Iterator[Run]:
    if source.trouble is not None:
        yield Run(seen=Seen(run=source.name, source=source, operations=0), operations=LAYOUT.empty_table())
    elif source.format == PARQUET:
        yield from _of_table(source)
    else:
        yield _of_events(source, keyed=keyed)


def _of_table(source: Input) -> Iterator[Run]:
    """Yields the runs of a table."""
    try:
        rows = parquet.read_table(local(source.data))
    except (pa.ArrowException, OSError) as error:
        raise NotSuited(f"{source.path}: {error}") from error
    rows = pa.table([_column(source, rows, each) for each in LAYOUT], schema=LAYOUT)
    _require_operations(source, rows)
    names = pc.unique(rows.column("run")).to_pylist()
    if not names:
        yield Run(seen=Seen(run=source.name, source=source, operations=0), operations=rows)
    for name in names:
        its = rows.filter(pc.equal(rows.column("run"), name)) if len(names) > 1 else rows
        its = its.sort_by([("invoke_index", "ascending")])
        yield Run(seen=Seen(run=name, source=source, operations=its.num_rows), operations=its)


def _column(source: Input, rows: pa.Table, wanted: pa.Field) -> pa.ChunkedArray:
    """Returns a column of a table with its type; nulls for an optional column that is missing.

    Raises:
        NotSuited: The column has another type.
    """
    if wanted.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(rows.num_rows, wanted.type)])
    column = rows.column(wanted.name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    fits = pa.types.is_integer if pa.types.is_integer(wanted.type) else pa.types.is_string
    if not fits(kind) and not pa.types.is_null(kind):
        raise NotSuited(f"{source.path}: expected {wanted.type} in column {wanted.name!r}, found {kind}")
    try:
        return column.cast(wanted.type)
    except pa.ArrowException as error:
        raise NotSuited(f"{source.path}: column {wanted.name!r}: {error}") from error


def _require_operations(source: Input, rows: pa.Table) -> None:
    """Checks rows by the rules of `results.pipeline.spark.tables.trouble`.

    Raises:
        NotSuited: A row breaks a rule.
    """

    def column(name: str) -> pa.ChunkedArray:
        return rows.column(name)

    needed = [each.name for each in COLUMNS if not each.nullable]
    if any(column(name).null_count for name in needed):
        raise NotSuited(f"{source.path}: a row lacks a value")
    ended = column("complete_index").is_valid()
    wrong = [
        pc.invert(pc.is_in(column("type"), pa.array(TYPES))),
        pc.and_not(pc.not_equal(column("type"), str(OpType.INFO)), ended),
        *(pc.or_(pc.less(column(name), 0), pc.greater_equal(column(name), MOST_NS)) for name in _TIMES),
        *(pc.less(column(name), 0) for name in ("process", "invoke_index")),
        pc.less_equal(column("complete_index"), column("invoke_index")),
        pc.and_not(column("order").is_valid(), ended),
        pc.less(column("end_ns"), column("start_ns")),
    ]
    if any(pc.any(each).as_py() for each in wrong) or not all(_is_json(column(name)) for name in ("value", "result")):
        raise NotSuited(f"{source.path}: a row is malformed")


_TIMES: Final = ("start_ns", "end_ns", "scheduled_ns")


def _is_json(texts: pa.ChunkedArray) -> bool:
    others = pc.unique(texts.filter(pc.invert(pc.match_substring_regex(texts, r"^-?\d{1,18}$"))))
    try:
        for text in others.drop_null().to_pylist():
            json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(f"expected JSON, found {word}")


def _of_events(source: Input, *, keyed: bool | None) -> Run:
    """Returns the run of a history of events."""
    assert source.run is not None  # noqa: S101 - a history has the name of its file
    path = str(local(source.data))
    faults: list[dict[str, Any]] = []
    pairing = Pairing(path)
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
            [pa.array(column, each.type) for column, each in zip(columns, LAYOUT, strict=True)], schema=LAYOUT
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
