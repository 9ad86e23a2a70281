"""Users' own models in Spark: the workers import them, and the table of verdicts has the results of `labrys check`."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from random import Random
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from checker.deciders import Wanted
from results.pipeline.decide.asked import VerdictOptions
from results.pipeline.decide.rows import OBJECTS
from results.pipeline.options import AnalysisOptions
from results.pipeline.schema import OPERATIONS
from results.pipeline.spark.job import analyze
from results.pipeline.spark.progress import SparkSteps
from results.pipeline.spark.types import struct_of
from results.pipeline.spark.verdicts import verdicts
from tests.own_models import Broken, MaxRegister, draw
from tests.spark.histories import by_check, row_order, write_runs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RUNS = 40


def test_a_model_of_a_user_s_own_decides(spark: SparkSession, tmp_path: Path) -> None:
    """Verdict, kind, explanation and order of each run are those of `labrys check`. A model error leaves keys unknown."""
    random = Random("own models in spark")
    runs = {f"run-{number}": sorted(draw(MaxRegister(), random), key=row_order) for number in range(RUNS)}
    runs = {run: operations for run, operations in runs.items() if operations}
    runs |= {
        f"told-{run}": [replace(op, order=index if number % 2 else -index) for index, op in enumerate(operations)]
        for number, (run, operations) in enumerate(list(runs.items())[: RUNS // 2])
    }
    options = AnalysisOptions(
        paths=write_runs(tmp_path, runs),
        out=str(tmp_path / "out"),
        pictures=False,
        wanted=Wanted(model=f"{MaxRegister.__module__}:{MaxRegister.__name__}"),
    )
    summary = analyze(spark, options, SparkSteps(spark, Console(file=StringIO())))
    told = spark.read.parquet(*summary.tables["verdicts"]).collect()
    rows = {(row["run"], row["key"]): row.asDict() for row in told}
    expected = by_check(VerdictOptions(model=MaxRegister), runs)
    assert rows.keys() == expected.keys()
    for name, fields in expected.items():
        row = rows[name]
        assert (row["model"], row["engine"]) == ("max-register", OBJECTS)
        same = [field for field in fields if field != "counterexample"]
        assert {field: row[field] for field in same} == {field: fields[field] for field in same}, name
    assert {row["verdict"] for row in rows.values()} == {"valid", "invalid"}
    assert {row["order_agrees"] for row in rows.values()} == {None, "valid", "invalid"}
    assert summary.orders["invalid"] >= len(summary.misordered) > 0

    operations = spark.read.schema(struct_of(OPERATIONS)).parquet(str(tmp_path / "operations.parquet"))
    broken = verdicts(operations, VerdictOptions(model=Broken)).where("explanation like '%ZeroDivisionError%'")
    assert {(row["verdict"], row["cause"]) for row in broken.collect()} == {("unknown", "error")}
