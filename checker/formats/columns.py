"""Reads operations.parquet as arrays of integers, without a Python object for each operation.

Every array has one entry for each row, in the order of the file, with the content of `parquet.read_operations`. Texts are
numbers here: keys and functions are positions in a list. Values keep their kind: an integer is itself, a pair of integers, as
in a cas, is its two members, and any other value is a position in a list of the distinct values.

The reader works batch by batch, so besides the arrays only one row group is in memory. `of_batch` takes a batch from any
source, such as Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker.formats.counts import hold_row_count
from checker.formats.errors import BadHistory
from checker.formats.parquet import COLUMNS, values_of
from checker.values import decode_value, json_text
from harness.op import FINAL_PHASE, OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from harness.op import Operation, Value

    Int64s = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]
    Int8s = npt.NDArray[np.int8]
    Bools = npt.NDArray[np.bool_]

NOTHING: Final = 0
INTEGER: Final = 1
PAIR: Final = 2
OTHER: Final = 3

OK: Final = 0
FAIL: Final = 1
INFO: Final = 2

NEVER: Final = 2**63 - 1

_TYPES: Final = {str(OpType.OK): OK, str(OpType.FAIL): FAIL, str(OpType.INFO): INFO}
BATCH_ROWS: Final = 1 << 17
GREAT: Final = 10**18
_INTEGER: Final = r"^(0|-?[1-9][0-9]{0,17})$"
_PAIR: Final = r"^\[(?P<first>0|-?[1-9][0-9]{0,17}),(?P<second>0|-?[1-9][0-9]{0,17})\]$"
_LONGEST: Final = 18
_OF_INTEGERS: Final = np.isin(np.arange(256), list(b"0123456789-,"))
ORDER: Final = "order"  # columns that a file may lack
PHASE: Final = "phase"
OPTIONAL: Final = (ORDER, PHASE)
NEEDED: Final = (
    "key",
    "process",
    "f",
    "type",
    "start_ns",
    "end_ns",
    "value",
    "result",
    "invoke_index",
    "complete_index",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOfValues:
    """The values of a column.

    Attributes:
        kind: `NOTHING`, `INTEGER`, `PAIR` or `OTHER`.
        first: The integer, the first of the pair, or the place in `Columns.texts`; 0 for no value.
        second: The second of the pair; else 0.
    """

    kind: Int8s
    first: Int64s
    second: Int64s

    def only(self, rows: Int64s) -> ColumnOfValues:
        """Returns the values of some rows."""
        return ColumnOfValues(kind=self.kind[rows], first=self.first[rows], second=self.second[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The numbers that the system itself gave to operations.

    Attributes:
        known: Whether an operation has one.
        number: The number; 0 for none.
    """

    known: npt.NDArray[np.bool_]
    number: Int64s

    def only(self, rows: Int64s) -> Order:
        """Returns the numbers of some rows."""
        return Order(known=self.known[rows], number=self.number[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Operations as arrays.

    Attributes:
        keys: The distinct keys, in the order of their first rows; None for operations without a key.
        functions: The distinct functions, likewise.
        texts: The canonical JSON of the distinct values of kind `OTHER`; the kernel's transactions if the values are such.
        key: The place in `keys`.
        function: The place in `functions`.
        type: `OK`, `FAIL` or `INFO`.
        process: The number of the process.
        start: The invoke's index.
        end: The completion's index; `NEVER` for an operation that may have happened at any later time.
        start_ns: The invoke's time.
        end_ns: The completion's time; -1 without one.
        value: The arguments.
        result: The results.
        lacks: What the history does not tell: `process`, `realtime`. Then the columns for it have made-up values.
        order: The system's own numbers; None if no operation has one.
        final: Whether an operation is one of the final phase, after healing; None if none is.
    """

    keys: Sequence[str | None]
    functions: Sequence[str]
    texts: Sequence[str]
    key: Int32s
    function: Int32s
    type: Int8s
    process: Int64s
    start: Int64s
    end: Int64s
    start_ns: Int64s
    end_ns: Int64s
    value: ColumnOfValues
    result: ColumnOfValues
    lacks: Sequence[str] = ()
    order: Order | None = None
    final: Bools | None = None

    def __len__(self) -> int:
        return len(self.start)

    def rows_by_key(self) -> Iterator[tuple[str | None, Int64s]]:
        """Yields each key with the numbers of its rows, ascending."""
        order = np.argsort(self.key, kind="stable")
        bounds = np.searchsorted(self.key[order], np.arange(len(self.keys) + 1))
        for index, key in enumerate(self.keys):
            yield key, order[bounds[index] : bounds[index + 1]]

    def only(self, rows: Int64s) -> Columns:
        """Returns some rows; the numbers of keys, functions and texts do not change."""
        return Columns(
            keys=self.keys,
            functions=self.functions,
            texts=self.texts,
            key=self.key[rows],
            function=self.function[rows],
            type=self.type[rows],
            process=self.process[rows],
            start=self.start[rows],
            end=self.end[rows],
            start_ns=self.start_ns[rows],
            end_ns=self.end_ns[rows],
            value=self.value.only(rows),
            result=self.result.only(rows),
            lacks=self.lacks,
            order=None if self.order is None else self.order.only(rows),
            final=None if self.final is None else self.final[rows],
        )


class ColumnReader:
    """Converts batches to columns; the numbers of keys, functions and texts are the same in all of them.

    Attributes:
        name: The name of the source in errors.
    """

    def __init__(self, name: str) -> None:
        """Starts without batches."""
        self.name = name
        self._keys: dict[str | None, int] = {}
        self._functions: dict[str | None, int] = {}
        self._texts: dict[str | None, int] = {}
        self._rows = 0

    def of_batch(
        self, batch: pa.RecordBatch, *, value: ColumnOfValues | None = None, result: ColumnOfValues | None = None
    ) -> Columns:
        """Returns the columns of one batch, which must have the columns `NEEDED`, or else `value` and `result`.

        It may have the columns `OPTIONAL`.

        Raises:
            BadHistory: A row is not an operation; its number counts from 1 over all batches.
        """
        for name in ("process", "f", "type", "start_ns", "invoke_index"):
            self._refuse_any(pc.is_null(batch.column(name)), f"expected a value in column {name!r}, found null")
        for name in ("process", "start_ns", "end_ns", "invoke_index", "complete_index"):
            below = pc.less(batch.column(name).cast(pa.int64()), 0)
            self._refuse_any(below, f"expected a number from 0 to 2^63 - 1 in column {name!r}")
        types = _plain(batch.column("type"))
        known = pc.index_in(types, value_set=pa.array(list(_TYPES)))
        self._refuse_any(pc.is_null(known), "expected a type ok, fail or info")
        kinds = _int64(known).astype(np.int8)
        ends = batch.column("complete_index")
        returned = kinds != INFO
        self._refuse_any(pc.and_(pc.is_null(ends), pa.array(returned)), "expected a complete_index")
        end = np.where(returned, _int64(ends, NEVER), NEVER)
        columns = Columns(
            key=self._places(batch.column("key"), self._keys),
            function=self._places(batch.column("f"), self._functions),
            type=kinds,
            process=_int64(batch.column("process")),
            start=_int64(batch.column("invoke_index")),
            end=end,
            start_ns=_int64(batch.column("start_ns")),
            end_ns=_int64(batch.column("end_ns"), -1),
            value=self._values(batch.column("value")) if value is None else value,
            result=self._values(batch.column("result")) if result is None else result,
            keys=self.keys,
            functions=self.functions,
            texts=self.texts,
            order=_order(batch),
            final=_final(batch),
        )
        self._rows += batch.num_rows
        return columns

    @property
    def keys(self) -> list[str | None]:
        """Returns the keys so far."""
        return list(self._keys)

    @property
    def functions(self) -> list[str]:
        """Returns the functions so far."""
        return [str(name) for name in self._functions]

    @property
    def texts(self) -> list[str]:
        """Returns the texts so far."""
        return [str(text) for text in self._texts]

    def keys_at(self, codes: Int32s, names: Sequence[str]) -> Int32s:
        """Returns the places of keys, given by their places in a list of names; -1 for operations without a key."""
        return _numbered(codes, names, self._keys)

    def functions_at(self, codes: Int32s, names: Sequence[str]) -> Int32s:
        """Returns the places of functions, given by their places in a list of names."""
        return _numbered(codes, names, self._functions)

    def typed(self, value: Value) -> tuple[int, int, int]:
        """Returns the kind of a value and its two numbers, as in `ColumnOfValues`; the text of a new value is added.

        Raises:
            InputError: JSON cannot represent it.
        """
        if value is None:
            return NOTHING, 0, 0
        if type(value) is int and abs(value) < GREAT:
            return INTEGER, value, 0
        if (
            isinstance(value, list | tuple)
            and len(value) == 2
            and all(type(m) is int and abs(m) < GREAT for m in value)
        ):
            return PAIR, value[0], value[1]
        return OTHER, self.place_of(json_text(value) or ""), 0

    def of_values(self, values: Iterable[Value]) -> ColumnOfValues:
        """Returns values as a column."""
        typed = np.array([self.typed(value) for value in values], np.int64).reshape(-1, 3)
        return ColumnOfValues(kind=typed[:, 0].astype(np.int8), first=typed[:, 1].copy(), second=typed[:, 2].copy())

    def place_of(self, text: str) -> int:
        """Returns the place in `texts` of a value's canonical JSON; a new text is added."""
        return self._texts.setdefault(text, len(self._texts))

    def _refuse_any(self, wrong: pa.Array, reason: str) -> None:
        row = pc.index(wrong, value=True).as_py()
        if row >= 0:
            raise BadHistory(self.name, None, f"row {self._rows + row + 1}: {reason}")

    def _places(self, column: pa.Array, known: dict[str | None, int]) -> Int32s:
        encoded = column if isinstance(column, pa.DictionaryArray) else column.cast(pa.string()).dictionary_encode()
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        return _numbered(codes, encoded.dictionary.to_pylist(), known)

    def _values(self, column: pa.Array) -> ColumnOfValues:
        texts = _plain(column)
        kind = np.full(len(texts), OTHER, np.int8)
        first = np.zeros(len(texts), np.int64)
        second = np.zeros(len(texts), np.int64)
        nothing = _bool(pc.is_null(texts))
        kind[nothing] = NOTHING
        whole = _bool(pc.match_substring_regex(texts, _INTEGER))
        kind[whole] = INTEGER
        first[whole] = _int64(texts.filter(pa.array(whole)).cast(pa.int64()))
        left = ~(nothing | whole)
        if left.any():
            pairs = pc.extract_regex(texts, _PAIR)
            both = _bool(pc.is_valid(pairs)) & left
            kind[both] = PAIR
            members = pairs.filter(pa.array(both))
            first[both] = _int64(members.field("first").cast(pa.int64()))
            second[both] = _int64(members.field("second").cast(pa.int64()))
            left &= ~both
            kind[left], first[left], second[left] = self._others(texts.filter(pa.array(left)))
        return ColumnOfValues(kind=kind, first=first, second=second)

    def _others(self, texts: pa.Array) -> tuple[Int8s, Int64s, Int64s]:
        """Reads values that are not integers or pairs; makes one Python object for each distinct text."""
        encoded = texts.dictionary_encode()
        kinds = np.full(len(encoded.dictionary), OTHER, np.int8)
        first, second = np.zeros(len(kinds), np.int64), np.zeros(len(kinds), np.int64)
        for index, text in enumerate(encoded.dictionary.to_pylist()):
            try:
                value = decode_value(text)
            except ValueError as error:
                row = pc.index(encoded.indices, value=index).as_py()
                raise BadHistory(self.name, None, f"after row {self._rows + row}: {error}") from None
            kinds[index], first[index], second[index] = self.typed(value)  # an integer in another form, e.g. -0
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return kinds[codes], first[codes], second[codes]


def batches_of(
    file: Any, reader: ColumnReader, *, more: Sequence[str] = ()
) -> Iterator[tuple[pa.RecordBatch, Columns]]:
    """Yields the rows of a file batch by batch, as they are and as columns.

    Args:
        file: A file that `open_parquet` has opened.
        reader: Makes the columns; its name is the file's in errors.
        more: The columns of the file that the batches have besides `NEEDED`.

    Raises:
        BadHistory: A row is not an operation, or the file breaks off.
    """
    rows = 0
    try:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=[*NEEDED, *more]):
            yield batch, reader.of_batch(batch)
            rows += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadHistory(reader.name, None, f"the file cannot be read: {error}") from error
    hold_row_count(reader.name, file.metadata, rows)


def of_operations(operations: Sequence[Operation], name: str = "the history") -> Columns:
    """Returns operations as columns, row by row.

    Args:
        operations: The operations of clients.
        name: Their name in errors.
    """
    reader = ColumnReader(name)
    kinds = {column.name: pa.int64() if column.kind == "int64" else pa.string() for column in COLUMNS}
    optional = [name for name in OPTIONAL if any(getattr(operation, name) is not None for operation in operations)]
    names = [*(column for column in NEEDED if column not in {"value", "result"}), *optional]
    parts = []
    for begin in range(0, len(operations), BATCH_ROWS):
        some = operations[begin : begin + BATCH_ROWS]
        arrays = [pa.array(values_of(some, column), kinds[column]) for column in names]
        value = reader.of_values(operation.value for operation in some)
        result = reader.of_values(operation.result for operation in some)
        parts.append(reader.of_batch(pa.RecordBatch.from_arrays(arrays, names=names), value=value, result=result))
    return joined(parts, reader)


def joined(parts: Sequence[Columns], reader: ColumnReader) -> Columns:
    """Returns the columns of several batches of one reader as one."""

    def join(arrays: Iterable[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
        listed = list(arrays)
        return np.concatenate(listed) if listed else np.zeros(0, kind)

    def join_values(values: Sequence[ColumnOfValues]) -> ColumnOfValues:
        return ColumnOfValues(
            kind=join((part.kind for part in values), np.int8),
            first=join((part.first for part in values), np.int64),
            second=join((part.second for part in values), np.int64),
        )

    return Columns(
        keys=reader.keys,
        functions=reader.functions,
        texts=reader.texts,
        key=join((part.key for part in parts), np.int32),
        function=join((part.function for part in parts), np.int32),
        type=join((part.type for part in parts), np.int8),
        process=join((part.process for part in parts), np.int64),
        start=join((part.start for part in parts), np.int64),
        end=join((part.end for part in parts), np.int64),
        start_ns=join((part.start_ns for part in parts), np.int64),
        end_ns=join((part.end_ns for part in parts), np.int64),
        value=join_values([part.value for part in parts]),
        result=join_values([part.result for part in parts]),
        order=_joined_order(parts),
        final=_joined_final(parts),
    )


def _joined_order(parts: Sequence[Columns]) -> Order | None:
    """Returns the numbers of several batches; None if none of them has one."""
    if all(part.order is None for part in parts):
        return None
    none = [Order(known=np.zeros(len(part), np.bool_), number=np.zeros(len(part), np.int64)) for part in parts]
    some = [part.order or absent for part, absent in zip(parts, none, strict=True)]
    return Order(
        known=np.concatenate([order.known for order in some]), number=np.concatenate([order.number for order in some])
    )


def _joined_final(parts: Sequence[Columns]) -> Bools | None:
    """Returns which operations of several batches are of the final phase; None if none is."""
    if all(part.final is None for part in parts):
        return None
    return np.concatenate([np.zeros(len(part), np.bool_) if part.final is None else part.final for part in parts])


def integers_of(text: str) -> Int64s | None:
    """Returns the members of a list, such as the result of a read of a whole set, without Python objects.

    Args:
        text: Canonical JSON of a value, as in `Columns.texts`.

    Returns:
        None if the value is not a list of integers, or if one of them has more than 18 characters.
    """
    inner = text[1:-1]
    if text[:1] != "[":
        return None
    if not inner:
        return np.zeros(0, np.int64)
    characters = np.frombuffer(inner.encode(), np.uint8)
    if not _OF_INTEGERS[characters].all():
        return None
    commas = np.flatnonzero(characters == ord(","))
    bounds = np.concatenate(([-1], commas, [len(characters)]))
    if np.diff(bounds).max() > _LONGEST + 1:
        return None
    members: Int64s = np.fromstring(inner, np.int64, sep=",")
    return members


def _numbered(codes: Int32s, names: Sequence[str], known: dict[str | None, int]) -> Int32s:
    """Returns the places in `known` of codes, which are places in `names` or -1; new names are numbered by first use."""
    used, first = np.unique(codes, return_index=True)
    places = np.zeros(len(names) + 1, np.int32)
    for code in used[np.argsort(first)].tolist():
        places[code] = known.setdefault(None if code < 0 else names[code], len(known))
    placed: Int32s = places[codes]
    return placed


def _order(batch: pa.RecordBatch) -> Order | None:
    """Returns the system's own numbers of a batch; None if it has none."""
    if ORDER not in batch.schema.names or batch.column(ORDER).null_count == len(batch):
        return None
    column = batch.column(ORDER)
    return Order(known=_bool(pc.is_valid(column)), number=_int64(column))


def _final(batch: pa.RecordBatch) -> Bools | None:
    """Returns which operations of a batch are of the final phase; None if none is."""
    if PHASE not in batch.schema.names:
        return None
    final = _bool(pc.equal(_plain(batch.column(PHASE)), FINAL_PHASE))
    return final if final.any() else None


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _int64(column: pa.Array, absent: int = 0) -> Int64s:
    values: Int64s = pc.fill_null(column.cast(pa.int64()), absent).to_numpy(zero_copy_only=False)
    return values


def _bool(column: pa.Array) -> npt.NDArray[np.bool_]:
    values: npt.NDArray[np.bool_] = pc.fill_null(column, fill_value=False).to_numpy(zero_copy_only=False)
    return values.copy()
