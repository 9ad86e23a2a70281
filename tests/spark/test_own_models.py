"""Models of a user's own in Spark: the workers import them, and the table of verdicts says what `labrys check` says."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from random import Random
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from checker.deciders import Wanted
from results.pipeline.decide.details import OBJECTS
from results.pipeline.job import AnalysisOptions, analyze
from results.pipeline.progress import Steps
from tests.own_models import Broken, MaxRegister, draw
from tests.spark.histories import by_check, row_order, write_runs

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RUNS = 40


def judged(spark: SparkSession, folder: Path, place: str, out: str) -> tuple[Any, dict[Any, dict[str, Any]]]:
    """Does the job with the model of a place; returns what it says, and its verdicts by run and key."""
    options = AnalysisOptions(
        paths=[str(folder / "operations.parquet")], out=str(folder / out), pictures=False, wanted=Wanted(model=place)
    )
    found = analyze(spark, options, Steps(spark, Console(file=StringIO())))
    rows = spark.read.parquet(*found.tables["verdicts"]).collect()
    return found, {(row["run"], row["key"]): row.asDict() for row in rows}


def test_a_model_of_a_user_s_own_decides(spark: SparkSession, tmp_path: Path) -> None:
    """Verdict, kind, sentence and order of each run are those of `labrys check`; a mistake of the model leaves keys unknown."""
    random = Random("own models in spark")
    runs = {f"run-{number}": sorted(draw(MaxRegister(), random), key=row_order) for number in range(RUNS)}
    runs = {run: operations for run, operations in runs.items() if operations}
    runs |= {
        f"told-{run}": [replace(op, order=place if number % 2 else -place) for place, op in enumerate(operations)]
        for number, (run, operations) in enumerate(list(runs.items())[: RUNS // 2])
    }
    write_runs(tmp_path, runs)
    found, rows = judged(spark, tmp_path, f"{MaxRegister.__module__}:{MaxRegister.__name__}", "out")
    expected = by_check(MaxRegister(), runs)
    assert rows.keys() == expected.keys()
    for name, told in expected.items():
        row = rows[name]
        assert (row["model"], row["engine"]) == ("max-register", OBJECTS)
        same = [field for field in told if field != "counterexample"]
        assert {field: row[field] for field in same} == {field: told[field] for field in same}, name
    assert {row["verdict"] for row in rows.values()} == {"valid", "invalid"}
    assert {row["order_agrees"] for row in rows.values()} == {None, "valid", "invalid"}
    assert found.orders["invalid"] >= len(found.misordered) > 0

    _, rows = judged(spark, tmp_path, f"{Broken.__module__}:{Broken.__name__}", "broken")
    causes = {
        (row["verdict"], row["cause"]) for row in rows.values() if "ZeroDivisionError" in (row["explanation"] or "")
    }
    assert causes == {("unknown", "error")}
