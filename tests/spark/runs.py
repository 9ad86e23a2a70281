"""Small run folders like those of `labrys test`, and the contents of an analysis's tables."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import msgspec
from pyarrow import parquet
from rich.console import Console

from checker.formats.parquet import write_operations
from harness.faults import FaultRecord, PlannedFault
from harness.targets import AllNodes
from harness.verdict import Part, Verdict
from harness.watch import Sighting
from results.pipeline.local import analyze_here
from results.pipeline.progress import Steps
from results.record.forms import StoredThreshold
from results.stored.document import build
from tests.spark.histories import two_writes_and_a_read
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from results.pipeline.options import AnalysisOptions
    from results.pipeline.write.summary import Summary
    from results.record.record import RunRecord


def make_run(store: Path, stamp: str, *, stale: bool) -> Path:
    """Makes a run folder with or without a stale read."""
    folder = store / "demo" / stamp
    folder.mkdir(parents=True)
    operations = two_writes_and_a_read(stale=stale)
    write_operations(folder / "operations.parquet", operations, run=f"demo/{stamp}")
    test = {
        "format": "labrys-test",
        "version": 2,
        "name": "demo",
        "seed": 3,
        "reproduce": "labrys test --seed 3",
        "started_utc": "2026-11-21T07:51:56+00:00",
        "system": "my-store",
        "workload": "register",
        "nodes": ["n1"],
        "versions": {"labrys": "0.1.0", "my-store": "0.4.0"},
        "options": {},
        "answers": ["mismatch"],
    }
    (folder / "test.json").write_text(json.dumps(test))
    return folder


RECOVERED = Part(
    name="recovered",
    verdict=Verdict.VALID,
    reason="The system worked again.",
    details={"seconds": 0.7, "restarted": False, "first_error": None, "error": None},
)


def make_results(folder: Path) -> None:
    """Gives a run a verdict, faults, sightings and a recovery."""
    planned = PlannedFault(id=0, kind="kill", target=AllNodes(), start_s=0.0, end_s=1.0)
    fault = FaultRecord(planned=planned, targets=("n1",), start_ns=1, end_ns=3, proof=None)
    sighting = Sighting(time_ns=1, node="n1", role="leader", term=1, leader="n1", until_ns=1)
    _write_results(folder, replace(_valid(), faults=[fault], sightings=[sighting]))


def make_valid(folder: Path, *crossed: str) -> None:
    """Gives a run a valid verdict, and thresholds that it crossed."""
    _write_results(
        folder,
        _valid(),
        [StoredThreshold(threshold="p99_ms < 1", measured=2.0, kept=False, crossed=sentence) for sentence in crossed],
    )


def _valid() -> RunRecord:
    return replace(record(seed=3, operations=10), duration_s=1.0, parts=[RECOVERED], faults=(), operations=())


def _write_results(folder: Path, written: RunRecord, thresholds: Sequence[StoredThreshold] = ()) -> None:
    """Writes the results of a run as Labrys writes them today."""
    document = {**build(written), "thresholds": msgspec.to_builtins(thresholds)}
    (folder / "results.json").write_text(json.dumps(document))


def in_one_process(options: AnalysisOptions) -> Summary:
    """Runs the job in this process."""
    return analyze_here(options, Steps(Console(file=StringIO())))


def tables_of(summary: Summary) -> dict[str, list[str]]:
    """Returns the rows of each table of an output folder as comparable texts."""
    return {
        name: sorted(
            repr({column: _plain(value) for column, value in sorted(row.items())})
            for folder in folders
            for row in parquet.read_table(folder.removeprefix("file:")).to_pylist()
        )
        for name, folders in summary.tables.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    return sorted(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def assert_same_in_one_process(summary: Summary, options: AnalysisOptions) -> None:
    """Asserts that the path in one process gives the results of Spark."""
    out = f"{options.out}-in-one-process"
    again = in_one_process(replace(options, out=out))
    assert tables_of(again) == tables_of(summary)
    assert replace(again, out=summary.out, tables=summary.tables) == summary
