"""Registers' operations become integers in the JVM: which texts it encodes, and the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models import model as model_of
from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from results.pipeline.decide.coding import GENERAL, NIL, coded, coding_of
from results.pipeline.large_keys.clusters import AFTER
from results.pipeline.large_keys.columns import CODED, schema_of
from results.pipeline.large_keys.scan import Scan, Scanning
from results.pipeline.large_keys.zones import scanned
from results.pipeline.schema import OPERATIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# HotSpot never compiles a method with more bytes than this.
COMPILED_BYTES = 8000

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


def operations(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    """Returns operations of one key from f, type, value and result."""
    filled = [
        ("run", "k", 0, f, kind, 0, 1, value, result, None, None, None, None, 2 * place, 2 * place + 1, None, None)
        for place, (f, kind, value, result) in enumerate(rows)
    ]
    return spark.createDataFrame(filled, OPERATIONS)


def test_what_is_said_of_texts(spark: SparkSession) -> None:
    """Nil and integers in canonical text become integers. Anything else remains a whole operation."""
    coding = coding_of(model_of("cas-register", failed_cas="observe"))
    assert coding is not None
    rows = coded(operations(spark, [row[:4] for row in SAYINGS]), coding, 0).collect()
    found = {row["start"] // 2: (GENERAL,) if row["opcode"] == GENERAL else tuple(row[1:4]) for row in rows}
    assert found == {place: said for place, (*_, said) in enumerate(SAYINGS) if said is not None}
    rows = coded(operations(spark, [("cas", "ok", text, None) for text in NO_PAIRS]), coding, 0).collect()
    assert [row["opcode"] for row in rows] == [GENERAL] * len(NO_PAIRS)


def test_rows_have_the_columns_that_are_described(spark: SparkSession) -> None:
    """Each row between the steps has the columns and types of `results.pipeline.large_keys.columns`."""
    coding = coding_of(model_of("cas-register"))
    assert coding is not None
    scanning = Scanning(initial=coding.initial, bucket_events=3, memory_limit=1 << 20, chained=True)
    touches = coded(operations(spark, [row[:4] for row in SAYINGS]), coding, 0)
    assert {column.name: column.dataType for column in touches.schema} == {
        column.name: column.dataType for column in CODED
    }
    scan = Scan(touches.withColumns({name: F.lit(1).cast("long") for name in AFTER}), scanning)
    assert scan._chains is not None
    for rows in (scan.values, scan._chains, scan.zoned, scan.slices, scanned(scan.slices)):
        described = schema_of(*rows.columns)
        assert [column.dataType for column in rows.schema] == [column.dataType for column in described], rows.columns
    scan.release()


def test_coding_is_compiled(compiling: SparkSession) -> None:
    """The code per operation is small enough for the JVM to compile; otherwise it is ten times slower."""
    coding = coding_of(model_of("cas-register", failed_cas="observe", nil_read="any"))
    assert coding is not None
    rows = operations(compiling, [("read", "ok", None, "5")]).localCheckpoint()
    made = coded(rows, coding, 0)._jdf.queryExecution().debug().codegenToSeq().iterator()
    sizes = []
    while made.hasNext():
        sizes.append(made.next()._3().maxMethodCodeSize())
    assert sizes
    assert max(sizes) < COMPILED_BYTES
