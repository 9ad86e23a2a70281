"""Spark measures runs slice by slice, with the results of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from results.pipeline.measure import spans
from results.pipeline.measure.timelines import measured as measured_here
from results.pipeline.schema import VERDICTS
from results.pipeline.spark.envelopes import posted, table_of
from results.pipeline.spark.measured import measured
from results.pipeline.spark.types import struct_of
from tests.spark.histories import write_runs
from tests.unit.pipeline.test_timelines import random_runs, subject_of
from tests.unit.pipeline.test_timelines import table_of as operations_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("rows", [1 << 21, 20])
def test_spark_measures_what_one_process_measures(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Each row of each table, for runs of one slice and of many; the operations come in any order."""
    monkeypatch.setattr(spans, "SLICE_ROWS", rows)
    case = random_runs()
    subjects = {run: subject_of(case, run) for run in case.runs}
    expected: dict[str, list[str]] = {}
    for run, operations in case.runs.items():
        for name, timeline in measured_here(subjects[run], operations_of(run, operations)).items():
            expected.setdefault(name, []).extend(map(plain, timeline))
    records = posted(
        spark,
        (
            (run, kind, row)
            for run, subject in subjects.items()
            for kind, rows in (
                ("runs", [{"answers": subject.answers, "refusals": subject.refusals}]),
                ("faults", subject.faults),
                ("sightings", subject.sightings),
            )
            for row in rows
        ),
    )
    files = write_runs(tmp_path, case.runs)
    verdicts = spark.createDataFrame([], struct_of(VERDICTS))
    frame = measured(spark.read.parquet(*files).repartition(3), records, verdicts).localCheckpoint()
    for name, its in expected.items():
        assert sorted(plain(row.asDict()) for row in table_of(frame, name).collect()) == sorted(its), name


def plain(row: dict[str, Any]) -> str:
    """Returns a row as text."""
    return repr(
        [(name, sorted(dict(value).items()) if name == "errors" else value) for name, value in sorted(row.items())]
    )
