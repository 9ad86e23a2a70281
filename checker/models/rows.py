"""The rows of a batch of arrays that a model codes for the kernel; see `NativeModel.code_rows`.

An integer is its own number. Nil and other values get numbers beyond those of the integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.errors import Unsuited
from checker.formats.columns import FAIL, INTEGER, NOTHING, OK, OTHER, PAIR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    from checker.formats.columns import ColumnOfValues, Columns

    Int64s = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]
    Flags = npt.NDArray[np.bool_]
    PairsAt: TypeAlias = Callable[[Sequence[int]], Sequence[tuple[int, int]]]

NIL: Final = -(1 << 62)
TEXT: Final = 1 << 61  # added to the place of a value's text


@dataclass(frozen=True, slots=True)
class Batch:
    """The columns of some operations for the kernel, and which of them matter to the verdict."""

    keep: Flags
    f: Bytes
    a: Int64s
    b: Int64s


class Rows:
    """The operations of one function in a batch, for a model that codes them; arrays have an entry for each row of the batch.

    Attributes:
        possible: Rows of operations that may have happened: they did not fail.
        ok: Rows of operations that returned ok.
        failed: Rows of operations that failed.
        without_result: Rows of any function whose result is nil.
        argument: The arguments.
        result: The results.
    """

    def __init__(self, columns: Columns, function: int, batch: Batch, pairs_at: PairsAt) -> None:
        """Selects the operations of a function.

        Args:
            columns: The batch.
            function: The place of the function in `columns.functions`.
            batch: The columns to fill.
            pairs_at: Returns the numbers of both members of values, by their places in the texts.
        """
        chosen = columns.function == function
        self.failed = chosen & (columns.type == FAIL)
        self.possible = chosen & (columns.type != FAIL)
        self.ok = chosen & (columns.type == OK)
        self.without_result = columns.result.kind == NOTHING
        self.argument = columns.value
        self.result = columns.result
        self._process = columns.process
        self._batch = batch
        self._pairs_at = pairs_at

    def put(self, rows: Flags, opcode: int, a: Int64s | int = 0, b: Int64s | int = 0) -> None:
        """Codes some rows; `a` and `b` have an entry for each of them."""
        batch = self._batch
        batch.keep[rows] = True
        batch.f[rows], batch.a[rows], batch.b[rows] = opcode, a, b

    def numbers(self, values: ColumnOfValues, rows: Flags) -> Int64s:
        """Returns the numbers of the values of some rows.

        Raises:
            Unsuited: One is a pair of integers, which has two codings.
        """
        kind, first = values.kind[rows], values.first[rows]
        if (kind == PAIR).any():
            raise Unsuited
        numbers = first.copy()
        numbers[kind == NOTHING] = NIL
        numbers[kind == OTHER] += TEXT
        return numbers

    def pairs(self, values: ColumnOfValues, rows: Flags) -> tuple[Int64s, Int64s]:
        """Returns the numbers of both members of the values of some rows.

        Raises:
            Unsuited: A value is no pair.
        """
        kind, first, second = values.kind[rows], values.first[rows].copy(), values.second[rows].copy()
        if ((kind == NOTHING) | (kind == INTEGER)).any():
            raise Unsuited
        others = np.flatnonzero(kind == OTHER)
        if len(others):
            places, codes = np.unique(first[others], return_inverse=True)
            pairs = np.array(self._pairs_at(places.tolist()), np.int64)
            first[others], second[others] = pairs[codes, 0], pairs[codes, 1]
        return first, second

    def integers(self, values: ColumnOfValues, rows: Flags, *, absent: int | None = None) -> Int64s:
        """Returns the values of some rows, which are integers; `absent` stands for nil.

        Raises:
            Unsuited: One is something else.
        """
        kind, first = values.kind[rows], values.first[rows]
        nothing = kind == NOTHING
        if ((kind != INTEGER) & ~nothing).any() or (absent is None and nothing.any()):
            raise Unsuited
        return first if absent is None else np.where(nothing, absent, first)

    def processes(self, rows: Flags) -> Int64s:
        """Returns the processes of some rows."""
        return self._process[rows]
