"""The rows that are made of whole operations: what is known of the system's own order stands beside the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from checker.formats.parquet import NAMES
from checker.values import json_text
from results.pipeline.decide.asked import VerdictOptions
from results.pipeline.decide.details import examined
from results.pipeline.decide.kernel import KERNEL
from results.pipeline.decide.rows import TARGET, TARGETED, Target
from tests.spark.histories import two_writes_and_a_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Operation

GOOD = two_writes_and_a_read(stale=False)
ORDERS = {"right": (1, 2, 2), "wrong": (2, 1, 2), "none": (None, None, None)}
ASKED = VerdictOptions(model="cas-register", time_limit_s=5.0, memory_limit=1 << 20).asked()


def row_of(operations: Sequence[Operation], size: int = 100, **known: Any) -> dict[str, Any]:
    """Returns the row of a key with these operations, which come in batches of a size."""
    head = {TARGET: Target(run="r", key="k", operations=len(operations), **known).text()}
    rows = [
        {name: json_text(getattr(op, name)) if name in {"value", "result"} else getattr(op, name) for name in NAMES[1:]}
        | {"run": "r", "type": str(op.type)}
        for op in operations
    ]
    every: list[dict[str, Any]] = [head, *rows]
    table = pa.Table.from_pylist([{name: row.get(name) for name in TARGETED.names} for row in every], TARGETED)
    [batch] = examined(iter(table.to_batches(max_chunksize=size)), ASKED)
    [row] = batch.to_pylist()
    return dict(row)


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize(("order", "agrees"), [("right", "valid"), ("wrong", "invalid"), ("none", None)])
def test_a_row_says_whether_the_order_is_a_legal_one(order: str, agrees: str | None, size: int) -> None:
    """The verdict is that of the operations, whatever the order is; a legal order is what decides."""
    operations = [replace(op, order=number) for op, number in zip(GOOD, ORDERS[order], strict=True)]
    row = row_of(operations, size)
    assert (row["verdict"], row["order_agrees"]) == ("valid", agrees)
    assert (row["analyzer"] == "hints") is (agrees == "valid")
    assert (row["order_reason"] or "").startswith("The system's own order") is (agrees is not None)


def test_a_part_of_a_key_says_nothing_about_its_order() -> None:
    """Where only some operations of a key are looked at, to tell of them, nothing follows for the order of all."""
    operations = [replace(op, order=index) for index, op in enumerate(two_writes_and_a_read(stale=True))]
    row = row_of(
        operations,
        engine=KERNEL,
        verdict="invalid",
        analyzer="zones",
        kind="stale",
        op_start=operations[-1].invoke_index,
        op_end=operations[-1].complete_index,
        core=[op.invoke_index for op in operations],
        part=[op.invoke_index for op in operations],
        shrink=True,
    )
    assert (row["verdict"], row["kind"], row["order_agrees"], row["order_reason"]) == ("invalid", "stale", None, None)
