"""The Spark job's verdicts are those of `labrys check`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import make_model
from harness.op import Operation, OpType
from results.pipeline.details import DATAFLOW, KERNEL, OBJECTS
from results.pipeline.rows import BYTES_PER_OPERATION
from results.pipeline.schema import OPERATIONS, VERDICTS
from results.pipeline.verdicts import VerdictOptions, verdicts
from tests.spark.histories import by_check, histories, write_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

BUCKET_EVENTS = 3


def by_spark(
    spark: SparkSession,
    folder: Path,
    runs: Mapping[str, Sequence[Operation]],
    options: VerdictOptions,
    *,
    cuts: int = 3,
) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Returns the job's rows, from operations in an order and a partitioning that say nothing."""
    operations = spark.read.schema(OPERATIONS).parquet(*write_runs(folder, runs)).repartition(cuts)
    found = verdicts(operations, options)
    assert found.schema.names == VERDICTS.names
    rows = {}
    for row in found.collect():
        assert (row["run"], row["key"]) not in rows
        fields = row.asDict()
        fields["counterexample"] = json.loads(row["counterexample"] or "[]")
        rows[fields.pop("run"), fields.pop("key")] = fields
    return rows


def assert_same(ours: Mapping[Any, Mapping[str, Any]], theirs: Mapping[Any, Mapping[str, Any]]) -> None:
    """Holds each row to what `labrys check` says."""
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        found = {field: ours[name][field] for field in expected}
        assert found == expected, name


def test_dataflow_says_what_the_checker_says(spark: SparkSession, tmp_path: Path) -> None:
    """However a timeline is cut, dataflow gives the checker's verdict, operation, explanation and counterexample."""
    runs = histories(1, 1200, cas=False, unique=True) | long_runs()
    ours = by_spark(
        spark, tmp_path, runs, VerdictOptions(model="register", hot_operations=0, bucket_events=BUCKET_EVENTS)
    )
    assert_same(ours, by_check(make_model("register", None, {}), runs))
    assert Counter(row["engine"] for row in ours.values())[DATAFLOW] > len(runs) // 2
    assert {(row["verdict"], row["kind"]) for row in ours.values()} >= {
        ("valid", None),
        ("invalid", "phantom"),
        ("invalid", "stale"),
    }
    for name in LIES:
        assert ours[name, None]["op_invoke_index"] == 2 * LIED_AT, "what was planted is found where it was planted"


def test_every_route_says_what_the_checker_says(spark: SparkSession, tmp_path: Path) -> None:
    """Many keys, values that repeat, compare-and-set, failed ones that observe, values that are no integers: no difference."""
    conventions = {"nil_read": "any", "failed_cas": "observe"}
    unique = histories(2, 150, cas=True, unique=True, keys=5)
    repeated = histories(3, 150, cas=True, unique=False, keys=2)
    spoken = histories(4, 60, cas=False, unique=True, keys=2)
    runs = {f"unique-{name}": ops for name, ops in unique.items()}
    runs |= {f"repeated-{name}": ops for name, ops in repeated.items()}
    runs |= {f"spoken-{name}": [_spoken(op) for op in ops] for name, ops in spoken.items()}
    options = VerdictOptions(conventions=conventions, hot_operations=10, bucket_events=BUCKET_EVENTS)
    ours = by_spark(spark, tmp_path, runs, options)
    assert_same(ours, by_check(make_model("cas-register", None, conventions), runs))
    assert {row["engine"] for row in ours.values()} == {DATAFLOW, KERNEL, OBJECTS}


def test_a_key_beyond_its_budget_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    """A key that does not fit into its memory limit is unknown with that cause, and the others are decided."""
    runs = histories(5, 4, cas=False, unique=True, size=10)
    large = [_operation(place, "enqueue", place) for place in range(200)]
    runs = {
        name: [replace(op, f="enqueue", value=op.invoke_index, result=None) for op in ops] for name, ops in runs.items()
    }
    options = VerdictOptions(model="fifo-queue", memory_limit=100 * BYTES_PER_OPERATION)
    ours = by_spark(spark, tmp_path, runs | {"large": large}, options)
    assert ours["large", None]["verdict"] == "unknown"
    assert ours["large", None]["cause"] == "out-of-memory"
    assert {row["verdict"] for (name, _), row in ours.items() if name != "large"} == {"valid"}


LIED_AT = 1501
LIES: Mapping[str, Callable[[int], int]] = {
    "stale": lambda place: place - 901,
    "phantom": lambda place: -place,
    "future": lambda place: place + 41,
}


def long_runs() -> dict[str, list[Operation]]:
    """Returns long runs of one register, a valid one and one with each kind of lie."""
    runs = {"valid": _long_run(None)}
    return runs | {name: _long_run(lie) for name, lie in LIES.items()}


def _long_run(lie: Callable[[int], int] | None) -> list[Operation]:
    """Writes a number at each even place and reads it at the next, where one read may say something else."""
    run = []
    for place in range(2 * LIED_AT):
        if place % 2:
            run.append(_operation(place, "read", None, place - 1))
        else:
            run.append(_operation(place, "write", place))
    if lie is not None:
        run[LIED_AT] = _operation(LIED_AT, "read", None, lie(LIED_AT))
    return run


def _operation(place: int, f: str, value: int | None, result: int | None = None) -> Operation:
    return Operation(
        process=place % 5,
        f=f,
        value=value,
        result=result,
        type=OpType.OK,
        start_ns=place,
        end_ns=place,
        invoke_index=2 * place,
        complete_index=2 * place + 1,
    )


def _spoken(op: Operation) -> Operation:
    """Returns the operation with texts for numbers."""
    value, result = (None if each is None else f"v{each}" for each in (op.value, op.result))
    return replace(op, value=value, result=result)
