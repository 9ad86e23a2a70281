"""Keys that are too large for one worker: the ones that fit are decided and explained, the others are unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import make_model
from checker.decide.excerpts import OBJECTS
from checker.decide.tables import check_table, read_table
from checker.result import operation_json
from checker.search.solving import Limits
from harness.op import OpType
from results.pipeline.decide.kernel import BYTES_PER_OPERATION, KERNEL
from results.pipeline.decide.rows import BYTES_PER_OPERATION as BYTES_PER_OBJECT
from results.pipeline.decide.targets import DATAFLOW
from results.pipeline.decide.verdicts import VerdictOptions
from results.pipeline.schema import OPERATIONS
from results.pipeline.spark.types import struct_of
from results.pipeline.spark.verdicts import verdicts
from tests.spark.histories import by_check, write_runs, writes_and_reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from harness.op import Operation

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def history(size: int) -> list[Operation]:
    """Returns alternating writes and reads. The last read returns a value that was overwritten long before."""
    return writes_and_reads(size, {size - 1: 10})


def test_a_large_key_is_told_of_by_a_part(spark: SparkSession, tmp_path: Path) -> None:
    """If a key has too many operations for objects, the kernel selects some, and the results are those of `labrys check`."""
    [path] = write_runs(tmp_path, {"large": history(OBJECTS + 1000)})
    options = VerdictOptions(model="register")
    [found] = verdicts(spark.read.schema(struct_of(OPERATIONS)).parquet(path), options).collect()
    table = read_table(Path(path), "large", make_model("register", None, {}))
    assert table is not None
    expected = check_table(table, Limits(), cross_check=False).worst
    assert expected is not None
    assert expected.op is not None
    assert expected.counterexample
    assert found["engine"] == KERNEL
    assert (found["verdict"], found["kind"], found["analyzer"]) == ("invalid", expected.kind, expected.analyzer)
    assert found["op_invoke_index"] == expected.op.invoke_index
    assert found["explanation"] == expected.explanation
    assert json.loads(found["counterexample"]) == [operation_json(op) for op in expected.counterexample]


def test_a_hot_key_is_told_like_a_small_one(
    spark: SparkSession, tmp_path: Path, heat: Callable[[int, int], None]
) -> None:
    """Dataflow explains a part of a key that does not fit as objects; the sentence still names failed and later writes."""
    runs = {}
    planted: dict[str, dict[int, dict[str, Any]]] = {
        "nobody": {},
        "failed": {60: {"type": OpType.FAIL, "error": "not-leader: n2"}},
        "failed twice": {60: {"type": OpType.FAIL}, 64: {"type": OpType.FAIL, "f": "cas"}},
        "later": {60: {"type": OpType.FAIL}, 290: {}},
    }
    for name, changes in planted.items():
        operations = writes_and_reads(300, {251: 7007})
        for place, change in changes.items():
            made = [-1, 7007] if change.get("f") == "cas" else 7007
            operations[place] = replace(operations[place], value=made, **change)
            seen = 7007 if change.get("type") is None else place - 2
            operations[place + 1] = replace(operations[place + 1], result=seen)
        runs[name] = operations
    paths = write_runs(tmp_path, runs)
    heat(50, 1 << 17)
    options = VerdictOptions(memory_limit=100 * BYTES_PER_OBJECT)
    rows = verdicts(spark.read.schema(struct_of(OPERATIONS)).parquet(*paths), options).collect()
    expected = by_check(make_model(options.model, None, {}), runs)
    assert {row["engine"] for row in rows} == {DATAFLOW}
    assert {row["run"]: row["explanation"] for row in rows} == {
        name: expected[name, None]["explanation"] for name in runs
    }
    assert {row["op_invoke_index"] for row in rows} == {2 * 251}


def test_a_key_that_does_not_fit_is_unknown(
    spark: SparkSession, tmp_path: Path, heat: Callable[[int, int], None]
) -> None:
    """A key that the kernel has no memory for is unknown with that cause, and its neighbour is decided."""
    paths = write_runs(tmp_path, {"large": history(200), "small": history(20)})
    heat(1000, 1 << 17)
    options = VerdictOptions(model="register", memory_limit=100 * BYTES_PER_OPERATION)
    found = {
        row["run"]: row for row in verdicts(spark.read.schema(struct_of(OPERATIONS)).parquet(*paths), options).collect()
    }
    assert (found["large"]["verdict"], found["large"]["cause"]) == ("unknown", "out-of-memory")
    assert found["small"]["verdict"] == "invalid"
    assert found["small"]["op_invoke_index"] == 38
