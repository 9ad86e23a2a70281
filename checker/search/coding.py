"""Encodes operations from arrays as the columns of the kernel, without a Python object for each.

The columns are those of `checker.search.encode` for the same operations, except for the numbers of values: these may differ,
but equal values still have equal numbers. If this module cannot encode an operation, it raises `Unsuited`, and the caller
uses objects. It never drops or guesses anything.

An integer is its own number. Nil and other values get numbers beyond those of the integers. `Coded.finish` moves them next to
the integers, because the kernel is fastest with dense numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from checker.columns import FAIL, INTEGER, NOTHING, OK, OTHER, PAIR
from checker.formats.parquet import decode_value, json_text
from checker.models.counters import ADDS, FETCHES, Counter
from checker.models.locks import Mutex, OwnerMutex
from checker.models.opcodes import (
    ACQUIRE,
    CAS,
    CAS_FAIL,
    DEQUEUE,
    DEQUEUE_ANY,
    DEQUEUE_EMPTY,
    ENQUEUE,
    FETCH_ADD,
    INCREMENT,
    READ,
    READ_COUNT,
    RELEASE,
    WRITE,
)
from checker.models.queues import FifoQueue, UnorderedQueue
from checker.models.registers import CasRegister, Register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from checker.columns import ColumnReader, Columns, Values
    from checker.models import Model, NativeModel
    from harness.op import Value

    Int64s = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Bytes = npt.NDArray[np.uint8]
    Flags = npt.NDArray[np.bool_]

# Integers in columns are below 10^18.
_GREAT: Final = 10**18
_NIL: Final = -(1 << 62)
_TEXT: Final = 1 << 61
_NEGATIVE_ZERO: Final = "-0.0"


class KernelColumns(NamedTuple):
    """The kernel's columns of one key.

    Attributes:
        f: Opcodes.
        a: First arguments.
        b: Second arguments.
        s: The start of each operation.
        e: The end of each operation.
    """

    f: Bytes
    a: Int64s
    b: Int64s
    s: Int64s
    e: Int64s


class Unsuited(Exception):  # noqa: N818 - not an error: the caller uses objects
    """Arrays cannot represent these operations."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """The columns of some operations for the kernel, and which of them matter to the verdict."""

    keep: Flags
    f: Bytes
    a: Int64s
    b: Int64s


class Coder:
    """Codes the operations of one model, batch by batch.

    Attributes:
        family: The kernel's name for the model.
    """

    def __init__(self, model: NativeModel, reader: ColumnReader) -> None:
        """Prepares to code the batches of `reader`.

        Raises:
            Unsuited: The model has no coding.
        """
        code = _CODES.get(type(model))
        if code is None:
            raise Unsuited
        self.family = model.family
        self._model = model
        self._reader = reader
        self._code = code

    def of(self, columns: Columns) -> _Batch:
        """Returns a batch for the kernel.

        Raises:
            Unsuited: Arrays cannot represent an operation or a value.
        """
        batch = _Batch(
            keep=np.zeros(len(columns), np.bool_),
            f=np.zeros(len(columns), np.uint8),
            a=np.zeros(len(columns), np.int64),
            b=np.zeros(len(columns), np.int64),
        )
        for place in np.unique(columns.function).tolist():
            self._code(self, columns, columns.function == place, str(columns.functions[place]), batch)
        return batch

    @property
    def numbers_values(self) -> bool:
        """Returns whether numbers represent values; if not, they are counts or processes."""
        return not isinstance(self._model, Counter | Mutex)

    def initial(self) -> list[int]:
        """Returns the initial state.

        Raises:
            Unsuited: Arrays cannot represent it.
        """
        model = self._model
        if isinstance(model, FifoQueue):
            return [self.number(element) for element in model.initial]
        if isinstance(model, UnorderedQueue):
            return [0, *sorted(self.number(element) for element in model.initial[0])]
        if isinstance(model, Counter | Mutex):
            return model.initial_code(model.numbers())
        return [self.number(model.initial)]

    def number(self, value: Value) -> int:
        """Returns the number of one value.

        Raises:
            Unsuited: It is a pair of integers, which has two codings.
        """
        if value is None:
            return _NIL
        if type(value) is int and abs(value) < _GREAT:
            return value
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        if is_list and len(value) == 2 and all(type(member) is int for member in value):
            raise Unsuited
        text = json_text(value) or ""
        return _TEXT + self._reader.place_of(text)

    def check_texts(self) -> None:
        """Checks all texts at the end.

        Raises:
            Unsuited: Two texts may be the same value.
        """
        if any(_NEGATIVE_ZERO in text for text in self._reader.texts):
            raise Unsuited

    def _numbers(self, values: Values, rows: Flags) -> Int64s:
        kind, first = values.kind[rows], values.first[rows]
        if (kind == PAIR).any():
            raise Unsuited
        numbers = first.copy()
        numbers[kind == NOTHING] = _NIL
        numbers[kind == OTHER] += _TEXT
        return numbers

    def register(self, columns: Columns, rows: Flags, f: str, batch: _Batch) -> None:
        """Codes read, write and cas."""
        model = self._model
        assert isinstance(model, Register)  # noqa: S101 - see `_CODES`
        if f not in model.functions:
            raise Unsuited
        if f == "read":
            rows = rows & (columns.type == OK)
            if model.nil_read == "any":
                rows &= columns.result.kind != NOTHING
            batch.f[rows], batch.a[rows] = READ, self._numbers(columns.result, rows)
            batch.keep[rows] = True
            return
        if f == "write":
            rows = rows & (columns.type != FAIL)
            batch.f[rows], batch.a[rows] = WRITE, self._numbers(columns.value, rows)
            batch.keep[rows] = True
            return
        failed = rows & (columns.type == FAIL)
        rows = rows & (columns.type != FAIL)
        batch.f[rows] = CAS
        batch.a[rows], batch.b[rows] = self._pairs(columns.value, rows)
        batch.keep[rows] = True
        if f in model.keeps_failed:
            batch.f[failed], batch.a[failed] = CAS_FAIL, self._pairs(columns.value, failed)[0]
            batch.keep[failed] = True

    def _pairs(self, values: Values, rows: Flags) -> tuple[Int64s, Int64s]:
        """Returns both members of the arguments of cas."""
        kind, first, second = values.kind[rows], values.first[rows].copy(), values.second[rows].copy()
        if ((kind == NOTHING) | (kind == INTEGER)).any():
            raise Unsuited
        others = np.flatnonzero(kind == OTHER)
        if len(others):
            texts = self._reader.texts
            places, codes = np.unique(first[others], return_inverse=True)
            pairs = np.array([self._pair(texts[place]) for place in places.tolist()], np.int64)
            first[others], second[others] = pairs[codes, 0], pairs[codes, 1]
        return first, second

    def _pair(self, text: str) -> tuple[int, int]:
        value = decode_value(text)
        if not isinstance(value, list) or len(value) != 2:
            raise Unsuited
        return self.number(value[0]), self.number(value[1])

    def lock(self, columns: Columns, rows: Flags, f: str, batch: _Batch) -> None:
        """Codes acquire and release."""
        if f not in {"acquire", "release"} or (columns.process < 0).any():
            raise Unsuited
        rows = rows & (columns.type != FAIL)
        batch.f[rows], batch.a[rows] = ACQUIRE if f == "acquire" else RELEASE, columns.process[rows]
        batch.keep[rows] = True

    def counter(self, columns: Columns, rows: Flags, f: str, batch: _Batch) -> None:
        """Codes add, fetch-add and read."""
        ok = rows & (columns.type == OK)
        if f == "read":
            batch.f[ok], batch.a[ok] = READ_COUNT, self._integers(columns.result, ok)
            batch.keep[ok] = True
            return
        if f not in ADDS and f not in FETCHES:
            raise Unsuited
        rows = rows & (columns.type != FAIL)
        one = rows & (columns.value.kind == NOTHING)
        given = rows & ~one
        batch.f[rows], batch.a[one] = INCREMENT, 1
        batch.a[given] = self._integers(columns.value, given)
        if f in FETCHES:
            batch.f[ok], batch.b[ok] = FETCH_ADD, self._integers(columns.result, ok)
        batch.keep[rows] = True

    @staticmethod
    def _integers(values: Values, rows: Flags) -> Int64s:
        if (values.kind[rows] != INTEGER).any():
            raise Unsuited
        return values.first[rows]

    def queue(self, columns: Columns, rows: Flags, f: str, batch: _Batch) -> None:
        """Codes enqueue and dequeue."""
        model = self._model
        assert isinstance(model, FifoQueue | UnorderedQueue)  # noqa: S101 - see `_CODES`
        if f not in {"enqueue", "dequeue"}:
            raise Unsuited
        rows = rows & (columns.type != FAIL)
        if f == "enqueue":
            batch.f[rows], batch.a[rows] = ENQUEUE, self._numbers(columns.value, rows)
            batch.keep[rows] = True
            return
        ok = rows & (columns.type == OK)
        nothing = columns.result.kind == NOTHING
        taken = ok & ~nothing
        batch.f[ok & nothing] = DEQUEUE_EMPTY
        batch.f[taken], batch.a[taken] = DEQUEUE, self._numbers(columns.result, taken)
        batch.keep[ok] = True
        if model.crashed_dequeue == "takes":
            batch.f[rows & ~ok] = DEQUEUE_ANY
            batch.keep[rows] = True


_CODES: Final[Mapping[type[Model], Callable[[Coder, Columns, Flags, str, _Batch], None]]] = {
    Register: Coder.register,
    CasRegister: Coder.register,
    Mutex: Coder.lock,
    OwnerMutex: Coder.lock,
    Counter: Coder.counter,
    FifoQueue: Coder.queue,
    UnorderedQueue: Coder.queue,
}


class Coded:
    """The kernel's columns of a whole history, filled batch by batch: at most 37 bytes for each operation.

    Attributes:
        rows: The number of operations, with those that do not matter to the verdict.
        count: The number of operations in the columns.
        by_key: By the place of a key, the number of its operations.
    """

    def __init__(self, rows: int) -> None:
        """Allocates columns for so many operations."""
        self.rows = 0
        self.count = 0
        self.by_key = np.zeros(0, np.int64)
        self._f = np.zeros(rows, np.uint8)
        self._a, self._b, self._s, self._e = (np.zeros(rows, np.int64) for _ in range(4))
        self._key = np.zeros(rows, np.int32)

    def add(self, columns: Columns, coder: Coder) -> None:
        """Adds a batch.

        Raises:
            Unsuited: See `Coder.of`.
        """
        batch = coder.of(columns)
        keep = batch.keep
        here = slice(self.count, self.count + int(np.count_nonzero(keep)))
        self._f[here], self._a[here] = batch.f[keep], batch.a[keep]
        self._s[here], self._e[here] = columns.start[keep], columns.end[keep]
        if batch.b.any():
            self._b[here] = batch.b[keep]
        if columns.key.any():
            self._key[here] = columns.key[keep]
        counts = np.bincount(columns.key, minlength=max(len(columns.keys), len(self.by_key)))
        counts[: len(self.by_key)] += self.by_key
        self.by_key = counts
        self.rows += len(columns)
        self.count = here.stop

    def finish(self, initial: Sequence[int], *, numbers: bool) -> list[int]:
        """Sorts the operations by their keys, and makes the numbers dense.

        Args:
            initial: The initial state.
            numbers: Whether numbers represent values, and so may be changed.

        Returns:
            The initial state in the numbers of the columns.
        """
        if len(self.by_key) > 1:
            order = np.argsort(self._key[: self.count], kind="stable")
            for name in ("_f", "_a", "_b", "_s", "_e", "_key"):
                setattr(self, name, getattr(self, name)[: self.count][order])
        if not numbers:
            return list(initial)
        begin = np.array(initial, np.int64)
        columns = (self._a[: self.count], self._b[: self.count], begin)
        plain = [(column > _NIL) & (column < _TEXT) for column in columns]
        pairs = list(zip(columns, plain, strict=True))
        lowest = min(int(column.min(where=mask, initial=_TEXT)) for column, mask in pairs)
        greatest = max(int(column.max(where=mask, initial=_NIL)) for column, mask in pairs)
        if greatest < lowest:  # there is no integer at all
            lowest = greatest = 0
        for column in columns:
            column[column == _NIL] = lowest - 1
            texts = column >= _TEXT
            column[texts] += greatest + 1 - _TEXT
        numbered: list[int] = begin.tolist()
        return numbered

    def parts(self) -> list[KernelColumns]:
        """Returns the columns of each key, by the place of the key."""
        bounds = np.searchsorted(self._key[: self.count], np.arange(len(self.by_key) + 1)).tolist()
        return [
            KernelColumns(self._f[low:high], self._a[low:high], self._b[low:high], self._s[low:high], self._e[low:high])
            for low, high in pairwise(bounds)
        ]
