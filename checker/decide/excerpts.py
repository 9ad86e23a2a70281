"""Reads from operations.parquet what the explanation of an invalid key needs: its operations, or those that matter.

Up to `OBJECTS` operations before a failure become objects. Of a longer history, only those that the failure depends on do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker.explain.contradictions import MAKERS, observed
from checker.formats.columns import BATCH_ROWS, GREAT, INTEGER, NEEDED, NEVER, NOTHING, OTHER, PAIR, ColumnReader
from checker.formats.parquet import open_parquet, read_rows_of
from checker.identity import identity
from checker.models.opcodes import CAS, CAS_FAIL, DEQUEUE, ENQUEUE, OBSERVERS, WRITE
from checker.values import decode_value, json_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from checker._kernel import Outcome
    from checker.decide.coding import KernelColumns
    from checker.formats.columns import Columns
    from harness.op import Operation, Value

    Int64s = npt.NDArray[np.int64]

OBJECTS: Final = 100_000
_CLOSURE_ROUNDS: Final = 64
_MAKERS: Final = (WRITE, CAS, ENQUEUE, DEQUEUE)


def is_long(operations: int) -> bool:
    """Returns whether a key has too many operations for objects."""
    return operations > OBJECTS


def previous_ok(path: Path, key: str | None, end: int) -> Operation | None:
    """Returns the last operation of a key that returned ok before an event."""
    invoke, completion = -1, -1
    for batch in open_parquet(path).iter_batches(columns=["key", "type", "invoke_index", "complete_index"]):
        keys, types, _, completions = batch.columns
        same = pc.is_null(keys) if key is None else pc.equal(keys.cast(pa.string()), key)
        mask = pc.and_(pc.and_(same, pc.equal(types.cast(pa.string()), "ok")), pc.less(completions, end))
        wanted = batch.filter(pc.fill_null(mask, fill_value=False))
        if wanted.num_rows:
            ends = wanted.column("complete_index").to_numpy()
            row = int(np.argmax(ends))
            if ends[row] > completion:
                invoke, completion = wanted.column("invoke_index")[row].as_py(), int(ends[row])
    if completion < 0:
        return None
    [found] = read_rows_of(path, np.array([invoke], np.int64))
    return found


def of_key(path: Path, key: str | None) -> list[Operation]:
    """Returns all operations of a key."""
    indexes = [np.zeros(0, np.int64)]
    for batch in open_parquet(path).iter_batches(columns=["key", "invoke_index"]):
        keys, invokes = batch.columns
        same = pc.is_null(keys) if key is None else pc.equal(keys.cast(pa.string()), key)
        indexes.append(invokes.filter(pc.fill_null(same, fill_value=False)).to_numpy())
    return read_rows_of(path, np.concatenate(indexes))


def makers(path: Path, key: str | None, few: Sequence[Operation]) -> list[Operation] | None:
    """Returns the operations of a key that write or add a value that some operations observed, also failed ones.

    They are None if they are too many for objects.
    """
    wanted = {identity(value): value for op in few for value in observed(op)}
    reader = ColumnReader(str(path))
    indexes = [np.zeros(0, np.int64)]
    for batch in open_parquet(path).iter_batches(batch_size=BATCH_ROWS, columns=list(NEEDED)):
        keys, functions = batch.column("key"), batch.column("f").cast(pa.string())
        same = pc.is_null(keys) if key is None else pc.equal(keys.cast(pa.string()), key)
        makes = pc.is_in(functions, value_set=pa.array([*MAKERS, "cas"]))
        columns = reader.of_batch(batch.filter(pc.fill_null(pc.and_(same, makes), fill_value=False)))
        indexes.append(columns.start[_that_make(columns, reader, wanted)])
    found = np.sort(np.concatenate(indexes))
    return read_rows_of(path, found) if len(found) <= OBJECTS else None


def _that_make(columns: Columns, reader: ColumnReader, wanted: Mapping[Hashable, Value]) -> npt.NDArray[np.bool_]:
    """Returns which operations write or add one of these values; a compare-and-set writes its second argument."""
    integers = np.array([value for value in wanted.values() if type(value) is int and abs(value) < GREAT], np.int64)
    texts = [reader.place_of(text) for value in wanted.values() if (text := json_text(value)) is not None]
    kind, first, second = columns.value.kind, columns.value.first, columns.value.second
    swaps = np.isin(columns.function, [place for place, f in enumerate(columns.functions) if f == "cas"])
    made = (kind == INTEGER) & np.isin(first, integers) | (kind == OTHER) & np.isin(first, texts)
    if None in wanted:
        made |= kind == NOTHING
    known = reader.texts
    pairs = []
    for place in np.unique(first[swaps & (kind == OTHER)]).tolist():
        value = decode_value(known[place])
        if isinstance(value, list) and len(value) == 2 and identity(value[1]) in wanted:
            pairs.append(place)
    swapped = (kind == PAIR) & np.isin(second, integers) | (kind == OTHER) & np.isin(first, pairs)
    chosen: npt.NDArray[np.bool_] = np.where(swaps, swapped, made)
    return chosen


def part_of(path: Path, part: KernelColumns, outcome: Outcome) -> list[Operation]:
    """Returns the operations of `likely_invalid`."""
    rows = likely_invalid(part, outcome)
    return read_rows_of(path, np.sort(part.s[rows])) if len(rows) else []


def likely_invalid(part: KernelColumns, outcome: Outcome) -> Int64s:
    """Returns rows of a key that are likely to be invalid by themselves, at most `OBJECTS`; none if there are more."""
    op = outcome.op
    end = NEVER if op is None else int(part.e[op])
    rows = np.flatnonzero(part.s <= end)
    if len(rows) > OBJECTS:
        rows = _closure(part, rows, outcome.core)
    return rows if len(rows) <= OBJECTS else rows[:0]


def _closure(part: KernelColumns, rows: Int64s, core: Sequence[int]) -> Int64s:
    """Returns some operations, and all that their observed values come from; none if values cannot determine these."""
    f, a, b = part.f[rows], part.a[rows], part.b[rows]
    if not core or (f == CAS_FAIL).any():
        return rows[:0]
    made = np.isin(f, _MAKERS)
    value = np.where(f == CAS, b, a)
    chosen = np.isin(rows, np.array(core)) | ~(made | np.isin(f, list(OBSERVERS)))
    for _ in range(_CLOSURE_ROUNDS):
        if np.count_nonzero(chosen) > OBJECTS:
            return rows[:0]
        values = np.unique(np.concatenate([a[chosen], b[chosen & (f == CAS)]]))
        more = chosen | (made & np.isin(value, values))
        if np.array_equal(more, chosen):
            return rows[chosen]
        chosen = more
    return rows[:0]
