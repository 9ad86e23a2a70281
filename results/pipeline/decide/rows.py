"""Makes operations from the rows of a key, one key after the other."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from checker.formats.parquet import NAMES, columns_of
from checker.values import Values
from harness.op import Operation, OpType
from results.pipeline.schema import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The memory of an operation as a Python object, in the checker and in the search for a counterexample.
BYTES_PER_OPERATION: Final = 2000
OBJECTS: Final = "operations"  # the column `engine`
TARGET: Final = "target"  # the column with the task of a key, as JSON; null in a row of an operation
TARGETED: Final = pa.schema([*OPERATIONS, pa.field(TARGET, pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A key, what is known about it before its operations are read, and what to find out.

    Attributes:
        run: The run.
        key: The key.
        operations: The number of its operations.
        orders: How many of them have an order.
        engine: The route of its verdict.
        verdict: The verdict; None if it is not known.
        analyzer: See `schema.VERDICTS`, as for the next four.
        cause: Why it is unknown.
        kind: The kind of the violation.
        op_start: The invoke of the operation at whose return no linearization is left.
        op_end: The return of this operation.
        core: The invokes of the operations that the explanation names.
        unsuited: Why the near-linear analyzer does not suit the key.
        part: The invokes of the operations that replace the whole key; None for the whole key.
        observed: The values that these observed; operations that make them, also failed ones, are wanted too.
        wanted: The invokes of the operations to read; None for all.
        whole: Whether to decide operations, and not only to name them.
        shrink: Whether a counterexample is wanted.
    """

    run: str
    key: str | None
    operations: int
    orders: int = 0
    engine: str = OBJECTS
    verdict: str | None = None
    analyzer: str | None = None
    cause: str | None = None
    kind: str | None = None
    op_start: int | None = None
    op_end: int | None = None
    core: Sequence[int] = ()
    unsuited: str | None = None
    part: Sequence[int] | None = None
    observed: Sequence[int] | None = None
    wanted: Sequence[int] | None = None
    whole: bool = True
    shrink: bool = False

    def text(self) -> str:
        """Returns the target as JSON."""
        return json.dumps(asdict(self))


@dataclass(slots=True, kw_only=True)
class Group:
    """The rows of one key.

    Attributes:
        target: The key.
        operations: The operations.
        trouble: Why a row is no operation; None if all are.
        too_many: Whether there are more operations than fit; then `operations` is empty.
    """

    target: Target
    operations: list[Operation] = field(default_factory=list)
    trouble: str | None = None
    too_many: bool = False


def groups(batches: Iterator[pa.RecordBatch], *, most: int) -> Iterator[Group]:
    """Yields the keys of some rows: a row with a target, and then the rows of its operations.

    Args:
        batches: Rows in the columns `TARGETED`.
        most: How many operations of a key are kept in memory.
    """
    target: Target | None = None
    parts: list[pa.RecordBatch] = []
    values = Values()
    for batch in batches:
        heads = np.flatnonzero(batch.column(TARGET).is_valid().to_numpy(zero_copy_only=False)).tolist()
        begin = 0
        for head in [*heads, batch.num_rows]:
            if head > begin:
                parts.append(batch.slice(begin, head - begin))
            if head < batch.num_rows:
                if target is not None:
                    yield group_of(target, parts, values, most=most)
                target, parts = Target(**json.loads(batch.column(TARGET)[head].as_py())), []
            begin = head + 1
    if target is not None:
        yield group_of(target, parts, values, most=most)


def group_of(target: Target, parts: Sequence[pa.RecordBatch], values: Values, *, most: int) -> Group:
    """Returns a key with its operations, which come in the order of their invokes."""
    if sum(part.num_rows for part in parts) > most:
        return Group(target=target, too_many=True)
    operations: list[Operation] = []
    for part in parts:
        for fields in zip(*columns_of(part), strict=True):
            try:
                operations.append(_operation(dict(zip(NAMES, fields, strict=True)), values.decode))
            except ValueError as error:
                return Group(target=target, trouble=f"event {fields[NAMES.index('invoke_index')]}: {error}")
    return Group(target=target, operations=operations)


def _operation(fields: dict[str, Any], decode: Any) -> Operation:
    kind = OpType(fields["type"])
    if kind is not OpType.INFO and fields["complete_index"] is None:
        raise ValueError(f"expected a complete_index for type {kind}, found null")
    del fields["run"]
    return Operation(
        **{**fields, "type": kind, "value": decode(fields["value"]), "result": decode(fields["result"])},
    )
