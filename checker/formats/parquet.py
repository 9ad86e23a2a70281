"""operations.parquet: one row for each operation, in columns that Spark, pandas and the kernel read without Python objects.

The rules:

- Rows are sorted by their invokes.
- A value is the text of its JSON, and null if there is none. Equal values have equal text, and different values different text.
- A missing time or index is null, never a special number.
- The file's metadata has the format and its version. A file of another version is refused.
- A file appears under its name only when it is complete.

pyarrow is imported only for reading and writing; `COLUMNS` does not need it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from checker.formats.counts import hold_counts, hold_numbers, hold_order, hold_row_count
from checker.formats.errors import BadHistory, shown
from checker.formats.missing import COMPLETION, FUNCTION, INDEX, INVOKE, KEY, PROCESS, TIME, TYPE, VALUE, May
from checker.values import Values, json_text
from harness.errors import InfrastructureError, InputError
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.op import Value

FORMAT = "labrys-operations"
VERSION = 1
FORMAT_KEY = b"labrys.format"
VERSION_KEY = b"labrys.version"
ROW_GROUP_ROWS = 1 << 17
READ_ROWS = 1 << 14


class Column(NamedTuple):
    """A column of the file.

    Attributes:
        name: Its name.
        kind: `string`, `name` (a string with few distinct values, stored as a dictionary) or `int64`.
        nullable: Whether it may be null.
        optional: Whether a file may lack it; its values are then null.
    """

    name: str
    kind: str
    nullable: bool
    optional: bool = False


COLUMNS: Sequence[Column] = (
    Column("run", "name", nullable=False),
    Column("key", "name", nullable=True),
    Column("process", "int64", nullable=False),
    Column("f", "name", nullable=False),
    Column("type", "name", nullable=False),
    Column("start_ns", "int64", nullable=False),
    Column("end_ns", "int64", nullable=True),
    Column("value", "string", nullable=True),
    Column("result", "string", nullable=True),
    Column("node", "name", nullable=True),
    Column("error", "string", nullable=True),
    Column("scheduled_ns", "int64", nullable=True),
    Column("phase", "name", nullable=True),
    Column("invoke_index", "int64", nullable=False),
    Column("complete_index", "int64", nullable=True),
    Column("via", "name", nullable=True, optional=True),
    Column("order", "int64", nullable=True, optional=True),
)
NAMES = tuple(column.name for column in COLUMNS)
_NULLABLE = {column.name: May.YES if column.nullable else May.NO for column in COLUMNS}
MAY_LACK: Mapping[str, May] = {
    TYPE: _NULLABLE["type"], FUNCTION: _NULLABLE["f"], PROCESS: _NULLABLE["process"], VALUE: _NULLABLE["value"],
    INDEX: _NULLABLE["invoke_index"], TIME: _NULLABLE["start_ns"], KEY: _NULLABLE["key"], INVOKE: _NULLABLE["invoke_index"],
    COMPLETION: _NULLABLE["complete_index"],
}  # fmt: skip

_TYPES = {str(op_type): op_type for op_type in OpType if op_type is not OpType.INVOKE}


def schema() -> Any:
    """Returns the file's schema as a pyarrow object, with format and version in its metadata."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    kinds = {"string": pa.string(), "name": pa.dictionary(pa.int32(), pa.string()), "int64": pa.int64()}
    fields = [pa.field(column.name, kinds[column.kind], nullable=column.nullable) for column in COLUMNS]
    return pa.schema(fields, metadata={FORMAT_KEY: FORMAT.encode(), VERSION_KEY: str(VERSION).encode()})


def write_operations(path: Path, operations: Iterable[Operation], *, run: str) -> int:
    """Writes operations in the order of their invokes; replaces an existing file.

    Args:
        path: The file.
        operations: Clients' operations, in that order; read one at a time, so a generator may be larger than memory.
        run: The name of their run.

    Returns:
        The number of written operations.

    Raises:
        InputError: An operation is not a client's, or JSON cannot represent a value; no file is left.
        InfrastructureError: The file cannot be written; no file is left.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import parquet  # noqa: PLC0415

    layout = schema()
    partial = path.absolute().with_name(f".{path.name}.{os.getpid()}.partial")  # pyarrow expands a leading `~`
    count = 0
    try:
        with parquet.ParquetWriter(partial, layout, compression="zstd") as writer:
            for rows in _batches(operations, ROW_GROUP_ROWS):
                columns = [[run] * len(rows), *_columns(rows)]
                arrays = [pa.array(column, field.type) for column, field in zip(columns, layout, strict=True)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=layout), row_group_size=ROW_GROUP_ROWS)
                count += len(rows)
        partial.replace(path)
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        raise InputError(f"{path}: an operation does not fit the columns: {error}") from error
    except OSError as error:
        raise InfrastructureError(f"{path}: the operations cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def _batches(operations: Iterable[Operation], rows: int) -> Iterator[list[Operation]]:
    batch: list[Operation] = []
    last = -1
    for operation in operations:
        if type(operation.process) is not int:
            raise InputError(f"expected a client's operation, found one of process {operation.process!r}")
        if operation.invoke_index <= last:
            raise InputError(
                f"expected operations in the order of their invokes, found {operation.invoke_index} after {last}"
            )
        last = operation.invoke_index
        batch.append(operation)
        if len(batch) == rows:
            yield batch
            batch = []
    if batch:
        yield batch


def _columns(rows: Sequence[Operation]) -> Iterator[list[Any]]:
    """Yields the columns after `run`, in the order of `COLUMNS`."""
    for name in NAMES[1:]:
        yield values_of(rows, name)


def values_of(rows: Iterable[Operation], name: str) -> list[Any]:
    """Returns a column of operations."""
    if name in {"value", "result"}:
        return [json_text(getattr(row, name)) for row in rows]
    if name == "type":
        return [str(row.type) for row in rows]
    return [getattr(row, name) for row in rows]


def open_parquet(path: Path, *, name: str | None = None) -> Any:
    """Opens a file, and checks its format, version and columns.

    Columns may have any order, may be dictionaries or plain, and there may be others.

    Args:
        path: The file.
        name: Its name in errors; None: its path.

    Returns:
        A pyarrow `ParquetFile`.

    Raises:
        BadHistory: It is not such a file.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import parquet  # noqa: PLC0415

    name = name or str(path)
    try:
        file = parquet.ParquetFile(path.absolute())  # pyarrow expands a leading `~`
        layout = file.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadHistory(name, None, f"expected a Parquet file of operations: {error}") from error
    metadata = layout.metadata or {}
    format_name, version = metadata.get(FORMAT_KEY, b""), metadata.get(VERSION_KEY, b"")
    # Spark drops the metadata of other writers, so a file without metadata is recognized by its columns.
    if (format_name or version) and (format_name, version) != (FORMAT.encode(), str(VERSION).encode()):
        actual = f"{format_name.decode(errors='replace')} version {version.decode(errors='replace')}"
        raise BadHistory(name, None, f"expected {FORMAT} version {VERSION}, found {actual}")
    for column in COLUMNS:
        if column.name not in layout.names:
            if column.optional:
                continue
            raise BadHistory(name, None, f"expected a column {column.name!r}, found {shown(', '.join(layout.names))}")
        if layout.names.count(column.name) > 1:
            raise BadHistory(
                name, None, f"expected one column {column.name!r}, found {layout.names.count(column.name)}"
            )
        kind = layout.field(column.name).type
        if isinstance(kind, pa.DictionaryType):
            kind = kind.value_type
        fits = pa.types.is_integer(kind) if column.kind == "int64" else _is_text(kind)
        if not fits:
            expected = "integers" if column.kind == "int64" else "strings"
            raise BadHistory(name, None, f"expected {expected} in column {column.name!r}, found {kind}")
    hold_counts(name, file.metadata, NAMES)
    return file


def _is_text(kind: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def columns_of(batch: Any) -> list[list[Any]]:
    """Returns the columns of a batch of rows, in the order of `NAMES`; nulls for a missing optional column."""
    have = set(batch.schema.names)
    return [batch.column(name).to_pylist() if name in have else [None] * batch.num_rows for name in NAMES]


def rows_of(path: Path, name: str) -> int:
    """Returns the number of rows in a file, without reading them.

    Raises:
        BadHistory: It has another format.
    """
    return int(open_parquet(path, name=name).metadata.num_rows)


def read_operations(path: Path, *, run: str | None = None) -> Iterator[Operation]:
    """Reads operations in the file's order, a batch of rows at a time.

    Args:
        path: The file.
        run: The run whose operations to read; None for all runs.

    Raises:
        BadHistory: The file has another format, or a row is not an operation.
    """
    for its_run, operation in read_rows(path):
        if run is None or its_run == run:
            yield operation


def read_rows(path: Path, *, name: str | None = None) -> Iterator[tuple[str, Operation]]:
    """Reads runs and operations in the file's order, a batch of rows at a time.

    Args:
        path: The file.
        name: Its name in errors; None: its path.

    Raises:
        BadHistory: The file has another format, or a row is not an operation.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    name = name or str(path)
    file = open_parquet(path, name=name)
    row = 0
    decode = Values().decode
    try:
        for batch in file.iter_batches(batch_size=READ_ROWS, columns=list(NAMES)):
            columns = columns_of(batch)
            for fields in zip(*columns, strict=True):
                row += 1
                yield fields[0], _operation(fields, decode)
        hold_row_count(name, file.metadata, row)
    except (pa.ArrowException, OSError) as error:
        raise BadHistory(name, None, f"the file breaks off after row {row}: {error}") from error
    except ValueError as error:
        raise BadHistory(name, None, f"row {row}: {error}") from error


def read_rows_of(path: Path, invoke_indexes: Any) -> list[Operation]:
    """Reads the operations of some invokes; no other rows become objects.

    Args:
        path: A file with one run.
        invoke_indexes: The invokes' indexes, an ascending array.

    Raises:
        BadHistory: As `read_rows`.
    """
    import numpy as np  # noqa: PLC0415 - slow to import
    import pyarrow as pa  # noqa: PLC0415

    operations: list[Operation] = []
    decode = Values().decode
    try:
        for batch in open_parquet(path).iter_batches(batch_size=ROW_GROUP_ROWS, columns=list(NAMES)):
            invokes = batch.column("invoke_index").to_numpy(zero_copy_only=False)
            places = np.minimum(np.searchsorted(invoke_indexes, invokes), max(len(invoke_indexes) - 1, 0))
            wanted = invoke_indexes[places] == invokes if len(invoke_indexes) else np.zeros(len(invokes), np.bool_)
            if wanted.any():
                few = batch.filter(pa.array(wanted))
                columns = columns_of(few)
                operations += [_operation(fields, decode) for fields in zip(*columns, strict=True)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadHistory(str(path), None, f"the file cannot be read again: {error}") from error
    return operations


def _operation(fields: Sequence[Any], decode: Callable[[str | None], Value]) -> Operation:
    (
        run,
        key,
        process,
        f,
        kind,
        start_ns,
        end_ns,
        value,
        result,
        node,
        error,
        scheduled_ns,
        phase,
        first,
        last,
        via,
        order,
    ) = fields
    if order is not None:
        hold_order(order, returned=last is not None)
    for name, field in (("run", run), ("process", process), ("f", f), ("start_ns", start_ns), ("invoke_index", first)):
        if field is None:
            raise ValueError(f"expected a value in column {name!r}, found null")
    hold_numbers(process, start_ns, end_ns, scheduled_ns, first, last)
    if kind not in _TYPES:
        raise ValueError(f"expected a type ok, fail or info, found {kind!r}")
    if kind != OpType.INFO and last is None:
        raise ValueError(f"expected a complete_index for type {kind!r}, found null")
    return Operation(
        process=process,
        f=f,
        value=decode(value),
        result=decode(result),
        type=_TYPES[kind],
        start_ns=start_ns,
        end_ns=end_ns,
        invoke_index=first,
        complete_index=last,
        key=key,
        node=node,
        error=error,
        scheduled_ns=scheduled_ns,
        phase=phase,
        via=via,
        order=order,
    )
