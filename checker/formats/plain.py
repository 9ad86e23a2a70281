"""Reads plain histories with the kernel: long ones become arrays, without an object for each event.

The rule: the result is exactly that of the readers of events, or there is none, and these read the history again. So this
module needs no error messages. The kernel (`checker/kernel/src/events`) cuts the text and pairs the events. It leaves values
other than integers and pairs of them, and all names, as texts. Each distinct text is decoded here once, in the order of its
first use, by the function that the reader of events uses. The values of transactions stay in the kernel, as columns of
micro-operations; the text of one is made when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Final, cast, overload

import numpy as np

from checker._kernel import Events, Transactions
from checker.edn.reader import loads
from checker.formats.columns import (
    FAIL,
    INFO,
    INTEGER,
    NEVER,
    NOTHING,
    OTHER,
    PAIR,
    ColumnOfValues,
    ColumnReader,
    Columns,
    Order,
)
from checker.formats.jepsen_reader import JepsenEvents
from checker.formats.json_events import begins_events
from checker.formats.jsonl import JsonlEvents, bare_warning, own_header
from checker.formats.log_lines import CAS, CONSOLE_LOG, DROP, LogEvents
from checker.formats.readers import EDN, JSONL, LINES, detect
from checker.formats.texts import error_text, function_name, name_text
from checker.formats.values import PlainValues
from checker.values import decode_value
from harness.errors import InputError
from harness.event_lines import MAX_LINE_BYTES, decode_object
from harness.op import FINAL_PHASE, OpType
from harness.pairing import back_warning, changed_warnings, made, reason_in, torn_warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from checker._kernel import EventColumns
    from checker.formats.columns import Bools, Int32s, Int64s
    from checker.formats.source import Source
    from harness.op import Operation, Value

_TYPES: Final = (OpType.OK, OpType.FAIL, OpType.INFO)
_BATCH: Final = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A history as arrays.

    Attributes:
        columns: The arrays.
        names: The names and texts of the arrays.
        operations: The operations; each becomes an object when it is used.
        events: The number of events, with faults.
        timed: Whether the events have times.
        warnings: Warnings as sentences.
        conventions: The conventions that the file defines.
    """

    columns: Columns
    names: ColumnReader
    operations: Operations
    events: int
    timed: bool
    warnings: Sequence[str]
    conventions: Mapping[str, str]


def read_plain(
    format_name: str, source: Source, *, keyed: bool | None, transactions: str | None = None
) -> Plain | None:
    """Reads a history in text; None if it is not plain, or has another format.

    Args:
        format_name: Its format; only JSON Lines, EDN and logs can be plain.
        source: The text, at its beginning.
        keyed: As in `checker.formats.readers.events_of`.
        transactions: The micro-operations of its values, `list-append` or `rw-register`; None: the values are no transactions.
    """
    try:
        if detect(source, transactions=transactions) != format_name:  # lines of a log look alike in several formats
            return None
        if format_name in LINES and transactions is None:
            return _read_log(format_name, source, keyed)
        if format_name == EDN:
            return _read_edn(source, keyed, transactions)
        return _read_jsonl(source, keyed, transactions) if format_name == JSONL else None
    except (InputError, ValueError):
        return None


def _read_jsonl(source: Source, keyed: bool | None, transactions: str | None) -> Plain | None:  # noqa: FBT001 - as given
    line = source.readline_bytes(MAX_LINE_BYTES)
    first = decode_object(line)
    is_bare = begins_events(first)
    if is_bare:
        if not source.rewind():
            return None
        keyed = _keyed_at(JsonlEvents(source, keyed=keyed))
        if not source.rewind():
            return None
        events, begun = Events("json-lines", keyed=keyed, transactions=transactions), b""
    else:
        own_header(first)
        events, begun = Events("jsonl", keyed=bool(keyed), line=2, transactions=transactions), b""
    rest = _fed(events, source, begun)
    torn = []
    if rest and not _is_object(rest):
        torn.append(torn_warning(events.line))
    elif not _is_taken(events, rest):
        return None
    columns = events.finish()
    if columns is None:
        return None
    for text in columns.unused:
        decode_value(text)
    names = [_text(text) for text in columns.names]
    values = [decode_value(text) for text in columns.values]
    timed = columns.timed or not is_bare
    return _made(
        columns,
        source.name,
        keys=[_text(text) for text in columns.keys],
        functions=[_text(text) for text in columns.functions],
        names=names,
        errors=names,
        timed=timed,
        values=values,
        warnings=[*([bare_warning(timed=timed)] if is_bare else []), *torn],
    )


def _read_edn(source: Source, keyed: bool | None, transactions: str | None) -> Plain | None:  # noqa: FBT001 - as given
    beginning = JepsenEvents(source, keyed=keyed)
    next(iter(beginning), None)
    if not source.rewind():
        return None
    events = Events("edn", keyed=bool(beginning.keyed), transactions=transactions)
    rest = _fed(events, source)
    if rest is None or rest.strip():
        return None
    columns = events.finish()
    if columns is None or not (columns.events or columns.around):
        return None
    for text in columns.unused:
        loads(text)
    plain, plain_keys = PlainValues(), PlainValues()
    forms = [loads(text) for text in columns.names]
    return _made(
        columns,
        source.name,
        keys=[plain_keys.name(loads(text)) for text in columns.keys],
        functions=[function_name(loads(text)) for text in columns.functions],
        names=[name_text(form) for form in forms],
        errors=[error_text(form) for form in forms],
        timed=columns.timed,
        values=[plain.value(loads(text)) for text in columns.values],
        conventions=beginning.conventions,
    )


def _keyed_at(events: JsonlEvents | LogEvents) -> bool:
    """Returns whether values are tuples of a key and a value, by the first events."""
    next(iter(events), None)
    return bool(events.keyed)


def _read_log(found_as: str, source: Source, keyed: bool | None) -> Plain | None:  # noqa: FBT001 - as given
    keyed = _keyed_at(LogEvents(source, found_as, keyed=keyed))
    if not source.rewind():
        return None
    events = Events(found_as, keyed=keyed)
    if not _is_taken(events, _fed(events, source)):
        return None
    columns = events.finish()
    if columns is None or not columns.events:
        return None
    plain, plain_keys = PlainValues(), PlainValues()
    errors = [error_text(loads(text)) for text in columns.names]
    functions = columns.functions
    return _made(
        columns,
        source.name,
        keys=[plain_keys.text(loads(text)) for text in columns.keys],
        functions=functions,
        names=errors,
        errors=errors,
        timed=False,
        values=[plain.value(loads(text)) for text in columns.values],
        conventions=DROP if found_as == CONSOLE_LOG and _fails_otherwise(columns, functions) else {},
    )


def _fails_otherwise(events: EventColumns, functions: Sequence[str]) -> bool:
    """Returns whether a compare-and-set failed with an error, so maybe not because the value was different."""
    of_cas = np.array([name == CAS for name in functions], np.bool_)
    failed = (np.frombuffer(events.type, np.int8) - np.int8(1) == FAIL) & (_int32s(events.error) >= 0)
    return bool(of_cas[_int32s(events.function)[failed]].any()) if len(of_cas) else False


def _fed(events: Events, source: Source, rest: bytes = b"") -> bytes | None:
    """Gives a text to the kernel, with `rest` before it; returns what is left at its end, or None if it is not plain."""
    for part in source.parts(sys.maxsize):
        rest += part
        taken = events.feed(rest)
        if taken is None or len(rest) - taken > MAX_LINE_BYTES:
            return None
        rest = rest[taken:]
    return rest


def _is_taken(events: Events, rest: bytes | None) -> bool:
    """Gives the last line to the kernel, if it has no end; returns whether the text is plain."""
    return rest is not None and (not rest or events.feed(rest + b"\n") is not None)


def _is_object(line: bytes) -> bool:
    try:
        decode_object(line)
    except ValueError:
        return False
    return True


def _text(text: str) -> str:
    value = decode_value(text)
    if type(value) is not str:
        raise ValueError(f"expected a text, found {text}")
    return value


def _made(
    events: EventColumns,
    name: str,
    *,
    keys: Sequence[str],
    functions: Sequence[str],
    names: Sequence[str],
    errors: Sequence[str],
    timed: bool,
    values: Sequence[Value],
    warnings: Iterable[str] = (),
    conventions: Mapping[str, str] | None = None,
) -> Plain | None:
    """Returns a history with decoded names and values; None if it breaks a rule."""
    reader = ColumnReader(name)
    kinds = [reader.typed(value) for value in values]
    typed = np.array(kinds, np.int64).reshape(len(kinds), 3)
    transactions: Transactions | None = events.transactions
    if transactions is None:
        value, result = _values(events.value, typed), _values(events.result, typed)
    else:
        value, result = _as_they_are(events.value), _as_they_are(events.result)
    changed: dict[OpType, list[int]] = {}
    reasons: dict[int, Value] = {}
    for change in events.changed:
        row, first = change.row, change.first
        now = tuple(typed[first].tolist()) if change.kind == OTHER else (change.kind, first, change.second)
        if now[0] != NOTHING and now != (value.kind[row], value.first[row], value.second[row]):
            changed.setdefault(OpType.FAIL if change.failed else OpType.INFO, []).append(change.line)
            if change.kind == OTHER:
                decoded = values if transactions is None else _Decoded(transactions)
                reasons[row] = decoded[first]
    back = events.back_line
    kind = np.frombuffer(events.type, np.int8) - np.int8(1)
    complete = _int64s(events.end)
    columns = Columns(
        key=reader.keys_at(_int32s(events.key), keys),
        function=reader.functions_at(_int32s(events.function), functions),
        type=kind,
        process=_int64s(events.process),
        start=_int64s(events.start),
        end=np.where(kind == INFO, NEVER, complete),
        start_ns=_int64s(events.start_ns),
        end_ns=_int64s(events.end_ns),
        value=value,
        result=result,
        keys=reader.keys,
        functions=reader.functions,
        texts=reader.texts if transactions is None else cast("Sequence[str]", transactions),
        order=_order(events.order, len(kind)),
        final=_final(_int32s(events.phase), names),
    )
    return Plain(
        columns=columns,
        names=reader,
        operations=Operations(
            columns,
            events,
            complete=complete,
            names=names,
            errors=errors,
            values=values if transactions is None else _Decoded(transactions),
            reasons=reasons,
        ),
        events=events.events,
        timed=timed,
        warnings=[
            *warnings,
            *([] if back is None else [back_warning(back)]),
            *changed_warnings(changed),
        ],
        conventions=conventions or {},
    )


def _order(pairs: Sequence[tuple[int, int]], size: int) -> Order | None:
    """Returns the system's own numbers from pairs of a row and a number; None if there are none."""
    if not pairs:
        return None
    rows, numbers = np.array(pairs, np.int64).T
    order = Order(known=np.zeros(size, np.bool_), number=np.zeros(size, np.int64))
    order.known[rows], order.number[rows] = True, numbers
    return order


def _final(phases: Int32s, names: Sequence[str]) -> Bools | None:
    """Returns which rows are of the final phase, from the places of their phases in names; None if none is."""
    places = [index for index, name in enumerate(names) if name == FINAL_PHASE]
    final: Bools = np.isin(phases, places)
    return final if final.any() else None


class _Decoded(Sequence["Value"]):
    """The values of transactions; each is decoded when it is used."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def __len__(self) -> int:
        return len(self._transactions)

    @overload
    def __getitem__(self, index: int) -> Value: ...

    @overload
    def __getitem__(self, index: slice) -> list[Value]: ...

    def __getitem__(self, index: int | slice) -> Value | list[Value]:
        """Returns one value, or some of them."""
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        return decode_value(self._transactions[index])


def _as_they_are(parts: tuple[bytes, bytes, bytes]) -> ColumnOfValues:
    return ColumnOfValues(kind=np.frombuffer(parts[0], np.int8), first=_int64s(parts[1]), second=_int64s(parts[2]))


def _values(parts: tuple[bytes, bytes, bytes], typed: Int64s) -> ColumnOfValues:
    """Returns the kernel's values of a column, with the decoded texts in place of texts."""
    values = _as_they_are(parts)
    kind, first, second = values.kind, values.first, values.second
    others = np.flatnonzero(kind == OTHER)
    if len(others):
        decoded = typed[first[others]]
        kind, first, second = kind.copy(), first.copy(), second.copy()
        kind[others], first[others], second[others] = decoded.T
    return ColumnOfValues(kind=kind, first=first, second=second)


def _int64s(column: bytes) -> Int64s:
    return np.frombuffer(column, np.int64)


def _int32s(column: bytes) -> Int32s:
    return np.frombuffer(column, np.int32)


class Operations(Sequence["Operation"]):
    """The operations of a plain history. A pass over all of them makes their objects, and keeps them."""

    def __init__(
        self,
        columns: Columns,
        events: EventColumns,
        *,
        complete: Int64s,
        names: Sequence[str],
        errors: Sequence[str],
        values: Sequence[Value],
        reasons: Mapping[int, Value],
    ) -> None:
        """Takes the arrays and the kernel's columns; `names`, `errors` and `values` are its decoded texts.

        `reasons` has the values by which operations did not succeed, if these differ from those of their invokes.
        """
        self._columns = columns
        self._found = events
        self._complete = complete
        self._names = [*names, None]  # the place of an absent name is -1
        self._errors = [*errors, None]
        self._values = values
        self._reasons = reasons

    def __len__(self) -> int:
        return len(self._columns)

    @overload
    def __getitem__(self, index: int) -> Operation: ...

    @overload
    def __getitem__(self, index: slice) -> list[Operation]: ...

    def __getitem__(self, index: int | slice) -> Operation | list[Operation]:
        """Returns one operation, or some of them."""
        if isinstance(index, slice):
            return self._all[index]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        [operation] = self.at(np.array([index % len(self)], np.int64))
        return operation

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._all)

    @cached_property
    def _all(self) -> list[Operation]:
        rows = np.arange(len(self))
        return [
            operation for begin in range(0, len(self), _BATCH) for operation in self.at(rows[begin : begin + _BATCH])
        ]

    @property
    def has_order(self) -> bool:
        """Whether an operation has a number of the system's own."""
        return bool(self._order)

    @cached_property
    def _order(self) -> dict[int, int]:
        return dict(self._found.order)

    def at(self, rows: Int64s) -> list[Operation]:
        """Returns the operations of some rows."""
        columns, events = self._columns, self._found

        def optional(numbers: Int64s) -> list[int | None]:
            return [None if number < 0 else number for number in numbers[rows].tolist()]

        def names(column: bytes, texts: Sequence[str | None]) -> list[str | None]:
            return [texts[index] for index in _int32s(column)[rows].tolist()]

        def values(column: tuple[bytes, bytes, bytes]) -> list[Value]:
            kind, first, second = column
            parts = (np.frombuffer(kind, np.int8), _int64s(first), _int64s(second))
            return list(map(self._value, *(part[rows].tolist() for part in parts)))

        def errors() -> list[str | None]:
            known = names(events.error, self._errors)
            if not self._reasons:
                return known
            return [
                reason_in(self._reasons[row]) if error is None and row in self._reasons else error
                for row, error in zip(rows.tolist(), known, strict=True)
            ]

        orders: Iterable[int | None] = repeat(None)
        if self._order:
            orders = map(self._order.get, rows.tolist())
        return list(
            map(
                made,
                columns.process[rows].tolist(),
                [columns.functions[index] for index in columns.function[rows].tolist()],
                values(events.value),
                values(events.result),
                [_TYPES[kind] for kind in columns.type[rows].tolist()],
                columns.start_ns[rows].tolist(),
                optional(columns.end_ns),
                columns.start[rows].tolist(),
                optional(self._complete),
                [columns.keys[index] for index in columns.key[rows].tolist()],
                names(events.node, self._names),
                errors(),
                optional(_int64s(events.scheduled_ns)),
                names(events.phase, self._names),
                names(events.via, self._names),
                orders,
            )
        )

    def _value(self, kind: int, first: int, second: int) -> Value:
        if kind == INTEGER:
            return first
        if kind == PAIR:
            return [first, second]
        return self._values[first] if kind == OTHER else None
