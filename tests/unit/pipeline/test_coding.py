"""Registers' operations become integers: which texts have a coding."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from checker.models import model as model_of
from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from results.pipeline.decide.coding import ADDRESS, CODED, GENERAL, NEG, NIL, coded, coding_of, made

# f, type, value, result and their code; None: not encoded.
SAYINGS: list[tuple[str, str, str | None, str | None, tuple[int, ...] | None]] = [
    ("read", "ok", None, "5", (READ, 5, 0)),
    ("read", "ok", None, None, (READ, NIL, 0)),
    ("read", "ok", None, "null", (READ, NIL, 0)),
    ("read", "ok", None, '"5"', (GENERAL,)),
    ("read", "info", None, None, None),
    ("read", "fail", None, None, None),
    ("write", "ok", "-7", None, (WRITE, -7, 0)),
    ("write", "info", "0", None, (WRITE, 0, 0)),
    ("write", "fail", "8", None, None),
    *(("write", "ok", text, None, (GENERAL,)) for text in ("007", "-0", " 7", "1.0", "true", "1" * 19, "1" * 30, "")),
    ("cas", "ok", "[1,2]", None, (CAS, 1, 2)),
    ("cas", "info", "[null,-2]", None, (CAS, NIL, -2)),
    ("cas", "fail", "[1,2]", None, (CAS_FAIL, 1, 0)),
    ("cas", "ok", "3", None, (GENERAL,)),
    ("cas", "ok", None, None, (GENERAL,)),
    ("add", "ok", "3", None, (GENERAL,)),
]
# Not a pair of two integers in Labrys' form; the numbers beside it are meaningless.
NO_PAIRS = (
    "[]",
    "[",
    "[1]",
    "[,]",
    "[1,]",
    "[,2]",
    "[1, 2]",
    "[1,2,3]",
    "[01,2]",
    "[[1,2],3]",
    "1,2",
    '["1",2]',
    "(1,2)",
)


def rows_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Returns operations of one key from f, type, value and result."""
    columns = [[row[index] for row in rows] for index in range(4)]
    names = ("f", "type", "value", "result")
    arrays = dict(zip(names, (pa.array(column, pa.string()) for column in columns), strict=True))
    starts = pa.array(range(0, 2 * len(rows), 2), pa.int64())
    ends = pa.array(range(1, 2 * len(rows), 2), pa.int64())
    address = pa.array([7] * len(rows), pa.int64())
    return pa.RecordBatch.from_pydict({ADDRESS: address, **arrays, "invoke_index": starts, "complete_index": ends})


def test_what_is_said_of_texts() -> None:
    """Nil and integers in canonical text become integers. Anything else remains a whole operation."""
    coding = coding_of(model_of("cas-register", failed_cas="observe"))
    assert coding is not None
    batch = coded(rows_of([row[:4] for row in SAYINGS]), coding)
    assert batch.schema == CODED
    rows = batch.to_pylist()
    sayings = {
        row["start"] // 2: (GENERAL,)
        if row["opcode"] == GENERAL
        else (row["opcode"], row["first_argument"], row["second_argument"])
        for row in rows
    }
    assert sayings == {index: said for index, (*_, said) in enumerate(SAYINGS) if said is not None}
    rows = coded(rows_of([("cas", "ok", text, None) for text in NO_PAIRS]), coding).to_pylist()
    assert [row["opcode"] for row in rows] == [GENERAL] * len(NO_PAIRS)


def test_failed_operations_make_values_too() -> None:
    """A write and a compare-and-set, whatever became of them; what writes no integer makes none."""
    rows = [("write", "fail", "8", None), ("cas", "fail", "[1,2]", None), ("write", "ok", None, None)]
    others = [("read", "ok", None, "5"), ("cas", "ok", "3", None), ("write", "ok", '"8"', None)]
    table = pa.Table.from_batches([rows_of([*rows, *others])])
    assert made(table.column("f"), table.column("value")).tolist() == [8, 2, NIL, NEG, NEG, NEG]
