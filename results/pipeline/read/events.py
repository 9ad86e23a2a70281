"""Reads a history of events as rows: operations, faults, and bad lines with their reasons. Both runners read histories here.

The rule: the decoders of `labrys check` decode, and `harness.pairing` pairs. There the first breach refuses the history. Here
each breach is a row for quarantine, and the rest goes on, so that one bad line does not cost a night's runs. A line of JSON
after a header is independent of its neighbours, so a bad one costs only itself. In all other formats nothing is read after it.

As in `labrys check`, a torn last line of JSON is left out: the run ended while it wrote the line. It is the only bad line of
its file, it is no whole object, and no newline ends it. Whether there is a newline, only the file shows (`is_torn`).
"""

from __future__ import annotations

import contextlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from checker.formats.errors import BadHistory, BrokenSource, NoObject
from checker.formats.jsonl import bare_warning, lifted, own_header
from checker.formats.parquet import NAMES, values_of
from checker.formats.plain import read_plain as read_columns
from checker.formats.readers import JSONL, events_of
from checker.values import decode_value, json_text
from harness.errors import InputError
from harness.event_lines import MAX_LINE_BYTES, decode_event, decode_object
from harness.op import NEMESIS, OpType
from harness.pairing import Event, Pairing
from harness.values import hold_to_bounds
from results.pipeline.read.documents import event_row
from results.pipeline.read.rules import SAMPLE_CHARACTERS
from results.pipeline.read.sources import literal
from results.pipeline.schema import MOST_NS, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from checker.formats.plain import Plain
    from checker.formats.source import Lines, Source
    from harness.op import Op, Operation
    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input

BARE: Final = "bare"  # lines of JSON without a header; the order of the lines is the order of the events

# What a row is: an operation, an event of a fault, a row for quarantine, one unless a newline ends the file, and the last row.
OPERATION: Final = "operation"
FAULT: Final = "fault"
BAD: Final = "bad"
TORN: Final = "torn"
END: Final = "end"
# A fault has its index, time, function and value in the columns of an invoke. Only the last row has `invokes`, their number.
ROWS: Final = pa.schema(
    [
        *OPERATIONS,
        *(pa.field(name, pa.string()) for name in ("row", "source", "reason", "sample")),
        *(pa.field(name, pa.int64()) for name in ("line", "invokes")),
    ]
)
NONE_READ: Final = "expected a history, found no event in it"

_BATCH_ROWS: Final = 1 << 13
_VALUE_CHARACTERS: Final = 80
_MOST_NUMBER: Final = 2**63 - 3
_UNFIT_REASON: Final = "expected integers of 64 bits and text in Unicode"
# The exceptions for a value that does not fit into a column.
_UNFIT: Final = (InputError, pa.ArrowException, ValueError, TypeError, OverflowError)


class Bad(NamedTuple):
    """A bad line, or a trouble of the whole history.

    Attributes:
        line: The line; None for the whole history.
        reason: What was expected, and what came.
        sample: The beginning of the line.
        torn: Whether it may be the torn end of the file.
        key: The key, if it is known.
        position: The index of the event, if it is known.
    """

    line: int | None
    reason: str
    sample: str | None = None
    torn: bool = False
    key: str | None = None
    position: int | None = None


def kind_of(source: Input) -> str:
    """Returns the format of a history, or `BARE`."""
    return BARE if source.bare else source.format


def is_torn(files: Files, source: Input) -> bool:
    """Returns whether the last line of a history, whose row is `TORN`, is torn."""
    size = files.glob(literal(source.data))[0].size
    return source.data.endswith(".gz") or files.tail(source.data, size, 1) != b"\n"


def fault_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the fault event of a row `FAULT`, with `position` and `time_ns`; None if the row is about no fault."""
    try:
        event = event_row(row["f"], decode_value(row["value"]))
    except ValueError:
        return None  # a value that is no JSON has no fault
    return None if event is None else event | {"position": row["invoke_index"], "time_ns": row["start_ns"]}


def read_events(lines: Lines, run: str, kind: str, *, keyed: bool | None) -> Iterator[pa.RecordBatch]:
    """Yields the rows (`ROWS`) of a history; only one batch of them is in memory.

    Args:
        lines: The file, at its beginning.
        run: Its run.
        kind: The result of `kind_of`.
        keyed: As in `labrys check`.

    Raises:
        BrokenSource: The file cannot be read to its end.
    """
    file = lines.name
    pairing = Pairing(partial(BadHistory, file))
    invokes = 0
    others: list[dict[str, Any]] = []
    for count, event in enumerate(
        _numbered(lines, keyed=bool(keyed)) if kind == JSONL else _in_order(lines, kind, keyed=keyed), 1
    ):
        if isinstance(event, Bad):
            others.append(_bad(event))
        elif event.op.process == NEMESIS:
            others.append(fault_row(event))
        else:
            invokes += event.op.type is OpType.INVOKE
            try:
                pairing.add(event)
            except BadHistory as error:
                pairing.pass_over(event)
                others.append(_bad(_breach(event, error)))
        if count % _BATCH_ROWS == 0:
            yield from of_operations(run, file, pairing.taken())
            yield from of_others(run, file, others)
            others = []
    yield from of_operations(run, file, pairing.finish())
    yield from of_others(run, file, [*others, {"row": END, "invokes": invokes}])


def read_plain(source: Source, run: str, kind: str, *, keyed: bool | None) -> list[pa.RecordBatch] | None:
    """Returns the rows that `read_events` yields, but read by the kernel; None if the history is not plain.

    The source is then at its beginning again. Rows may come in another order.

    Args:
        source: The file, at its beginning.
        run: Its run.
        kind: The result of `kind_of`.
        keyed: As in `labrys check`.
    """
    plain = read_columns(JSONL if kind == BARE else kind, source, keyed=keyed)
    rows: list[pa.RecordBatch] = []
    if plain is not None and plain.events and plain.warnings == _expected_warnings(kind, plain):
        with contextlib.suppress(InputError):
            rows = list(_of_plain(plain, source, run, with_faults=kind == JSONL))
    source.rewind()
    # If a row is bad, the reader of events says what is wrong with it, and where it is.
    kinds = {batch.column("row")[0].as_py() for batch in rows}
    return rows if END in kinds and BAD not in kinds else None


def _expected_warnings(kind: str, plain: Plain) -> list[str]:
    return [bare_warning(timed=plain.timed)] if kind == BARE else []


def _of_plain(plain: Plain, source: Source, run: str, *, with_faults: bool) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a plain history; the last row is missing if it has faults, and these are not read."""
    operations, file = plain.operations, source.name
    events = 0
    for begin in range(0, len(operations), _BATCH_ROWS):
        some = operations.at(np.arange(begin, min(begin + _BATCH_ROWS, len(operations))))
        events += sum(1 if operation.complete_index is None else 2 for operation in some)
        yield from of_operations(run, file, some)
    if events == plain.events:
        others: list[dict[str, Any]] = []
    elif with_faults and source.rewind():
        others = list(_faults(source))
    else:
        return
    yield from of_others(run, file, others)
    yield from of_others(run, file, [{"row": END, "invokes": len(operations)}])


def _faults(source: Source) -> Iterator[dict[str, Any]]:
    """Yields the events of faults of a plain history.jsonl, of which the kernel returns only the number.

    Raises:
        InputError: Tables cannot hold one.
    """
    while line := source.readline_bytes(MAX_LINE_BYTES):
        if NEMESIS.encode() in line:
            fields = decode_object(line)
            op = decode_event(fields, fields["index"])
            if op.process == NEMESIS:
                yield fault_row(fitting(Event(source.line, op)))


def _numbered(lines: Lines, *, keyed: bool) -> Iterator[Event | Bad]:
    """Yields the events of lines with indexes, and what is wrong with the others."""
    headers = bad = skipped = 0
    last = -1
    gap = is_cut = False
    pending: Bad | None = None  # the last line, if it is a bad one
    while line := lines.readline_bytes(MAX_LINE_BYTES + 1):
        number = lines.line
        while len(line) > MAX_LINE_BYTES and line[-1:] != b"\n" and (rest := lines.readline_bytes(MAX_LINE_BYTES)):
            line = line[:MAX_LINE_BYTES] + rest[-1:]
        if pending is not None:
            yield pending
            pending = None
        try:
            event = _event_of(line, number, last, keyed=keyed)
        except (ValueError, OverflowError, RecursionError, InputError) as error:
            bad += 1
            skipped += 1
            pending, is_cut = _bad_line(line, number, error), len(line) <= MAX_LINE_BYTES and not _is_object(line)
            continue
        if event is None:
            headers += 1
            continue
        if event.op.index > last + 1 + skipped:
            gap = True
            yield Bad(number, _indexes(event.op.index, last))
        last, skipped = event.op.index, 0
        yield event
    if pending is not None:
        yield pending._replace(torn=is_cut) if bad == 1 and headers == 1 and not gap else pending
    if headers != 1:
        yield Bad(1, f"expected one header at the beginning, found {headers}")


def _bad_line(line: bytes, number: int, error: Exception) -> Bad:
    reason = error.reason if isinstance(error, BadHistory) else str(error)
    return Bad(number, reason, line[:SAMPLE_CHARACTERS].rstrip(b"\n").decode(errors="replace"))


def _is_object(line: bytes) -> bool:
    try:
        decode_object(line)
    except ValueError:
        return False
    return True


def last_line(line: bytes, number: int) -> dict[str, Any]:
    """Returns the row of a last line that is no JSON object, the only bad line of its file."""
    try:
        decode_object(line)
    except ValueError as error:
        return _bad(_bad_line(line, number, error)._replace(torn=True))
    raise AssertionError(f"line {number} is a JSON object")


def _event_of(line: bytes, number: int, last: int, *, keyed: bool) -> Event | None:
    """Returns the event of a line; None for a header.

    Raises:
        ValueError: The line is malformed, or its index is not above the last one.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"expected a line of at most {MAX_LINE_BYTES} bytes")
    fields = decode_object(line)
    if "format" in fields:
        own_header(fields)
        return None
    op = decode_event(fields, fields.get("index", 0))
    hold_to_bounds(op.value)
    if not last < op.index:
        raise ValueError(_indexes(op.index, last))
    event = Event(number, op)
    return fitting(lifted(event) if keyed else event)


def _indexes(index: int, last: int) -> str:
    return f"expected the indexes from 0 on, each once and in their order; found {index} after {last}"


def _in_order(lines: Lines, kind: str, *, keyed: bool | None) -> Iterator[Event | Bad]:
    """Yields the events of a file that is read in order, up to the first bad one."""
    nothing = True
    try:
        with events_of(JSONL if kind == BARE else kind, lines, keyed=keyed) as events:
            for event in events:
                nothing = False
                yield fitting(event)
    except BrokenSource:
        raise
    except InputError as error:
        line = error.line if isinstance(error, BadHistory) else lines.line
        reason = error.reason if isinstance(error, BadHistory) else str(error)
        is_torn_end = isinstance(error, NoObject) and not lines.readline_bytes(MAX_LINE_BYTES)
        yield Bad(line, f"{reason}; nothing after it was read", torn=is_torn_end)
        nothing = False
    if nothing:
        yield Bad(None, NONE_READ)


def fitting(event: Event) -> Event:
    """Returns an event that tables can hold.

    Raises:
        InputError: They cannot.
    """
    op = event.op
    if not op.time_ns < MOST_NS or not (op.scheduled_ns is None or -MOST_NS < op.scheduled_ns < MOST_NS):
        raise InputError(f"expected times below {MOST_NS} ns, found {op.time_ns} and {op.scheduled_ns}")
    if isinstance(op.process, str):
        if op.process != NEMESIS:
            raise InputError(f"expected a :process that is a number, found the name {op.process!r}")
    elif op.process > _MOST_NUMBER:
        raise InputError(_UNFIT_REASON)
    if op.index > _MOST_NUMBER or not all(map(_is_unicode, (op.f, op.key, op.node, op.error, op.phase, op.via))):
        raise InputError(_UNFIT_REASON)
    return event


def _is_unicode(text: str | None) -> bool:
    if text is None or text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _breach(event: Event, error: BadHistory) -> Bad:
    op = event.op
    value = (json_text(op.value) or "null")[:_VALUE_CHARACTERS]
    return Bad(event.line, error.reason, f"{op.type} {op.process} {op.f} {value}", key=op.key, position=op.index)


def _bad(bad: Bad) -> dict[str, Any]:
    return {
        "row": TORN if bad.torn else BAD,
        "key": bad.key,
        "invoke_index": bad.position,
        "line": bad.line,
        "reason": bad.reason,
        "sample": bad.sample,
    }


def fault_row(event: Event) -> dict[str, Any]:
    """Returns the row of an event of a fault."""
    op: Op = event.op
    value = json.dumps(op.value)
    return {"row": FAULT, "invoke_index": op.index, "start_ns": op.time_ns, "f": op.f, "value": value}


def of_others(run: str, file: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yields other rows than operations."""
    listed = [{**dict.fromkeys(ROWS.names), **row, "run": run, "source": file} for row in rows]
    if listed:
        yield pa.RecordBatch.from_pylist(listed, ROWS)


def of_operations(run: str, file: str, operations: Sequence[Operation]) -> Iterator[pa.RecordBatch]:
    """Yields operations as rows; one that no row can hold is a bad row."""
    count = len(operations)
    if not count:
        return
    named = {"run": [run] * count, "row": [OPERATION] * count, "source": [file] * count}
    try:
        columns = {name: values_of(operations, name) for name in NAMES[1:]} | named
        arrays = [pa.array(columns.get(field.name, [None] * count), field.type) for field in ROWS]
        yield pa.RecordBatch.from_arrays(arrays, schema=ROWS)
    except _UNFIT as error:
        if count > 1:
            for op in operations:
                yield from of_operations(run, file, [op])
            return
        [operation] = operations
        reason = ascii(f"{_UNFIT_REASON}: {type(error).__name__}: {error}")[1:-1]
        bad = Bad(None, reason, ascii(operation)[:SAMPLE_CHARACTERS], position=operation.invoke_index)
        yield from of_others(run, file, [_bad(bad)])
