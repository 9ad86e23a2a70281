"""Makes operations from the rows that Spark gives to a Python worker, one key after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from checker.formats.parquet import NAMES, columns_of, decode_value
from harness.op import Operation, OpType
from results.pipeline.large_keys.columns import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from harness.op import Value

# The memory of an operation as a Python object, in the checker and in the search for a counterexample.
BYTES_PER_OPERATION: Final = 2000
_REMEMBERED: Final = 1 << 12
_INVOKE: Final = NAMES.index("invoke_index")


@dataclass(slots=True, kw_only=True)
class Group:
    """The rows of one key.

    Attributes:
        about: The columns that are not columns of operations, from the key's first row.
        operations: The operations.
        trouble: Why a row is no operation; None if all are.
        too_many: Whether there are more operations than `most`; then `operations` is empty.
    """

    about: dict[str, Any]
    operations: list[Operation] = field(default_factory=list)
    trouble: str | None = None
    too_many: bool = False


def groups(batches: Iterator[pa.RecordBatch], *, most: int) -> Iterator[Group]:
    """Yields the keys of a partition that is sorted by `address`; a row without an invoke only introduces its key.

    Args:
        batches: Rows with the columns of operations and others, `address` among them.
        most: How many operations of a key are kept in memory.
    """
    decode = _Values().decode
    group: Group | None = None
    for batch in batches:
        others = [name for name in batch.schema.names if name not in NAMES]
        addresses = batch.column(ADDRESS).to_pylist()
        columns = columns_of(batch)
        for row, fields in enumerate(zip(*columns, strict=True)):
            if group is None or group.about[ADDRESS] != addresses[row]:
                if group is not None:
                    yield group
                about = {name: batch.column(name)[row].as_py() for name in others}
                group = Group(about={**about, "run": fields[0], "key": fields[1]})
            if fields[_INVOKE] is None:
                continue
            if len(group.operations) >= most:
                group.too_many = True
                group.operations.clear()
            if group.too_many or group.trouble is not None:
                continue
            try:
                group.operations.append(_operation(dict(zip(NAMES, fields, strict=True)), decode))
            except ValueError as error:
                group.trouble = f"event {fields[_INVOKE]}: {error}"
    if group is not None:
        yield group


class _Values:
    """Parses the JSON of values, and caches a bounded number of texts, because most histories repeat a few."""

    def __init__(self) -> None:
        self._known: dict[str | None, Value] = {None: None}

    def decode(self, text: str | None) -> Value:
        if text in self._known:
            return self._known[text]
        value = decode_value(text or "")
        if not isinstance(value, list | dict) and len(self._known) < _REMEMBERED:
            self._known[text] = value
        return value


def _operation(fields: dict[str, Any], decode: Any) -> Operation:
    kind = OpType(fields["type"])
    if kind is not OpType.INFO and fields["complete_index"] is None:
        raise ValueError(f"expected a complete_index for type {kind}, found null")
    del fields["run"]
    return Operation(
        **{**fields, "type": kind, "value": decode(fields["value"]), "result": decode(fields["result"])},
    )
