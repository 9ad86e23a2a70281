"""Encodes operations from arrays as the columns of the kernel, without a Python object for each operation.

There are two encoders, because neither can do the work of the other. This one takes time and memory for each row, and nothing
for each class of operations: a history of 10^7 unique values has as many classes. `checker.search.encode` asks the model in
Python for each class. So it takes any model, also of the user's own, any value and the system's own order, and it starts
without numpy, as the check of a short history must.

Both ask the model, which says beside its `code` how its rows are coded (`NativeModel.code_rows`). The columns are the same,
except for the numbers of values: these may differ, but equal values still have equal numbers. If arrays cannot represent an
operation, this encoder raises `Unsuited`, and the caller uses objects. It never drops or guesses anything.

An integer is its own number. Nil and other values get numbers beyond those of the integers. `Coded.finish` moves them next to
the integers, because the kernel is fastest with dense numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from checker._kernel import Problem
from checker.errors import Unsuited
from checker.formats.columns import GREAT, NEVER
from checker.models.base import Code, Numbers
from checker.models.rows import NIL, TEXT, Batch, Rows
from checker.near.necessary import lack_of
from checker.search.encode import Events
from checker.values import decode_value, json_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from checker.formats.columns import ColumnReader, Columns
    from checker.models.base import NativeModel
    from checker.near.necessary import Lack
    from checker.search.allowance import Allowance
    from harness.op import Value

    Int64s = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

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


class Arrays:
    """A history of a built-in model as arrays; see `checker.decide.deciding.CodedKey`.

    Attributes:
        part: The kernel's columns.
        initial: The initial state, in the kernel's form.
    """

    own = False

    def __init__(self, family: str, part: KernelColumns, initial: Sequence[int]) -> None:
        """Prepares with the kernel's name of the model, the columns, and the initial state in the kernel's form."""
        self._family = family
        self.part = part
        self.initial = initial
        self.problem = Problem(family, *part, initial=initial)

    def end(self, op: int) -> int:
        """See `checker.decide.deciding.CodedKey`."""
        return int(self.part.e[op])

    def lack(self) -> Lack | None:
        """See `checker.decide.deciding.CodedKey`."""
        return lack_of(self.events)

    @cached_property
    def events(self) -> Events:
        """See `checker.decide.deciding.CodedKey`."""
        f, a, b, s, e = self.part
        rows, members = np.unique(np.stack([f.astype(np.int64), a, b]), axis=1, return_inverse=True)
        return Events(
            family=self._family,
            classes=[Code(*row) for row in rows.T.tolist()],
            members=members.ravel().tolist(),
            starts=s.tolist(),
            ends=e.tolist(),
            initial=self.initial,
        )

    def before(self, end: int) -> tuple[Problem, Sequence[int]]:
        """See `checker.decide.deciding.CodedKey`."""
        kept = np.flatnonzero(self.part.s < end)
        f, a, b, s, e = (column[kept] for column in self.part)
        part = (f, a, b, s, np.where(e < end, e, NEVER))
        return Problem(self._family, *part, initial=self.initial), kept.tolist()

    def reason(self, op: int, allowance: Allowance) -> list[int] | None:  # noqa: ARG002 - only for a user's own model
        """See `checker.decide.deciding.CodedKey`."""
        return None


class Coder(Numbers):
    """Codes the operations of one model, batch by batch."""

    def __init__(self, model: NativeModel, reader: ColumnReader) -> None:
        """Prepares to code the batches of `reader`.

        Raises:
            Unsuited: The model has no coding from arrays.
        """
        if "code_rows" not in vars(type(model)):
            raise Unsuited
        super().__init__()
        self._model = model
        self._reader = reader

    def of(self, columns: Columns) -> Batch:
        """Returns a batch for the kernel.

        Raises:
            Unsuited: Arrays cannot represent an operation or a value.
        """
        batch = Batch(
            keep=np.zeros(len(columns), np.bool_),
            f=np.zeros(len(columns), np.uint8),
            a=np.zeros(len(columns), np.int64),
            b=np.zeros(len(columns), np.int64),
        )
        for function in np.unique(columns.function).tolist():
            self._model.code_rows(str(columns.functions[function]), Rows(columns, function, batch, self.pairs_at))
        return batch

    def initial(self) -> list[int]:
        """Returns the initial state.

        Raises:
            Unsuited: Arrays cannot represent it.
        """
        return self._model.initial_code(self if self._model.numbers_values else self._model.numbers())

    def __call__(self, value: Value) -> int:
        """Returns the number of one value.

        Raises:
            Unsuited: It is a pair of integers, which has two codings.
        """
        if value is None:
            return NIL
        if type(value) is int and abs(value) < GREAT:
            return value
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        if is_list and len(value) == 2 and all(type(member) is int for member in value):
            raise Unsuited
        text = json_text(value) or ""
        return TEXT + self._reader.place_of(text)

    def pairs_at(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """Returns the numbers of both members of values, by their places in the texts.

        Raises:
            Unsuited: One is no pair.
        """
        texts = self._reader.texts
        pairs = []
        for index in places:
            value = decode_value(texts[index])
            if not isinstance(value, list) or len(value) != 2:
                raise Unsuited
            pairs.append((self(value[0]), self(value[1])))
        return pairs

    def check_texts(self) -> None:
        """Checks all texts at the end.

        Raises:
            Unsuited: Two texts may be the same value.
        """
        if any(_NEGATIVE_ZERO in text for text in self._reader.texts):
            raise Unsuited


class Coded:
    """The kernel's columns of a whole history, filled batch by batch: at most 37 bytes for each operation.

    Attributes:
        count: The number of operations in the columns.
        by_key: By the place of a key, the number of its operations, with those that do not matter to the verdict.
    """

    def __init__(self, model: NativeModel, reader: ColumnReader, rows: int) -> None:
        """Allocates columns for the operations of a model, at most so many.

        Raises:
            Unsuited: Arrays cannot represent the model.
        """
        self._model = model
        self._coder = Coder(model, reader)
        self._initial = self._coder.initial()
        self.count = 0
        self.by_key = np.zeros(0, np.int64)
        self._f = np.zeros(rows, np.uint8)
        self._a, self._b, self._s, self._e = (np.zeros(rows, np.int64) for _ in range(4))
        self._key = np.zeros(rows, np.int32)

    def add(self, columns: Columns) -> None:
        """Adds a batch.

        Raises:
            Unsuited: See `Coder.of`.
        """
        batch = self._coder.of(columns)
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
        self.count = here.stop

    def finish(self) -> list[Arrays]:
        """Sorts the operations by their keys, and makes the numbers dense.

        Returns:
            The history of each key, by the place of the key.

        Raises:
            Unsuited: Two texts may be the same value.
        """
        self._coder.check_texts()
        if len(self.by_key) > 1:
            order = np.argsort(self._key[: self.count], kind="stable")
            for name in ("_f", "_a", "_b", "_s", "_e", "_key"):
                setattr(self, name, getattr(self, name)[: self.count][order])
        initial = self._dense() if self._model.numbers_values else list(self._initial)
        bounds = np.searchsorted(self._key[: self.count], np.arange(len(self.by_key) + 1)).tolist()
        f, a, b, s, e = self._f, self._a, self._b, self._s, self._e
        return [
            Arrays(self._model.family, KernelColumns(f[i:j], a[i:j], b[i:j], s[i:j], e[i:j]), initial)
            for i, j in pairwise(bounds)
        ]

    def _dense(self) -> list[int]:
        """Moves the numbers of nil and of texts next to the integers; returns the initial state in these numbers."""
        begin = np.array(self._initial, np.int64)
        columns = (self._a[: self.count], self._b[: self.count], begin)
        plain = [(column > NIL) & (column < TEXT) for column in columns]
        pairs = list(zip(columns, plain, strict=True))
        lowest = min(int(column.min(where=mask, initial=TEXT)) for column, mask in pairs)
        greatest = max(int(column.max(where=mask, initial=NIL)) for column, mask in pairs)
        if greatest < lowest:  # there is no integer at all
            lowest = greatest = 0
        for column in columns:
            column[column == NIL] = lowest - 1
            texts = column >= TEXT
            column[texts] += greatest + 1 - TEXT
        numbered: list[int] = begin.tolist()
        return numbered
