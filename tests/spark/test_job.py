"""The whole job: its output folder is complete, comes from one job, and shows how each run was read."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from checker.deciders import Wanted
from checker.formats.jepsen import write_history
from harness.errors import ExitCode
from harness.pairing import events_of
from results.pipeline.errors import BadInput, BadOutput, RowsRefused
from results.pipeline.options import AnalysisOptions
from results.pipeline.spark import ingest, job
from results.pipeline.spark.hadoop_files import HadoopFiles
from results.pipeline.spark.job import analyze
from results.pipeline.spark.output import read_table
from results.pipeline.spark.progress import SparkSteps
from results.pipeline.write.output import GENERATIONS, LOCK, load_manifest
from tests.spark.histories import two_writes_and_a_read
from tests.spark.runs import assert_same_in_one_process, in_one_process, make_results, make_run, make_valid

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from results.pipeline.write.summary import Summary

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def run(spark: SparkSession, store: Path, out: Path, **changes: Any) -> Summary:
    """Runs the job."""
    options = replace(AnalysisOptions(paths=[str(store)], out=str(out), pictures=False), **changes)
    return analyze(spark, options, SparkSteps(spark, Console(file=StringIO())))


def test_a_job_is_whole_and_a_rerun_replaces(
    spark: SparkSession, compiling: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full job, an interrupted one, a refused one, and an incremental one."""
    store, out = tmp_path / "store", tmp_path / "out"
    make_valid(make_run(store, "1", stale=False), "p99_ms < 1: it is 2")
    bad = make_run(store, "2", stale=True)
    (store / "demo" / "latest").symlink_to("2")
    make_results(bad)
    first = run(compiling, store, out, pictures=True)
    assert_same_in_one_process(first, AnalysisOptions(paths=[str(store)], out=str(out)))
    assert "demo/2" in (out / "index.html").read_text(encoding="utf-8")
    assert first.exit_code is ExitCode.INVALID
    # One run is invalid, and the other one crosses a threshold.
    assert (first.counts, first.outcomes, first.operations) == ({"valid": 1, "invalid": 1}, {"unexpected": 2}, 6)
    assert [row["run"] for row in first.refuted] == ["demo/2"]
    files = HadoopFiles(spark)
    before = load_manifest(files, str(out))
    assert before is not None
    runs = read_table(spark, str(out), before, "runs")
    assert runs is not None
    row = runs.where("run = 'demo/1'").collect()[0]
    assert (row["day"], row["system_version"], row["model"], row["seed"], row["said_crossed"]) == (
        "2026-11-21",
        "0.4.0",
        "cas-register",
        "3",
        ["p99_ms < 1: it is 2"],
    )

    # An interrupted job leaves nothing, and the earlier output is still there.
    def breaks(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job, "read_records", breaks)
        with pytest.raises(KeyboardInterrupt):
            run(spark, store, out)
    assert load_manifest(files, str(out)) == before
    assert [path.name for path in (out / GENERATIONS).iterdir()] == [before.generations[0].id]
    assert not (out / LOCK).exists()

    # Another running job locks the folder. The next step takes over the lock of a dead one.
    (out / LOCK).write_text(json.dumps({"host": os.uname().nodename, "pid": os.getppid(), "since": "now"}))
    with pytest.raises(BadOutput, match="another job writes here"):
        run(spark, store, out)
    (out / LOCK).write_text(json.dumps({"host": os.uname().nodename, "pid": 2**22 + 1, "since": "then"}))

    # A history that is not whole does not prevent a verdict. Only the changed run is read again.
    event = b'{"index":1,"time":0,"type":"invoke","process":0,"f":"read","value":null}'
    broken = b'{"format":"labrys-history","version":1}\n' + event + b"\n"
    (store / "demo" / "broken.jsonl").write_bytes(broken)
    for file in bad.iterdir():
        file.unlink()
    bad.rmdir()
    make_run(store, "2", stale=False)
    with pytest.raises(RowsRefused, match="expected the indexes from 0 on"):
        run(spark, store, out, incremental=True, strict=True)
    second = run(spark, store, out, incremental=True)
    assert (second.runs, second.read, second.counts) == (3, 2, {"valid": 2, "unknown": 1})
    assert second.exit_code is ExitCode.UNKNOWN
    assert second.quarantined == 1
    assert "in quarantine" in second.undecided[0]["cause"]
    assert len(second.tables["verdicts"]) == 2
    with pytest.raises(BadOutput, match="without --incremental"):
        run(spark, store, out, incremental=True, wanted=Wanted(model="register"))
    third = run(spark, store, out, incremental=True)
    assert (third.read, third.counts) == (0, second.counts)


def test_two_runs_of_one_name_are_refused_before_anything_is_judged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one job, and with an earlier run in the folder: the error names both paths, and nothing is paired or judged."""
    one, other, out = tmp_path / "one", tmp_path / "other", tmp_path / "out"
    make_run(one, "1", stale=False)
    in_one_process(AnalysisOptions(paths=[str(one)], out=str(out), pictures=False))
    folder = make_run(other, "1", stale=False)

    def works(*_: Any, **__: Any) -> Any:
        raise AssertionError("the job goes on")

    monkeypatch.setattr(job, "verdicts", works)
    monkeypatch.setattr(ingest, "read_histories", works)
    both = {"paths": [str(one), str(other)]}
    refused = r"the run demo/1 is in file:\S*one/demo/1 and in file:\S*other/demo/1; give only one of them"
    with pytest.raises(BadInput, match=refused):
        run(spark, other, tmp_path / "new", **both)
    with pytest.raises(BadInput, match=refused):
        run(spark, other, out, incremental=True)
    (folder / "operations.parquet").unlink()
    (folder / "history.jsonl").write_text('{"format":"labrys-history","version":1}\n')
    with pytest.raises(BadInput, match=refused):
        run(spark, other, tmp_path / "new", **both)
    with pytest.raises(BadInput, match=refused):
        run(spark, other, out, incremental=True)


def test_a_history_in_edn_is_judged_by_what_it_says(spark: SparkSession, tmp_path: Path) -> None:
    """In one job, a read of nil after a write is wrong in Labrys' history, and unconstrained in Jepsen's."""
    store = tmp_path / "store"
    store.mkdir()
    operations = two_writes_and_a_read(stale=False)
    operations[-1] = replace(operations[-1], result=None)
    write_history(store / "ours.edn", events_of(operations))
    told = (store / "ours.edn").read_text()
    (store / "theirs.edn").write_text(re.sub(r", :labrys/conventions \{[^}]*\}", "", told))
    (store / "bad.edn").write_text(told.replace(":nil-read :exact", ":nil-read :some"))
    summary = run(spark, store, tmp_path / "out", wanted=Wanted(model="register"))
    assert summary.counts == {"invalid": 1, "valid": 1, "unknown": 1}
    assert [row["run"].rpartition("/")[2] for row in summary.refuted] == ["ours.edn"]
    assert [row["run"].rpartition("/")[2] for row in summary.undecided] == ["bad.edn"]


def test_an_output_folder_of_something_else_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    """The job writes no tables into a folder with other files."""
    store = tmp_path / "store"
    make_run(store, "1", stale=False)
    with pytest.raises(BadOutput, match="expected a new folder"):
        run(spark, store, store)
    assert [path.name for path in store.iterdir()] == ["demo"]
