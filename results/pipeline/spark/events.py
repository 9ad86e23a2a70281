"""Events of histories as rows: the part of ingest that runs in Python, on the executors.

The rule: the reader of `labrys check` decodes each line or form, so both commands read the same. A line that it refuses becomes
a row with the reason and a sample. Lines of JSON with indexes are independent, so tasks share such a file. A file of EDN is one
form, and lines without indexes depend on their order. One task reads such a file, as a stream.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from checker.formats.errors import BadHistory
from checker.formats.etcd_log import EtcdLogEvents
from checker.formats.jepsen_reader import JepsenEvents
from checker.formats.jsonl import JsonlEvents
from checker.formats.parquet import hold_to_bounds, json_text
from checker.formats.read import EDN
from harness.errors import InputError
from harness.event_lines import FORMAT, MAX_LINE_BYTES, VERSION, decode_event, decode_object
from harness.op import NEMESIS
from results.pipeline.read.rules import SAMPLE_CHARACTERS
from results.pipeline.schema import MOST_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from harness.op import Op

BARE: Final = "bare"  # lines of JSON without a header; the order of the lines is the order of the events
EVENT: Final = "event"
HEADER: Final = "header"
BAD: Final = "bad"
FAULT: Final = "fault"

BATCH_ROWS: Final = 1 << 13
# The exceptions of pyarrow for a value that does not fit into a column.
_UNFIT: Final = (ValueError, TypeError, OverflowError)
_THREE_SLASHES: Final = re.compile(r"^([a-z0-9+.-]+):///")

# Names and Spark's types; `row` is `EVENT`, `HEADER`, `BAD` or `FAULT`, and `position` is the event's index.
SCHEMA: Final = (
    "run string, source string, row string, position long, line long, time_ns long, type string, process long, f string, "
    "value string, key string, node string, error string, scheduled_ns long, phase string, via string, order long, "
    "has_value boolean, reason string, sample string"
)
_NAMES: Final = tuple(part.split()[0] for part in SCHEMA.split(","))


def plain_uri(path: str) -> str:
    """Returns a path of Spark's `_metadata.file_path` as Hadoop writes it."""
    return _THREE_SLASHES.sub(r"\1:/", unquote(path))


def json_events(
    runs: Mapping[str, str], *, keyed: bool | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that makes rows of lines, in any order.

    Args:
        runs: The run of each file.
        keyed: Whether the values of events without a key are lists of a key and a value.
    """

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            files = [plain_uri(path) for path in batch.column(1).to_pylist()]
            lines = zip(files, batch.column(0).to_pylist(), strict=True)
            yield from _batches(_json_row(runs[file], file, line, keyed=bool(keyed)) for file, line in lines)

    return decode


def _json_row(run: str, file: str, line: bytes, *, keyed: bool) -> tuple[Any, ...]:
    try:
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"expected a line of at most {MAX_LINE_BYTES} bytes")  # noqa: TRY301 - handled below
        fields = decode_object(line)
        if "format" in fields:
            _hold_header(fields)
            return _row(run, file, HEADER)
        op = decode_event(fields, fields.get("index", 0))
        hold_to_bounds(op.value)
        if keyed:
            op = _lifted(op)
        return _event(run, file, op.index + 2, op, has_value=True)
    except (ValueError, OverflowError, RecursionError, InputError) as error:
        return _row(run, file, BAD, reason=str(error), sample=line[:SAMPLE_CHARACTERS].decode(errors="replace"))


def _hold_header(fields: Mapping[str, Any]) -> None:
    if (fields["format"], fields.get("version")) != (FORMAT, VERSION):
        raise ValueError(
            f"expected the header of {FORMAT} version {VERSION}, found {fields['format']!r} {fields.get('version')!r}"
        )


def _lifted(op: Op) -> Op:
    if op.key is not None or op.process == NEMESIS:
        return op
    if isinstance(op.value, list) and len(op.value) == 2 and isinstance(op.value[0], str):
        return op._replace(key=op.value[0], value=op.value[1])
    raise ValueError(
        "expected a value [key, value] with a text key, because this history is keyed (--keyed, or its conventions)"
    )


def form_events(
    runs: Mapping[str, str], kind: str, *, keyed: bool | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that makes rows of whole files; their lines come in order, file after file.

    Args:
        runs: The run of each file.
        kind: `edn`, `etcd-log` or `BARE`.
        keyed: As in `labrys check`.
    """

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines = _Lines(batches)
        while (file := lines.next_file()) is not None:
            yield from _batches(_forms(runs[file], kind, lines, file, keyed=keyed))

    return decode


def _forms(run: str, kind: str, lines: _Lines, file: str, *, keyed: bool | None) -> Iterator[tuple[Any, ...]]:
    stream: Any = lines
    events: JepsenEvents | JsonlEvents | EtcdLogEvents
    if kind == EDN:
        events = JepsenEvents(stream, keyed=keyed)
    elif kind == BARE:
        events = JsonlEvents(stream, keyed=keyed)
    else:
        events = EtcdLogEvents(stream)
    try:
        for event in events:
            if isinstance(event.op.process, str) and event.op.process != NEMESIS:
                name = event.op.process
                raise BadHistory(file, event.line, f"expected a :process that is a number, found the name {name!r}")
            yield _event(run, file, event.line, event.op, has_value=event.has_value)
    except InputError as error:
        line = error.line if isinstance(error, BadHistory) else lines.line
        reason = error.reason if isinstance(error, BadHistory) else str(error)
        yield _row(run, file, BAD, line=line, reason=f"{reason}; nothing after it was read")


class _Lines:
    """Stands for an open file in the readers of forms: the lines of one file after the other, as text."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._rows = (
            row
            for batch in batches
            for row in zip(batch.column(1).to_pylist(), batch.column(0).to_pylist(), strict=True)
        )
        self._next: tuple[str, bytes] | None = next(self._rows, None)
        self._file: str | None = None
        self._rest = ""
        self.name = ""
        self.line = 0

    def next_file(self) -> str | None:
        """Skips the rest of the file, and returns the next file's URI; None after the last."""
        while self._next is not None and self._next[0] == self._file:
            self._next = next(self._rows, None)
        self._rest, self.line = "", 0
        if self._next is None:
            return None
        self._file = self._next[0]
        self.name = plain_uri(self._file)
        return self.name

    def readline_bytes(self, size: int) -> bytes:
        """Returns the next line, or its first `size` bytes; empty at the end of the file."""
        line = self._taken()
        return b"" if line is None else (line + b"\n")[:size]

    def _taken(self) -> bytes | None:
        """Returns the next line without its end; None at the end of the file."""
        if self._next is None or self._next[0] != self._file:
            return None
        line = self._next[1]
        self._next = next(self._rows, None)
        self.line += 1
        return line

    def readline(self, size: int = -1, /) -> str:
        """Returns the next line, or at most `size` characters of it; empty at the end of the file."""
        if not self._rest:
            line = self._taken()
            if line is None:
                return ""
            if b"\0" in line:
                raise BadHistory(self.name, self.line, "expected text, found binary data")
            try:
                self._rest = line.decode("utf-8-sig" if self.line == 1 else "utf-8") + "\n"
            except UnicodeDecodeError as error:
                raise BadHistory(self.name, self.line, f"expected UTF-8 text: {error}") from error
        if size < 0 or len(self._rest) <= size:
            piece, self._rest = self._rest, ""
        else:
            piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def _event(run: str, file: str, line: int, op: Op, *, has_value: bool) -> tuple[Any, ...]:
    if not op.time_ns < MOST_NS or not (op.scheduled_ns is None or -MOST_NS < op.scheduled_ns < MOST_NS):
        raise BadHistory(file, line, f"expected times below {MOST_NS} ns, found {op.time_ns} and {op.scheduled_ns}")
    is_fault = op.process == NEMESIS
    return (
        run,
        file,
        FAULT if is_fault else EVENT,
        op.index,
        line,
        op.time_ns,
        str(op.type),
        None if is_fault else op.process,
        op.f,
        json.dumps(op.value) if is_fault else json_text(op.value),
        op.key,
        op.node,
        op.error,
        op.scheduled_ns,
        op.phase,
        op.via,
        op.order,
        has_value,
        None,
        None,
    )


def _row(
    run: str, file: str, kind: str, *, line: int | None = None, reason: str | None = None, sample: str | None = None
) -> tuple[Any, ...]:
    fields = {"run": run, "source": file, "row": kind, "line": line, "reason": reason, "sample": sample}
    return tuple(fields.get(name) for name in _NAMES)


def _unfit(row: tuple[Any, ...], error: Exception) -> tuple[Any, ...]:
    """Returns the bad row for an event that no table can hold: a number is too large, or a text is no Unicode."""
    fields = dict(zip(_NAMES, row, strict=True))
    sample = ascii(tuple(value for value in row[3:] if value is not None))[:SAMPLE_CHARACTERS]
    reason = f"expected integers of 64 bits and text in Unicode: {type(error).__name__}: {error}"
    return _row(fields["run"], fields["source"], BAD, reason=ascii(reason)[1:-1], sample=sample)


def _batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Yields rows in bounded batches."""
    import pyarrow as pa  # noqa: PLC0415 - only executors need it

    kinds = {"string": pa.string(), "long": pa.int64(), "boolean": pa.bool_()}
    layout = pa.schema([pa.field(*_field(part, kinds)) for part in SCHEMA.split(",")])
    pending: list[tuple[Any, ...]] = []

    def made(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), layout, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=layout)

    def fitted(row: tuple[Any, ...]) -> tuple[Any, ...]:
        try:
            made([row])
        except _UNFIT as error:
            return _unfit(row, error)
        return row

    def flushed() -> pa.RecordBatch:
        try:
            return made(pending)
        except _UNFIT:
            return made([fitted(row) for row in pending])
        finally:
            pending.clear()

    for row in rows:
        pending.append(row)
        if len(pending) == BATCH_ROWS:
            yield flushed()
    if pending:
        yield flushed()


def _field(part: str, kinds: Mapping[str, Any]) -> tuple[str, Any]:
    name, kind = part.split()
    return name, kinds[kind]
