"""The values that went into a queue and came out of it, as arrays with one number for each distinct value.

Two values have the same number if and only if they are the same JSON value: as argument of an enqueue, result of a dequeue, or
member of a drain's list. Integers do not become Python objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import GREAT, INFO, INTEGER, NOTHING, OK, OTHER, PAIR, ColumnOfValues, integers_of
from checker.values import decode_value, json_text
from harness.console.documents import shown
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from checker.formats.columns import Columns, Int64s
    from harness.op import Value

    Bools = npt.NDArray[np.bool_]

FUNCTIONS: Final = ("enqueue", "dequeue", "drain")
_SPREAD: Final = 8  # integers become numbers directly if at least every eighth integer of their range occurs


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The values that went in and out. Rows are those of the object's columns.

    Attributes:
        put: The row of each enqueue, ascending.
        put_value: The number of its value.
        take: The row of the dequeue or drain by which each value came out: first those of dequeues, then of drains, ascending.
        take_value: The number of the value.
        place: The position of the value in the answer of a drain; 0 for a dequeue.
        numbers: The number of possible numbers, which are from 0.
        drains: Rows of successful drains, which left the queue empty.
        lost_dequeues: Rows of dequeues without an answer, each of which may have taken one value.
        lost_drains: Rows of drains without an answer, each of which may have taken any number of values.
        values: The values of all puts, and then of all takes.
        texts: The texts of values of kind `OTHER`, as in the history.
        more_texts: Further texts, which occur only in drains.
    """

    put: Int64s
    put_value: Int64s
    take: Int64s
    take_value: Int64s
    place: Int64s
    numbers: int
    drains: Int64s
    lost_dequeues: Int64s
    lost_drains: Int64s
    values: ColumnOfValues
    texts: Sequence[str]
    more_texts: Sequence[str]

    def value(self, element: int) -> Value:
        """Returns the value of a put, or of the take `element - len(put)`."""
        kind, first = self.values.kind[element], int(self.values.first[element])
        if kind == INTEGER:
            return first
        if kind == PAIR:
            return [first, int(self.values.second[element])]
        known = len(self.texts)
        return decode_value(self.texts[first] if first < known else self.more_texts[first - known])


def flow_of(history: Columns) -> Flow:
    """Returns the values that went into one queue and came out.

    Raises:
        InputError: An operation is not one of a queue, or lacks a value.
    """
    enqueue, dequeue, drain = _rows_by_function(history)
    put = np.flatnonzero(enqueue)
    _require(history, put, history.value, "an enqueue of a value")
    taken = np.flatnonzero(dequeue & (history.type == OK))
    _require(history, taken, history.result, "a dequeue that returns a value, or fails if the queue is empty")
    drains = np.flatnonzero(drain & (history.type == OK))
    texts = _Texts(history, put, taken)
    answers = [_members(history, int(row), texts) for row in drains]
    sizes = np.fromiter((len(answer.kind) for answer in answers), np.int64, len(answers))
    parts = [history.value.only(put), history.result.only(taken), *answers]
    values = ColumnOfValues(
        kind=np.concatenate([part.kind for part in parts]),
        first=np.concatenate([part.first for part in parts]),
        second=np.concatenate([part.second for part in parts]),
    )
    number, numbers = _numbered(values)
    places = [np.arange(size, dtype=np.int64) for size in sizes]
    return Flow(
        put=put,
        put_value=number[: len(put)],
        take=np.concatenate([taken, np.repeat(drains, sizes)]),
        take_value=number[len(put) :],
        place=np.concatenate([np.zeros(len(taken), np.int64), *places]),
        numbers=numbers,
        drains=drains,
        lost_dequeues=np.flatnonzero(dequeue & (history.type == INFO)),
        lost_drains=np.flatnonzero(drain & (history.type == INFO)),
        values=values,
        texts=history.texts,
        more_texts=texts.new,
    )


def _rows_by_function(history: Columns) -> list[Bools]:
    places = [history.functions.index(name) if name in history.functions else -1 for name in FUNCTIONS]
    wrong = np.flatnonzero(~np.isin(history.function, places))
    if len(wrong):
        row = int(wrong[0])
        function = shown(history.functions[history.function[row]])
        raise _refusal(history, row, f"the function enqueue, dequeue or drain, found {function}")
    return [history.function == number for number in places]


def _require(history: Columns, rows: Int64s, values: ColumnOfValues, expected: str) -> None:
    empty = np.flatnonzero(values.kind[rows] == NOTHING)
    if len(empty):
        raise _refusal(history, int(rows[empty[0]]), f"{expected}, found null")


def _refusal(history: Columns, row: int, expected: str) -> InputError:
    return InputError(f"event {history.start[row]}: expected {expected}")


class _Texts:
    """The texts of a history, and then those that occur only in this queue's drains."""

    def __init__(self, history: Columns, put: Int64s, taken: Int64s) -> None:
        self.new: list[str] = []
        self._history = history
        self._rows = put, taken
        self._places: dict[str, int] | None = None

    def place_of(self, text: str) -> int:
        if self._places is None:
            self._places = self._used()
        number = self._places.setdefault(text, len(self._history.texts) + len(self.new))
        if number == len(self._history.texts) + len(self.new):
            self.new.append(text)
        return number

    def _used(self) -> dict[str, int]:
        """Returns the positions of the texts that this queue uses; a history can have many others."""
        put, taken = self._rows
        places = [
            values.first[rows][values.kind[rows] == OTHER]
            for values, rows in ((self._history.value, put), (self._history.result, taken))
        ]
        return {self._history.texts[number]: number for number in np.unique(np.concatenate(places)).tolist()}


def _members(history: Columns, row: int, texts: _Texts) -> ColumnOfValues:
    """Returns the values in the answer of a drain."""
    kind, first = history.result.kind[row], int(history.result.first[row])
    if kind == PAIR:  # columns store a list of two integers as a pair
        return _integers(np.array([first, history.result.second[row]], np.int64))
    text = history.texts[first] if kind == OTHER else ""
    whole = integers_of(text)
    if whole is not None:
        return _integers(whole)
    members = decode_value(text) if text else None
    if not isinstance(members, list):
        raise _refusal(history, row, "a drain that returns a list of values")
    coded = [_coded(member, texts) for member in members]
    if any(kind == NOTHING for kind, _, _ in coded):
        raise _refusal(history, row, "a drain that returns a list of values, without null in it")
    kinds, firsts, seconds = zip(*coded, strict=True)
    return ColumnOfValues(
        kind=np.array(kinds, np.int8), first=np.array(firsts, np.int64), second=np.array(seconds, np.int64)
    )


def _integers(values: Int64s) -> ColumnOfValues:
    return ColumnOfValues(
        kind=np.full(len(values), INTEGER, np.int8), first=values, second=np.zeros(len(values), np.int64)
    )


def _coded(value: Value, texts: _Texts) -> tuple[int, int, int]:
    """Returns a value in the encoding of columns."""
    if value is None:
        return NOTHING, 0, 0
    if type(value) is int and abs(value) < GREAT:
        return INTEGER, value, 0
    if isinstance(value, list) and len(value) == 2 and all(type(m) is int and abs(m) < GREAT for m in value):
        return PAIR, value[0], value[1]
    return OTHER, texts.place_of(json_text(value) or ""), 0


def _numbered(values: ColumnOfValues) -> tuple[Int64s, int]:
    """Returns a number for each value, the same for equal values, and an upper bound of all numbers."""
    first = values.first
    if not len(first):
        return first, 0
    if (values.kind == INTEGER).all():
        low, high = int(first.min()), int(first.max())
        if high - low < _SPREAD * len(first):
            return first - low, high - low + 1
        distinct, number = np.unique(first, return_inverse=True)
        return number.astype(np.int64), len(distinct)
    order = np.lexsort((values.second, first, values.kind))
    new = np.zeros(len(order), np.int64)
    for column in (values.kind, first, values.second):
        new[1:] |= column[order][1:] != column[order][:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new)
    return number, int(number[order[-1]]) + 1
