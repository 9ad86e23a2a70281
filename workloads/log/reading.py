"""Reads the operations of a log as arrays: the appends, and the offsets and values in answers and reads.

Each value has a number. An integer is its own number. Any other value has a number below all integers that columns store as
integers. So equal values have equal numbers, and different values have different ones.

The result of a range read is a JSON text. Texts with only pairs of integers are parsed in bulk; Python parses the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import GREAT, INTEGER, NOTHING, OK, OTHER, PAIR
from checker.values import decode_value, json_text
from harness.console.documents import shown
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.formats.columns import ColumnOfValues, Columns, Int64s
    from harness.op import Value
    from workloads.log.arrays import Bools

APPEND: Final = "append"
READ: Final = "read"

_BULK_CHARACTERS: Final = 1 << 25
_PAIRS: Final = "[[offset, value], ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The operations of one log.

    Attributes:
        history: The operations.
        numbers: The numbers of values that are not integers.
        append: The row of each append.
        appended: The number of its value.
        answered: Whether it was acknowledged with an offset.
        answer: Its offset; 0 if there is none.
        read: The row of each successful read, ascending.
        first: The first offset that it covers.
        last: The last offset that it covers.
        entry_read: For each returned entry, the position of its read in `read`, ascending.
        entry_offset: The offset of each entry.
        entry_value: The number of each entry's value.
    """

    history: Columns
    numbers: Numbers
    append: Int64s
    appended: Int64s
    answered: Bools
    answer: Int64s
    read: Int64s
    first: Int64s
    last: Int64s
    entry_read: Int64s
    entry_offset: Int64s
    entry_value: Int64s

    def value(self, number: int) -> Value:
        """Returns the value of a number."""
        return number if number > -GREAT else self.numbers.value(number)


class Numbers:
    """The numbers of the values that are not integers."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._texts: list[str] = []

    def of_text(self, text: str) -> int:
        """Returns the number of a value's canonical JSON."""
        number = self._places.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return -GREAT - number

    def of_value(self, value: Value) -> int:
        """Returns the number of a value."""
        if type(value) is int and abs(value) < GREAT:
            return value
        return self.of_text(json_text(value) or "")

    def of_column(self, values: ColumnOfValues, texts: Sequence[str], rows: Int64s) -> Int64s:
        """Returns the numbers of the values in some rows of a column. Each row must have a value."""
        kind, number = values.kind[rows], values.first[rows]
        others = np.flatnonzero(kind == OTHER)
        if len(others):
            distinct, inverse = np.unique(number[others], return_inverse=True)
            known = [self.of_text(texts[number]) for number in distinct.tolist()]
            number[others] = np.array(known, np.int64)[inverse.reshape(-1)]
        for index in np.flatnonzero(kind == PAIR).tolist():
            number[index] = self.of_text(f"[{values.first[rows[index]]},{values.second[rows[index]]}]")
        return number

    def value(self, number: int) -> Value:
        """Returns the value of a number."""
        return decode_value(self._texts[-number - GREAT])


def read_log(history: Columns) -> Log:
    """Reads the operations of one log.

    Raises:
        InputError: The workload has no such operation.
    """
    append_at, read_at = _rows_of(history, APPEND), _rows_of(history, READ)
    if len(append_at) + len(read_at) < len(history):
        row = int(np.setdiff1d(np.arange(len(history)), np.concatenate([append_at, read_at]))[0])
        name = history.functions[history.function[row]]
        raise _wrong(
            history, row, f"expected {APPEND} or {READ}, the functions of the workload log, found {shown(name)}"
        )
    _require(history, append_at, history.value.kind[append_at] != NOTHING, "expected an append of a value, found null")
    kind = history.value.kind[read_at]
    _require(history, read_at, (kind == INTEGER) | (kind == PAIR), "expected a read of an offset or of [first, last]")
    acknowledged = history.type[append_at] == OK
    answer_kind = history.result.kind[append_at]
    is_right = ~acknowledged | (answer_kind == INTEGER) | (answer_kind == NOTHING)
    _require(history, append_at, is_right, "expected an offset or null as the answer of an append")
    answered = acknowledged & (answer_kind == INTEGER)
    numbers = Numbers()
    appended = numbers.of_column(history.value, history.texts, append_at)
    read = read_at[history.type[read_at] == OK]
    ranged = history.value.kind[read] == PAIR
    first = history.value.first[read]
    entry_read, entry_offset, entry_value = _entries(history, numbers, read, ranged)
    return Log(
        history=history,
        numbers=numbers,
        append=append_at,
        appended=appended,
        answered=answered,
        answer=np.where(answered, history.result.first[append_at], 0),
        read=read,
        first=first,
        last=np.where(ranged, history.value.second[read], first),
        entry_read=entry_read,
        entry_offset=entry_offset,
        entry_value=entry_value,
    )


def _rows_of(history: Columns, function: str) -> Int64s:
    """Returns the rows of the operations with a function, ascending."""
    number = history.functions.index(function) if function in history.functions else -1
    rows: Int64s = np.flatnonzero(history.function == number)
    return rows


def rows_by_function(history: Columns, functions: Sequence[str], has: str) -> dict[str, Int64s]:
    """Returns the rows of the operations with each function, ascending.

    Args:
        history: The operations.
        functions: The functions of the workload.
        has: The beginning of a sentence that ends with the functions, e.g. `a ledger has`.

    Raises:
        InputError: An operation has another function.
    """
    by_function = {name: _rows_of(history, name) for name in functions}
    if sum(map(len, by_function.values())) < len(history):
        row = int(np.setdiff1d(np.arange(len(history)), np.concatenate(list(by_function.values())))[0])
        other = shown(history.functions[int(history.function[row])])
        raise _wrong(history, row, f"{has} the functions {', '.join(functions)}, found {other}")
    return by_function


def _require(history: Columns, rows: Int64s, right: Bools, expected: str) -> None:
    if not right.all():
        raise _wrong(history, int(rows[np.flatnonzero(~right)[0]]), expected)


def _wrong(history: Columns, row: int, reason: str) -> InputError:
    return InputError(f"event {history.start[row]}: {reason}")


def _entries(history: Columns, numbers: Numbers, read: Int64s, ranged: Bools) -> tuple[Int64s, Int64s, Int64s]:
    """Returns the entries of all reads, in the order of the reads: position of the read, offset, number of the value."""
    kind = history.result.kind[read]
    _require(history, read[ranged], kind[ranged] == OTHER, f"expected {_PAIRS} as the result of a read of a range")
    places, earliest, text_of = np.unique(history.result.first[read[ranged]], return_index=True, return_inverse=True)
    text_of = text_of.reshape(-1)
    counts, offsets, values = _pairs(history, numbers, places, read[ranged][earliest])
    count = np.where(kind == NOTHING, 0, 1)
    count[ranged] = counts[text_of]
    begins = np.cumsum(count) - count
    # First the entries of range reads, from the positions of their texts; then those of single reads.
    shift = np.zeros(len(read), np.int64)
    shift[ranged] = (np.cumsum(counts) - counts)[text_of] - begins[ranged]
    entry_read = np.repeat(np.arange(len(read)), count)
    singles = np.flatnonzero(~ranged & (count > 0))
    if len(singles):
        offset, value = np.zeros((2, len(entry_read)), np.int64)
        of_range = np.flatnonzero(ranged[entry_read])
        taken = of_range + shift[entry_read[of_range]]
        offset[of_range], value[of_range] = offsets[taken], values[taken]
        offset[begins[singles]] = history.value.first[read[singles]]
        value[begins[singles]] = numbers.of_column(history.result, history.texts, read[singles])
        return entry_read, offset, value
    if not shift.any():
        return entry_read, offsets, values
    taken = np.arange(len(entry_read)) + shift[entry_read]
    return entry_read, offsets[taken], values[taken]


def _pairs(history: Columns, numbers: Numbers, places: Int64s, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Parses distinct texts. Returns the number of pairs in each, and the offsets and values of all, in the texts' order.

    Args:
        history: The operations.
        numbers: The numbers of values.
        places: The positions of the texts.
        rows: A read with each text, for errors.
    """
    counts = np.zeros(len(places), np.int64)
    offsets: list[Int64s] = []
    values: list[Int64s] = []
    begin = 0
    while begin < len(places):
        some: list[str] = []
        size = 0
        while begin + len(some) < len(places) and size < _BULK_CHARACTERS:
            some.append(history.texts[places[begin + len(some)]])
            size += len(some[-1])
        bulk = _in_bulk(some)
        if bulk is None:
            bulk = _one_by_one(history, numbers, some, rows[begin : begin + len(some)].tolist())
        counts[begin : begin + len(some)] = bulk[0]
        offsets.append(bulk[1])
        values.append(bulk[2])
        begin += len(some)
    empty = [np.zeros(0, np.int64)]
    return counts, np.concatenate(offsets or empty), np.concatenate(values or empty)


def _in_bulk(texts: Sequence[str]) -> tuple[Int64s, Int64s, Int64s] | None:
    """Parses texts with only pairs of integers; None if they have anything else.

    The texts are JSON. Without digits and signs, only brackets and commas are left. If these are those of a list of pairs, the
    members are integers, because JSON has no other value of digits and signs alone.
    """
    lines: list[bytes] = []
    counts = np.zeros(len(texts), np.int64)
    skeletons: dict[int, bytes] = {}
    for index, text in enumerate(texts):
        if not text.isascii():
            return None
        line = text.encode("ascii")
        skeleton = line.translate(None, b"0123456789-")
        count = (len(skeleton) - 1) // 4
        if count not in skeletons:
            skeletons[count] = b"[" + b",".join([b"[,]"] * count) + b"]"
        if skeleton != skeletons[count]:
            return None
        counts[index] = count
        if count:
            lines.append(line.translate(None, b"[]"))
    members = np.fromstring(b",".join(lines), np.int64, sep=",") if lines else np.zeros(0, np.int64)
    # An integer beyond int64 becomes the nearest int64, which is also above the limit.
    if len(members) != 2 * counts.sum() or max(-int(members.min(initial=0)), int(members.max(initial=0))) >= GREAT:
        return None
    return counts, members[0::2].copy(), members[1::2].copy()


def _one_by_one(
    history: Columns, numbers: Numbers, texts: Sequence[str], rows: Sequence[int]
) -> tuple[Int64s, Int64s, Int64s]:
    counts: list[int] = []
    offsets: list[int] = []
    values: list[int] = []
    for text, row in zip(texts, rows, strict=True):
        pairs = decode_value(text)
        if not isinstance(pairs, list):
            raise _wrong(history, row, f"expected {_PAIRS} as the result of a read of a range")
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2 or pair[1] is None or not _is_offset(pair[0]):
                raise _wrong(history, row, f"expected {_PAIRS} as the result of a read of a range, found {shown(pair)}")
            offsets.append(pair[0])
            values.append(numbers.of_value(pair[1]))
        counts.append(len(pairs))
    return np.array(counts, np.int64), np.array(offsets, np.int64), np.array(values, np.int64)


def _is_offset(value: Value) -> bool:
    return type(value) is int and abs(value) < GREAT
