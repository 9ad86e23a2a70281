"""Long histories in operations.parquet: read as arrays, without a Python object for each operation.

An operation becomes an object only if the result shows it; it is then read again. `read_table` returns None if arrays cannot
represent the model or the values, or if a row breaks a rule of histories and so needs an error with its place. Then the caller
uses objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from checker.decide.arrays import by_position
from checker.decide.coding import Coded
from checker.decide.excerpts import is_long, makers, of_key, part_of, previous_oks
from checker.decide.history import Excerpt
from checker.errors import Unsuited
from checker.explain.weakening import CONVENTION, READS_OF_NIL, silenced
from checker.formats.columns import FAIL, INFO, NOTHING, OK, ORDER, ColumnReader, batches_of
from checker.formats.parquet import open_parquet, read_rows_of
from checker.formats.row_rules import Rules
from checker.models import NativeModel
from harness.errors import LabrysError
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from checker._kernel import Outcome
    from checker.decide.coding import Arrays
    from checker.decide.deciding import CodedKey
    from checker.decide.question import Question
    from checker.formats.columns import Columns
    from checker.models import Model
    from checker.search.configurations import Known
    from harness.op import Operation

_TYPES: Final = {OpType.OK: OK, OpType.FAIL: FAIL, OpType.INFO: INFO}


class OfTable:
    """A history as arrays, whose operations are in a file; see `checker.decide.history.History`.

    Attributes:
        keys: The keys, in the order of the history.
        arrays: The history of each key, in the kernel's form.
        events: The number of events in the history.
        weakened: See `checker.explain.weakening.weakened`.
    """

    def __init__(
        self,
        path: Path,
        *,
        keys: Sequence[str | None],
        arrays: Sequence[Arrays],
        sizes: Sequence[int],
        events: int,
        weakened: Mapping[str, int],
    ) -> None:
        """Takes what was read, and the file."""
        self.keys, self.arrays, self.events, self.weakened = keys, arrays, events, weakened
        self._path, self._sizes = path, sizes

    def size(self, index: int) -> int:
        """See `History`."""
        return self._sizes[index]

    def coded(self, question: Question) -> Sequence[CodedKey]:
        """See `History`; the arrays are those of the model that the file was read for."""
        assert not question.needs_objects  # noqa: S101 - the caller reads objects for these
        return self.arrays

    def operations(self, index: int) -> Sequence[Operation]:
        """See `History`."""
        return of_key(self._path, self.keys[index])

    def named(self, wanted: Mapping[int, Sequence[int]]) -> Mapping[int, Known]:
        """See `History`; from one pass over the file."""
        return by_position(self.arrays, wanted, lambda invokes: read_rows_of(self._path, invokes))

    def previous_oks(self, ends: Mapping[int, int]) -> Mapping[int, Operation]:
        """See `History`; from one pass over four columns of the file."""
        return previous_oks(self._path, {index: (self.keys[index], end) for index, end in ends.items()})

    def excerpt(self, index: int, outcome: Outcome) -> Excerpt:
        """See `History`; of a long key, only the operations that the violation depends on."""
        path, key, arrays = self._path, self.keys[index], self.arrays[index]
        if outcome.op is None:
            return Excerpt(operations=())
        if not is_long(self._sizes[index]):
            return Excerpt(operations=of_key(path, key))
        few = part_of(path, arrays.part, outcome)
        return Excerpt(operations=few, is_part=True, makers=makers(path, key, few) if few else None)


def read_table(path: Path, name: str, model: Model) -> OfTable | None:
    """Reads a file of one run as arrays; None if it has several runs, or arrays cannot represent it.

    Raises:
        BadHistory: The file has another format.
    """
    if not isinstance(model, NativeModel):
        return None
    file = open_parquet(path, name=name)
    reader = ColumnReader(name)
    rules = Rules()
    weak = WeakRows(model)
    try:
        coded = Coded(model, reader, file.metadata.num_rows)
        # Only objects are checked against the system's own order.
        hints = [name for name in file.schema_arrow.names if name == ORDER]
        for batch, columns in batches_of(file, reader, more=["run", *hints]):
            if any(batch.column(name).null_count < len(batch) for name in hints):
                return None
            rules.add(columns, batch)
            weak.add(columns)
            coded.add(columns)
        rules.finish()
        arrays = coded.finish()
    except (Unsuited, LabrysError, ValueError, MemoryError):
        return None
    return OfTable(
        path,
        keys=reader.keys,
        arrays=arrays,
        sizes=coded.by_key.tolist(),
        events=rules.events,
        weakened=weak.counts(),
    )


class WeakRows:
    """Counts operations that conventions weaken, as `checker.explain.weakening.weakened` does."""

    def __init__(self, model: Model) -> None:
        """Starts without rows."""
        self._silenced = silenced(model)
        self._counts = dict.fromkeys(self._silenced, 0)

    def add(self, columns: Columns) -> None:
        """Adds the next rows."""
        for name in self._silenced:
            f, op_type = CONVENTION[name]
            if f not in columns.functions:
                continue
            chosen = (columns.function == list(columns.functions).index(f)) & (columns.type == _TYPES[op_type])
            if name == READS_OF_NIL:
                chosen &= columns.result.kind == NOTHING
            self._counts[name] += int(np.count_nonzero(chosen))

    def counts(self) -> dict[str, int]:
        """Returns the number of operations that each convention weakens, without zeros."""
        return {name: count for name, count in self._counts.items() if count}
