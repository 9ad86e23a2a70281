"""Histories that were read as arrays: an operation becomes an object only if the result shows it.

If arrays cannot represent the model, the values or the question, all operations become objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from checker.decide.coding import Coded
from checker.decide.history import Excerpt, OfObjects, previous_oks
from checker.errors import Unsuited
from checker.models import NativeModel
from harness.errors import LabrysError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checker._kernel import Outcome
    from checker.decide.coding import Arrays, Int64s
    from checker.decide.deciding import CodedKey
    from checker.decide.question import Question
    from checker.formats.plain import Plain
    from checker.models import Model
    from checker.search.configurations import Known
    from harness.op import Operation


class OfPlain:
    """A history in text that was read as arrays; see `checker.decide.history.History`."""

    def __init__(self, plain: Plain) -> None:
        """Takes the arrays."""
        self._plain = plain
        self._columns = plain.columns
        self._sizes = np.bincount(self._columns.key, minlength=len(self._columns.keys)).tolist()
        self._arrays: Sequence[Arrays] = ()
        self._objects: OfObjects | None = None

    @property
    def keys(self) -> Sequence[str | None]:
        """See `History`."""
        return self._columns.keys

    def size(self, index: int) -> int:
        """See `History`."""
        return int(self._sizes[index])

    def coded(self, question: Question) -> Sequence[CodedKey]:
        """See `History`."""
        arrays = None if question.needs_objects else self._coded(question.model)
        if arrays is not None:
            self._arrays = arrays
            return arrays
        self._objects = OfObjects.of(self._plain.operations)
        return self._objects.coded(question)

    def _coded(self, model: Model) -> Sequence[Arrays] | None:
        """Returns the columns from arrays; None if these cannot represent the history."""
        # Only objects are checked against the system's own order.
        if not isinstance(model, NativeModel) or self._plain.operations.has_order:
            return None
        try:
            coded = Coded(model, self._plain.names, len(self._columns))
            coded.add(self._columns)
            return coded.finish()
        except (Unsuited, LabrysError, MemoryError):
            return None

    def operations(self, index: int) -> Sequence[Operation]:
        """See `History`."""
        return self._plain.operations.at(np.flatnonzero(self._columns.key == index))

    def named(self, wanted: Mapping[int, Sequence[int]]) -> Mapping[int, Known]:
        """See `History`."""
        return (
            by_position(self._arrays, wanted, self._of_invokes)
            if self._objects is None
            else self._objects.named(wanted)
        )

    def _of_invokes(self, invokes: Int64s) -> Sequence[Operation]:
        return self._plain.operations.at(np.flatnonzero(np.isin(self._columns.start, invokes)))

    def previous_oks(self, ends: Mapping[int, int]) -> Mapping[int, Operation]:
        """See `History`."""
        return previous_oks(ends, self.operations)

    def excerpt(self, index: int, outcome: Outcome) -> Excerpt:
        """See `History`."""
        return (
            Excerpt(operations=self.operations(index))
            if self._objects is None
            else self._objects.excerpt(index, outcome)
        )


def by_position(
    arrays: Sequence[Arrays], wanted: Mapping[int, Sequence[int]], read: Callable[[Int64s], Sequence[Operation]]
) -> Mapping[int, Known]:
    """Returns operations by the place of their key and by their position in its columns.

    Args:
        arrays: The columns of all keys.
        wanted: The positions, by the place of their key.
        read: Returns the operations of some invokes, in ascending order.
    """
    invokes = {index: arrays[index].part.s[list(positions)] for index, positions in wanted.items()}
    every = np.unique(np.concatenate([np.zeros(0, np.int64), *invokes.values()]))
    by_invoke = {op.invoke_index: op for op in read(every)} if len(every) else {}
    return {
        index: dict(zip(positions, map(by_invoke.__getitem__, invokes[index].tolist()), strict=True))
        for index, positions in wanted.items()
    }
