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


def previous_oks(path: Path, ends: Mapping[int, tuple[str | None, int]]) -> dict[int, Operation]:
    """Returns the last operation of each of some keys that returned ok before an event.

    Args:
        path: The file.
        ends: Of each key, by its place in the result: the key, and the index of the event.
    """
    places = list(ends)
    keys = pa.array([ends[index][0] for index in places], pa.string())
    limits = np.array([ends[index][1] for index in places], np.int64)
    last = np.full(len(places), -1, np.int64)  # the completion of each found operation
    invokes = np.full(len(places), -1, np.int64)
    columns = ["key", "type", "invoke_index", "complete_index"]
    for batch in open_parquet(path).iter_batches(columns=columns) if places else ():
        of_key = pc.index_in(batch.column("key").cast(pa.string()), value_set=keys)
        is_ok = pc.equal(batch.column("type").cast(pa.string()), "ok")
        chosen = batch.filter(pc.fill_null(pc.and_(pc.is_valid(of_key), is_ok), fill_value=False))
        if not chosen.num_rows:
            continue
        number = pc.index_in(chosen.column("key").cast(pa.string()), value_set=keys).to_numpy(zero_copy_only=False)
        completed = chosen.column("complete_index").to_numpy(zero_copy_only=False)
        invoked = chosen.column("invoke_index").to_numpy(zero_copy_only=False)
        early = np.flatnonzero(completed < limits[number])
        in_order = early[np.argsort(completed[early])]
        of_batch = np.full(len(places), -1, np.int64)
        of_batch[number[in_order]] = in_order  # of each key, the last one stays
        better = np.flatnonzero((of_batch >= 0) & (completed[of_batch] > last))
        last[better], invokes[better] = completed[of_batch[better]], invoked[of_batch[better]]
    by_invoke = {op.invoke_index: op for op in read_rows_of(path, np.sort(invokes[invokes >= 0]))}
    return {index: by_invoke[int(invoke)] for index, invoke in zip(places, invokes, strict=True) if invoke >= 0}


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
    rows = np.sort(np.concatenate(indexes))
    return read_rows_of(path, rows) if len(rows) <= OBJECTS else None


def _that_make(columns: Columns, reader: ColumnReader, wanted: Mapping[Hashable, Value]) -> npt.NDArray[np.bool_]:
    """Returns which operations write or add one of these values; a compare-and-set writes its second argument."""
    integers = np.array([value for value in wanted.values() if type(value) is int and abs(value) < GREAT], np.int64)
    texts = [reader.place_of(text) for value in wanted.values() if (text := json_text(value)) is not None]
    kind, first, second = columns.value.kind, columns.value.first, columns.value.second
    swaps = np.isin(columns.function, [index for index, f in enumerate(columns.functions) if f == "cas"])
    made = (kind == INTEGER) & np.isin(first, integers) | (kind == OTHER) & np.isin(first, texts)
    if None in wanted:
        made |= kind == NOTHING
    known = reader.texts
    pairs = []
    for index in np.unique(first[swaps & (kind == OTHER)]).tolist():
        value = decode_value(known[index])
        if isinstance(value, list) and len(value) == 2 and identity(value[1]) in wanted:
            pairs.append(index)
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
