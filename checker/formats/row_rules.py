"""Holds the rows of a file to the rules of histories, from arrays: the twin of `checker.formats.pairing.hold_to_rules`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker.errors import Unsuited
from checker.formats.columns import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from checker.formats.columns import Columns

    Int64s = npt.NDArray[np.int64]

_SPARSE: Final = 8  # how many times more numbers than members a set may have to be an array of flags


class Rules:
    """Checks operations by the rules of `checker.formats.pairing.hold_to_rules`, and counts their events."""

    def __init__(self) -> None:
        self.events = 0
        self._run: str | None = None
        self._start = -1
        self._free: dict[int, int] = {}  # by process: the end of its last operation
        self._indexes: list[Int64s] = []  # the indexes of all events

    def add(self, columns: Columns, batch: pa.RecordBatch) -> None:
        """Checks the next operations.

        Raises:
            Unsuited: They break a rule, or are from several runs.
        """
        if not len(columns):
            return
        runs = pc.unique(batch.column("run")).to_pylist()
        if len(runs) != 1 or runs[0] is None or self._run not in {None, runs[0]}:
            raise Unsuited
        self._run = runs[0]
        completions = batch.column("complete_index")
        self.events += 2 * len(columns) - completions.null_count
        start = columns.start
        completed = pc.fill_null(completions.cast(pa.int64()), NEVER).to_numpy(zero_copy_only=False)
        ended = pc.fill_null(batch.column("end_ns").cast(pa.int64()), NEVER).to_numpy(zero_copy_only=False)
        rising = start[0] > self._start and bool((start[1:] > start[:-1]).all())
        if not rising or (completed <= start).any() or (ended < columns.start_ns).any():
            raise Unsuited
        self._start = int(start[-1])
        self._indexes += [start, completed[completed != NEVER]]
        order = np.argsort(columns.process, kind="stable")
        process, begin, end = columns.process[order], start[order], columns.end[order]
        first = np.concatenate([[True], process[1:] != process[:-1]])
        if (~first[1:] & (end[:-1] > begin[1:])).any():
            raise Unsuited
        last = np.concatenate([first[1:], [True]])
        for who, at in zip(process[first].tolist(), begin[first].tolist(), strict=True):
            if self._free.get(who, -1) > at:
                raise Unsuited
        self._free.update(zip(process[last].tolist(), end[last].tolist(), strict=True))

    def finish(self) -> None:
        """Makes the check that needs all operations.

        Raises:
            Unsuited: Two events have the same index.
        """
        if not _all_different(self._indexes):
            raise Unsuited


def _all_different(parts: Sequence[Int64s]) -> bool:
    """Returns whether numbers from 0 on are all different."""
    numbers = np.concatenate([np.zeros(0, np.int64), *parts])
    greatest = int(numbers.max(initial=0))
    if greatest >= _SPARSE * (len(numbers) + 1):
        return len(np.unique(numbers)) == len(numbers)
    seen = np.zeros(greatest + 1, np.bool_)  # cheaper than sorting
    seen[numbers] = True
    return int(np.count_nonzero(seen)) == len(numbers)
