"""Gives every distinct element of a history a number, dense from 0. An element can be any JSON value.

Integers get their numbers by array operations. Any other element is a Python object, identified by its canonical JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import GREAT, INTEGER, NOTHING, OTHER, PAIR, integers_of
from checker.judging import value_at
from checker.values import decode_value, json_text
from harness.console.documents import shown
from harness.errors import InputError

if TYPE_CHECKING:
    from checker.formats.columns import Columns, Int64s
    from harness.op import Value

# A table over the range of the integers is faster than a search if the range is not much larger than their number.
_SPREAD: Final = 4
_ROOM: Final = 1 << 16


class _Integers:
    """Maps some integers to their numbers, and all others to -1."""

    def __init__(self, values: Int64s) -> None:
        self._low = self._size = 0
        self._table: Int64s | None = None
        if len(values):
            low, high = int(values.min()), int(values.max())
            if high - low < _SPREAD * len(values) + _ROOM:
                self._low, self._size = low, high - low + 1
                present = np.zeros(self._size, np.bool_)
                present[values - low] = True
                self.distinct = np.flatnonzero(present) + low
                self._table = np.full(self._size, -1, np.int64)
                self._table[self.distinct - low] = np.arange(len(self.distinct))
                return
        self.distinct = np.unique(values)

    def __call__(self, values: Int64s) -> Int64s:
        if not len(self.distinct) or not len(values):
            return np.full(len(values), -1, np.int64)
        if self._table is not None:
            inside = (values >= self._low) & (values - self._low < self._size)
            if inside.all():
                return self._table[values - self._low]
            return np.where(inside, self._table[np.where(inside, values - self._low, 0)], -1)
        places = np.minimum(np.searchsorted(self.distinct, values), len(self.distinct) - 1)
        return np.where(self.distinct[places] == values, places, -1)


class Elements:
    """The numbers of all elements of one object's history.

    Attributes:
        of_adds: For each row of the adds, the number of its element.
        of_reads: For each row of the reads, the numbers of the returned elements, ascending, for fast access to arrays.
    """

    def __init__(self, history: Columns, adds: Int64s, reads: Int64s) -> None:
        """Numbers the elements.

        Args:
            history: The operations of one object.
            adds: The rows of the adds.
            reads: The rows of the successful reads.

        Raises:
            InputError: The result of a read is not a list.
        """
        values = history.value.only(adds)
        whole = values.kind == INTEGER
        self._history = history
        self._integers = _Integers(values.first[whole])
        self._count = len(self._integers.distinct)
        self._others: dict[str, int] = {}
        self.of_adds = np.zeros(len(adds), np.int64)
        self.of_adds[whole] = self._integers(values.first[whole])
        for index in np.flatnonzero(~whole).tolist():
            self.of_adds[index] = self._other(_text_at(history, int(adds[index])))
        self._read: dict[int, Int64s] = {}
        self.of_reads = [self._of_read(row) for row in reads.tolist()]

    def __len__(self) -> int:
        return self._count + len(self._others)

    def element(self, number: int) -> Value:
        """Returns the element with this number."""
        if number < self._count:
            return int(self._integers.distinct[number])
        return decode_value(self._names()[number - self._count])

    def _names(self) -> list[str]:
        return list(self._others)

    def _other(self, text: str) -> int:
        return self._count + self._others.setdefault(text, len(self._others))

    def _of_read(self, row: int) -> Int64s:
        kind, first = int(self._history.result.kind[row]), int(self._history.result.first[row])
        if kind == PAIR:
            return np.sort(self._of_integers(np.array([first, int(self._history.result.second[row])])))
        if kind == OTHER:
            if first not in self._read:
                self._read[first] = np.sort(self._of_text(row, self._history.texts[first]))
            return self._read[first]
        raise self._refusal(row)

    def _of_text(self, row: int, text: str) -> Int64s:
        whole = integers_of(text)
        if whole is not None:
            return self._of_integers(whole)
        members = decode_value(text)
        if not isinstance(members, list):
            raise self._refusal(row)
        small = np.array([type(member) is int and abs(member) < GREAT for member in members], np.bool_)
        numbers = np.zeros(len(members), np.int64)
        numbers[small] = self._of_integers(
            np.array([m for m, is_small in zip(members, small, strict=True) if is_small], np.int64)
        )
        for index in np.flatnonzero(~small).tolist():
            numbers[index] = self._other(json_text(members[index]) or "null")
        return numbers

    def _of_integers(self, values: Int64s) -> Int64s:
        numbers = self._integers(values)
        foreign = numbers < 0
        if foreign.any():
            distinct, places = np.unique(values[foreign], return_inverse=True)
            numbers[foreign] = np.array([self._other(str(value)) for value in distinct.tolist()], np.int64)[places]
        return numbers

    def _refusal(self, row: int) -> InputError:
        value = shown(value_at(self._history, self._history.result, row))
        return InputError(
            f"event {self._history.end[row]}: expected the list of a set's elements as the result of a read, found {value}"
        )


def _text_at(history: Columns, row: int) -> str:
    values = history.value
    match int(values.kind[row]):
        case kind if kind == PAIR:
            return f"[{values.first[row]},{values.second[row]}]"
        case kind if kind == NOTHING:
            return "null"
        case _:
            return history.texts[int(values.first[row])]
