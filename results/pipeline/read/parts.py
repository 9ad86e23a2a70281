"""Reads a history in JSON Lines as parts: each part has the lines of a range of bytes, and any task can read it.

The rule: the rows are those of `results.pipeline.read.events`, or there are none, and that module reads the whole file. So this
one needs no error messages. The kernel's reader of plain histories (`checker/kernel/src/events`) reads the lines of a part and
pairs its events. What crosses an end of a part is joined afterwards: the operations that are open at the end of a part, and the
completions of operations that an earlier part invoked. `harness.pairing` pairs these. The faults are read with them.

A process may work in several parts. So each part tells the first event and the last state of its processes, and `ends_of` holds
these against the rules of `harness.pairing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker._kernel import Events
from checker.formats.errors import BadHistory
from checker.formats.jsonl import lifted, own_header
from checker.values import decode_value, json_text
from harness.errors import InputError
from harness.event_lines import decode_event, decode_object
from harness.op import NEMESIS, Op, OpType
from harness.pairing import Event, Pairing, reason_in
from results.pipeline.read.events import (
    END,
    OPERATION,
    ROWS,
    fault_row,
    fitting,
    last_line,
    of_operations,
    of_others,
)  # fmt: skip
from results.pipeline.read.texts import odd_texts
from results.pipeline.schema import MOST_NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker._kernel import EventColumns
    from checker.formats.columns import Int64s

# What a row of a part is, besides `OPERATION`: an operation without a completion in its part, a line that is read in the end,
# the last row, and the only row of a part that is not plain.
OPEN: Final = "open"
LINE: Final = "line"
PART: Final = "part"
UNPLAIN: Final = "unplain"
# `begin` is the first byte of a part. Only the last row has the others: the number of lines, the first index, the number of
# events, and columns of its processes in bytes: numbers, times of the first event and of the last completion, and flags.
_OF_PROCESSES: Final = ("process_of", "first_ns", "free_ns", "flags")
PART_ROWS: Final = pa.schema(
    [
        *ROWS,
        *(pa.field(name, pa.int64()) for name in ("begin", "lines", "first", "events")),
        *(pa.field(name, pa.binary()) for name in _OF_PROCESSES),
    ]
)
MOST_CROSSING: Final = 1_000_000  # operations of one history that the driver joins

_BATCH_ROWS: Final = 1 << 14
_JSONL: Final = "jsonl"
_TYPES: Final = pa.array(["", *(str(kind) for kind in (OpType.OK, OpType.FAIL, OpType.INFO))])
_IS_BEGUN, _IS_OPEN, _HAS_ENDED = 1, 2, 4
_NOTHING, _INTEGER, _PAIR, _OTHER = range(4)


def read_part(batches: Iterator[pa.RecordBatch], run: str, file: str, *, keyed: bool) -> Iterator[pa.RecordBatch]:
    """Yields the rows (`PART_ROWS`) of a part.

    Args:
        batches: Its lines without their ends, and the first byte of the part.
        run: The run.
        file: The name of the file.
        keyed: Whether the values of events are pairs of a key and a value.
    """
    begin = -1
    events: Events | None = None
    rest = b""
    try:
        for batch in batches:
            lines = batch.column(0)
            if not len(lines):
                continue
            if events is None:
                begin = batch.column(1)[0].as_py()
                if begin == 0:
                    own_header(decode_object(lines[0].as_py()))
                    lines = lines.slice(1)
                events = Events(_JSONL, keyed=keyed, line=2 if begin == 0 else 1, part=True)
            text = rest + _joined(lines)
            # The last line of the file may be torn, so it waits.
            cut = text.rfind(b"\n", 0, -1) + 1
            rest = text[cut:]
            if cut and events.feed(text[:cut]) != cut:
                yield _row(UNPLAIN, begin, run)
                return
        if events is None:
            return
        yield from _finished(events, rest, begin, (run, file))
    except (ValueError, InputError, pa.ArrowException, OverflowError):
        yield _row(UNPLAIN, begin, run)


def _joined(lines: pa.Array) -> bytes:
    """Returns lines as one text."""
    text = pc.binary_join_element_wise(lines, b"\n", b"")
    _, ends, content = text.buffers()
    if content is None:
        return b""
    bounds = np.frombuffer(ends, np.int32)
    return memoryview(content)[bounds[text.offset] : bounds[text.offset + len(text)]].tobytes()


def _finished(events: Events, rest: bytes, begin: int, names: tuple[str, str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a part, whose last line was not read yet."""
    torn: list[tuple[int, bytes]] = []
    if rest:
        try:
            decode_object(rest)
        except ValueError:
            torn.append((events.line or 0, rest))
        else:
            if events.feed(rest) != len(rest):
                yield _row(UNPLAIN, begin, names[0])
                return
    count = (events.line or 0) - 1 + len(torn)
    columns = events.finish()
    rows = None if columns is None else _operations(columns, *names)
    part = None if columns is None else columns.part
    if columns is None or part is None or rows is None:
        yield _row(UNPLAIN, begin, names[0])
        return
    count_rows = len(columns.type)
    is_open = np.frombuffer(columns.end, np.int64) < 0
    for what, some in ((OPERATION, np.flatnonzero(~is_open)), (OPEN, np.flatnonzero(is_open))):
        its = rows if len(some) == count_rows else rows.take(pa.array(some))
        for at in range(0, len(some), _BATCH_ROWS):
            yield _as_part(its.slice(at, _BATCH_ROWS), what, begin)
    for number, line in [*part.lines, *torn]:
        yield _row(LINE, begin, names[0], sample=line.decode(), line=number)
    about = {"lines": count, "first": part.first, "events": columns.events - part.first, "invokes": count_rows}
    yield _row(PART, begin, names[0], **about, **dict(zip(_OF_PROCESSES, part.workers, strict=True)))


def _as_part(rows: pa.RecordBatch, what: str, begin: int) -> pa.RecordBatch:
    known = {"row": pa.array([what] * len(rows)), "begin": pa.array([begin] * len(rows), pa.int64())}
    arrays = [
        known.get(field.name) if field.name in known
        else rows.column(field.name) if field.name in rows.schema.names
        else pa.nulls(len(rows), field.type)
        for field in PART_ROWS
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=PART_ROWS)


def _row(what: str, begin: int, run: str, **columns: Any) -> pa.RecordBatch:
    row = {**dict.fromkeys(PART_ROWS.names), "row": what, "begin": begin, "run": run, **columns}
    return pa.RecordBatch.from_pylist([row], schema=PART_ROWS)


def _operations(columns: EventColumns, run: str, file: str) -> pa.RecordBatch | None:
    """Returns the kernel's operations as rows (`ROWS`); None if a time is too great for them."""
    count = len(columns.type)
    start_ns, end_ns, scheduled_ns = (
        _int64s(column) for column in (columns.start_ns, columns.end_ns, columns.scheduled_ns)
    )
    if any((column >= MOST_NS).any() for column in (start_ns, end_ns, scheduled_ns)):
        return None
    texts = _canonical(columns.values)
    names = _names(columns.names)
    value = _values(columns.value, texts)
    order = np.zeros(count, np.int64)
    has_order = np.zeros(count, bool)
    for row, number in columns.order:
        order[row], has_order[row] = number, True

    def optional(numbers: Int64s) -> pa.Array:
        return pa.array(numbers, mask=numbers < 0)

    def named(column: bytes, some: pa.Array) -> pa.Array:
        places = np.frombuffer(column, np.int32)
        return some.take(pa.array(places, mask=places < 0))

    known = {
        "run": pa.array([run] * count, pa.string()), "key": named(columns.key, _names(columns.keys)),
        "process": pa.array(_int64s(columns.process)), "f": named(columns.function, _names(columns.functions)),
        "type": _TYPES.take(pa.array(np.frombuffer(columns.type, np.int8))), "start_ns": pa.array(start_ns),
        "end_ns": optional(end_ns), "value": value, "result": _values(columns.result, texts),
        "node": named(columns.node, names), "error": _with_reasons(named(columns.error, names), columns, value, texts),
        "scheduled_ns": optional(scheduled_ns),
        "phase": named(columns.phase, names), "via": named(columns.via, names),
        "invoke_index": pa.array(_int64s(columns.start)), "complete_index": optional(_int64s(columns.end)),
        "order": pa.array(order, mask=~has_order), "source": pa.array([file] * count, pa.string()),
    }  # fmt: skip
    arrays = [known.get(field.name, pa.nulls(count, field.type)) for field in ROWS]
    return pa.RecordBatch.from_arrays(arrays, schema=ROWS)


def _int64s(column: bytes) -> Int64s:
    return np.frombuffer(column, np.int64)


def _names(texts: Sequence[str]) -> pa.Array:
    names = [decode_value(text) for text in texts]
    if not all(type(name) is str for name in names):
        raise ValueError("expected texts as names")
    return pa.array(names, pa.string())


def _with_reasons(errors: pa.Array, columns: EventColumns, value: pa.Array, texts: pa.Array) -> pa.Array:
    """Returns the errors of operations, with the reasons that stand in place of their values; see `harness.pairing`."""
    reasons = {
        change.row: reason_in(decode_value(texts[change.first].as_py()))
        for change in columns.changed
        if change.kind == _OTHER
        and not errors[change.row].is_valid
        and texts[change.first].as_py() != value[change.row].as_py()
    }
    if not any(reasons.values()):
        return errors
    return pa.array([reasons.get(row, error) for row, error in enumerate(errors.to_pylist())], pa.string())


def _canonical(texts: Sequence[str]) -> pa.Array:
    """Returns canonical JSON of values.

    Raises:
        ValueError: A text is no JSON, or tables cannot hold its value.
    """
    strings = pa.array(texts, pa.string())
    odd = odd_texts(strings)
    if not len(odd):
        return strings
    made = [json_text(decode_value(texts[index])) for index in odd.tolist()]
    mask = np.zeros(len(strings), bool)
    mask[odd] = True
    return pc.replace_with_mask(strings, pa.array(mask), pa.array(made, pa.string()))


def _values(parts: tuple[bytes, bytes, bytes], texts: pa.Array) -> pa.Array:
    """Returns the texts of the kernel's values; null for no value."""
    kind, first, second = np.frombuffer(parts[0], np.int8), _int64s(parts[1]), _int64s(parts[2])
    others = texts.take(pa.array(first, mask=kind != _OTHER))
    if not np.isin(kind, (_INTEGER, _PAIR)).any():
        return others
    whole, last = (pa.array(part).cast(pa.string()) for part in (first, second))
    pairs = pc.binary_join_element_wise("[", whole, ",", last, "]", "")
    integers = pc.if_else(pa.array(kind == _INTEGER), whole, pc.if_else(pa.array(kind == _PAIR), pairs, others))
    return pc.if_else(pa.array(kind == _NOTHING), pa.scalar(None, pa.string()), integers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What the last rows of the parts of a history tell.

    Attributes:
        lines: By the first byte of a part: the number of the lines before it.
        count: The number of all lines.
        invokes: The number of operations.
        crossing: The operations that a later part completes: of each the first byte of its part, and its process.
    """

    lines: Mapping[int, int]
    count: int
    invokes: int
    crossing: Sequence[tuple[int, int]]


def ends_of(rows: Sequence[Mapping[str, Any]]) -> Ends | None:
    """Returns what the rows `PART` and `UNPLAIN` of a history tell; None if the history is not plain."""
    parts = sorted(rows, key=lambda row: row["begin"])
    if not parts or parts[0]["begin"] != 0 or any(part["row"] == UNPLAIN for part in parts):
        return None
    at = count = 0
    lines = {}
    for part in parts:
        lines[part["begin"]] = count
        count += part["lines"]
        if part["events"] and part["first"] != at:
            return None
        at += part["events"]
    crossing = _crossing(parts)
    if crossing is None or len(crossing) > MOST_CROSSING:
        return None
    invokes = sum(part["invokes"] for part in parts)
    return Ends(lines=lines, count=count, invokes=invokes, crossing=crossing)


def _crossing(parts: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]] | None:
    """Returns the operations that a later part completes; None if a process breaks the rules from one part to a later one."""
    columns = [
        np.concatenate([_int64s(part[name]) for part in parts]) for name in ("process_of", "first_ns", "free_ns")
    ]
    flags = np.concatenate([np.frombuffer(part["flags"], np.uint8) for part in parts])
    number = np.repeat(np.arange(len(parts)), [len(part["flags"]) for part in parts])
    order = np.lexsort((number, columns[0]))
    process, first_ns, free_ns, flags, number = (column[order] for column in (*columns, flags, number))
    is_begun = (flags & _IS_BEGUN) > 0
    follows = np.diff(process, prepend=-1) == 0  # an earlier part has the process too, in the row before
    if (is_begun & ~follows).any():
        return None
    here = np.flatnonzero(follows)
    before = here - 1
    was_open, had_ended = (flags[before] & _IS_OPEN) > 0, (flags[before] & _HAS_ENDED) > 0
    may_begin = ~was_open & ~had_ended & (first_ns[here] >= free_ns[before])
    if not np.where(is_begun[here], was_open, may_begin).all():
        return None
    begins = np.array([part["begin"] for part in parts])
    crossed = before[is_begun[here]]
    return list(zip(begins[number[crossed]].tolist(), process[crossed].tolist(), strict=True))


def joined(
    ends: Ends, rows: Sequence[Mapping[str, Any]], run: str, file: str, *, keyed: bool
) -> list[pa.RecordBatch] | None:
    """Returns the rows (`ROWS`) that no part has; None if the history is not plain.

    Args:
        ends: What the parts tell.
        rows: The rows `LINE` of all parts, and the rows `OPEN` of the crossing operations.
        run: The run.
        file: The name of the file.
        keyed: As in `read_part`.
    """
    crossing: list[Event] = []
    others: list[dict[str, Any]] = []
    torn = None
    pairing = Pairing(partial(BadHistory, file))
    try:
        for row in rows:
            if row["row"] == OPEN:
                crossing.append(Event(0, _invoke(row)))
                continue
            line, number = row["sample"].encode(), ends.lines[row["begin"]] + row["line"]
            try:
                fields = decode_object(line)
            except ValueError:
                if number < ends.count or torn is not None:
                    return None
                torn = last_line(line, number)
                continue
            event = fitting(Event(number, decode_event(fields, fields["index"])))
            if event.op.process == NEMESIS:
                others.append(fault_row(event))
            else:
                crossing.append(lifted(event) if keyed else event)
        crossing.sort(key=lambda event: event.op.index)
        for event in crossing:
            pairing.add(event)
    except (ValueError, InputError):
        return None
    others.sort(key=lambda row: row["invoke_index"])
    end = {"row": END, "invokes": ends.invokes}
    rest = [*others, *([] if torn is None else [torn]), end]
    return [*of_operations(run, file, pairing.finish()), *of_others(run, file, rest)]


def _invoke(row: Mapping[str, Any]) -> Op:
    return Op(
        index=row["invoke_index"],
        time_ns=row["start_ns"],
        type=OpType.INVOKE,
        process=row["process"],
        f=row["f"],
        value=None if row["value"] is None else decode_value(row["value"]),
        key=row["key"],
        node=row["node"],
        scheduled_ns=row["scheduled_ns"],
        phase=row["phase"],
    )
