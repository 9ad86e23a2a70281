"""What the recorder of a run takes, `labrys analyze` takes: the law of `tests/unit/checker/test_one_law_of_values.py`."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from pyarrow import parquet
from rich.console import Console

from checker.deciders import Wanted
from checker.formats.jepsen import write_history
from checker.formats.parquet import write_operations
from harness.history import pair
from results.pipeline.options import AnalysisOptions
from results.pipeline.spark.job import analyze
from results.pipeline.spark.progress import SparkSteps
from tests.spark.runs import assert_same_in_one_process
from tests.unit.checker.test_one_law_of_values import JSON, LARGE, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from harness.op import Value

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

EXAMPLES = 2  # more are in the test of the law in one process


def in_each_form(folder: Path, values: list[Value]) -> list[str]:
    """Writes a history of a write and a read of each value in each form, with keys and without, and returns the files."""
    files: list[str] = []
    for number, value in enumerate(values):
        key = "k" if number % 2 else None
        with recorded(value, key=key) as (path, ops):
            name = f"{number}"
            table, edn, lines = (folder / f"{name}.{suffix}" for suffix in ("parquet", "edn", "jsonl"))
            lines.write_bytes(path.read_bytes())
            write_operations(table, pair(ops), run=f"a/{name}")
            write_history(edn, ops)
            files += map(str, (table, edn, lines))
    return files


def test_analyze_takes_what_a_run_records(spark: SparkSession, tmp_path: Path) -> None:
    """Each form of each value is valid, in Spark and in one process."""
    drawn: list[Value] = []

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(value=JSON)
    def draw_values(value: Value) -> None:
        drawn.append(value)

    draw_values()
    files = in_each_form(tmp_path, [*LARGE, *drawn])
    options = AnalysisOptions(paths=files, out=str(tmp_path / "out"), wanted=Wanted(model="register"), pictures=False)
    summary = analyze(spark, options, SparkSteps(spark, Console(file=StringIO())))
    assert summary.quarantined == 0, summary.reasons
    folders = [folder.removeprefix("file:") for folder in summary.tables["verdicts"]]
    rows = [row for folder in folders for row in parquet.read_table(folder).to_pylist()]
    assert [row for row in rows if row["verdict"] != "valid"] == []
    assert len(rows) == len(files)
    assert_same_in_one_process(summary, options)
