"""Histories of transactions larger than the memory limit: Spark decides them in parts, with the words of the kernel."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from checker.deciders import of_workload
from checker.formats.parquet import write_operations
from results.pipeline.decide.judges import BYTES_PER_OPERATION
from results.pipeline.decide.verdicts import judged as judged_here
from results.pipeline.schema import OPERATIONS
from results.pipeline.spark.types import struct_of
from results.pipeline.spark.verdicts import judged
from tests.unit.checker.test_transaction_order import STALE
from tests.unit.checker.test_transaction_order import operations as positioned
from tests.unit.pipeline.test_large_transactions import random_history

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SETTINGS = (
    ("list-append", ("consistency-model=strict-serializable",)),
    ("list-append", ("consistency-model=strong-session-snapshot-isolation",)),
    ("rw-register", ("consistency-model=serializable", "writes-follow-reads=true")),
    ("list-append", ("consistency-model=update-atomic", "anomalies=G-MSR,G-update")),
)


@pytest.mark.parametrize(("workload", "settings"), SETTINGS)
def test_spark_decides_in_parts(workload: str, settings: tuple[str, ...], spark: SparkSession, tmp_path: Path) -> None:
    """A history of 400 wrong transactions, and a small limit: the row is that of the whole history, but for its route."""
    from pyarrow import parquet  # noqa: PLC0415 - slow to import

    judge = of_workload(workload, settings=settings).judge
    assert judge is not None
    operations = random_history(Random(5), most=1000, lists=workload == "list-append", mess=0.03, fresh=40)
    path = tmp_path / "operations.parquet"
    write_operations(path, operations, run="one")
    rows = spark.read.schema(struct_of(OPERATIONS)).parquet(str(path))
    table = parquet.read_table(path).select(OPERATIONS.names).cast(OPERATIONS)
    text = sum(table.column(name).nbytes for name in ("value", "result"))
    limit = BYTES_PER_OPERATION * len(operations) + text // 2
    [expected] = judged_here(table, judge, 1 << 30)
    [verdict] = [row.asDict() for row in judged(rows, judge, limit).collect()]
    assert verdict == {**expected, "engine": "dataflow"}


def test_the_systems_order_is_used_whole_and_refused_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    """Spark gives the order to the kernel with the whole history; a history that is too large for that is refused by name."""
    from pyarrow import parquet  # noqa: PLC0415 - slow to import

    judge = of_workload("rw-register", settings=("consistency-model=serializable", "transaction-order=true")).judge
    assert judge is not None
    path = tmp_path / "operations.parquet"
    write_operations(path, positioned(*STALE), run="one")
    rows = spark.read.schema(struct_of(OPERATIONS)).parquet(str(path))
    [expected] = judged_here(parquet.read_table(path).select(OPERATIONS.names).cast(OPERATIONS), judge, 1 << 30)
    [verdict] = [row.asDict() for row in judged(rows, judge, 1 << 30).collect()]
    assert verdict == expected
    assert verdict["verdict"] == "invalid"
    [refused] = [row.asDict() for row in judged(rows, judge, 100).collect()]
    assert (refused["verdict"], refused["cause"]) == ("unknown", "error")
    assert "parts of a history do not use transaction-order" in refused["explanation"]
