"""Workloads with judges in Spark: the table of verdicts has the results of `labrys check`."""

from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from rich.console import Console

from checker.checking import Request, check_file
from checker.deciders import Wanted
from checker.formats.columns import NEEDED
from checker.formats.parquet import read_operations, write_operations
from checker.judging.judged import Judged
from harness.console import plugins
from results.pipeline.decide import judges
from results.pipeline.options import AnalysisOptions
from results.pipeline.spark.job import analyze
from results.pipeline.spark.progress import SparkSteps
from tests.judges import Ids, asks, registry
from tests.spark.histories import two_writes_and_a_read
from tests.spark.runs import assert_same_in_one_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from harness.op import Operation
    from results.pipeline.write.summary import Summary

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TWICE = asks(("a", 1), ("b", 7), ("b", None), ("a", 2), ("b", 8), ("b", 7), (None, 7), (None, 7), ("c", None))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "plugins", registry)


def make_run(
    store: Path, stamp: str, operations: Sequence[Operation], *, workload: Any = "ids", **options: Any
) -> Path:
    """Makes the folder of a run."""
    folder = store / "demo" / stamp
    folder.mkdir(parents=True)
    write_operations(folder / "operations.parquet", operations, run=f"demo/{stamp}")
    test = {
        "format": "labrys-test", "version": 2, "name": "demo", "seed": 3, "reproduce": "labrys test --seed 3",
        "started_utc": "2026-11-21T07:51:56+00:00", "system": "mine", "workload": workload, "nodes": ["n1"],
        "versions": {"labrys": "0.1.0"}, "options": options, "answers": [],
    }  # fmt: skip
    (folder / "test.json").write_text(json.dumps(test))
    return folder


def run(spark: SparkSession, store: Path, out: Path, **wanted: Any) -> tuple[Summary, list[dict[str, Any]]]:
    """Runs the job, and returns its summary and all verdicts."""
    options = AnalysisOptions(paths=[str(store)], out=str(out), pictures=False, wanted=Wanted(**wanted))
    summary = analyze(spark, options, SparkSteps(spark, Console(file=StringIO())))
    assert_same_in_one_process(summary, options)
    rows = spark.read.parquet(*summary.tables["verdicts"]).orderBy("run", "key").collect()
    return summary, [row.asDict() for row in rows]


def checked(path: Path, key: str | None, tmp_path: Path) -> Judged:
    """Returns the result of `labrys check` for one key."""
    alone = tmp_path / "alone.parquet"
    write_operations(alone, [op for op in read_operations(path) if op.key == key], run="alone")
    asked = Request(wanted=Wanted(workload="ids"))
    [result] = check_file(str(alone), asked)
    assert isinstance(result, Judged)
    return result


def test_verdicts_of_judges_are_those_of_labrys_check(spark: SparkSession, tmp_path: Path) -> None:
    """One job has runs with judges, with a model and with an unknown workload: each has the results of its own checker."""
    store = tmp_path / "store"
    bad = make_run(store, "1-bad", TWICE)
    make_run(store, "2-two", TWICE, times=2, pace="no number")
    make_run(store, "3-register", two_writes_and_a_read(stale=True), workload="register")
    make_run(store, "4-hostile", TWICE, times=99)
    make_run(store, "5-unknown", TWICE, workload="tests.judges:Ids")
    make_run(store, "6-foreign", asks(("a", 1), f="push"))
    summary, rows = run(spark, store, tmp_path / "out")
    by_run: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_run.setdefault(row["run"], []).append(row)
    told = {(row["key"], row["verdict"]) for row in by_run["demo/1-bad"]}
    assert told == {("a", "valid"), ("b", "invalid"), (None, "invalid"), ("c", "unknown")}
    for row in by_run["demo/1-bad"]:
        same = checked(bad / "operations.parquet", row["key"], tmp_path)
        said = same.to_json()
        assert (row["verdict"], row["model"], row["analyzer"], row["engine"]) == (
            str(same.verdict), "ids", "ids", "arrays",
        )  # fmt: skip
        assert (row["kind"], row["cause"]) == (said.get("kind"), said.get("cause"))
        assert row["explanation"] == said["explanation"].removeprefix(f"Key {row['key']}: ")
        shown = [op["invoke_index"] for op in json.loads(row["counterexample"] or "[]")]
        assert shown == [op.invoke_index for op in same.shown]
        assert row["op_invoke_index"] == (said.get("op") or {}).get("invoke_index")
    assert {row["verdict"] for row in by_run["demo/2-two"]} == {"valid", "unknown"}
    assert [(row["verdict"], row["model"]) for row in by_run["demo/3-register"]] == [("invalid", "cas-register")]
    [hostile], [unknown], [foreign] = (by_run[f"demo/{name}"] for name in ("4-hostile", "5-unknown", "6-foreign"))
    assert "the option times: 99 is not in the range" in hostile["cause"]
    assert "which labrys never takes from a file" in unknown["cause"]
    assert (foreign["cause"], foreign["explanation"]) == ("error", "event 0: expected ask, found push")
    assert summary.verdict == "invalid"


def test_a_workload_can_be_said_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    """`--workload` decides tables outside of runs, and the user's options take precedence over the runs'."""
    store = tmp_path / "store"
    store.mkdir()
    write_operations(store / "table.parquet", asks(("a", 1), ("a", 1), ("a", 1), ("b", 7), ("b", 7)), run="table")
    make_run(store, "1", TWICE, times=1)
    _, rows = run(spark, store, tmp_path / "out", workload="ids", settings=["times=2"])
    told = {(row["run"], row["key"]) for row in rows if row["verdict"] == "invalid"}
    assert [(name.rpartition("/")[2], key) for name, key in told] == [("table", "a")]
    assert len([row for row in rows if row["run"] == "demo/1"]) == 4


def test_keys_of_any_size_share_a_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key over the limit, a key on which the judge fails and an unreadable key do not affect the others."""
    monkeypatch.setattr(judges, "ROWS_AT_ONCE", 7)
    rows = [
        {"run": "r", "key": f"k{key}", "address": key, "process": index, "f": "ask", "type": "ok", "start_ns": index,
         "end_ns": index + 1, "value": value, "result": str(index % 3 if key == 3 else index),
         "invoke_index": 2 * index, "complete_index": 2 * index + 1}
        for key, size, value in ((1, 3, None), (2, 50, None), (3, 4, None), (4, 2, "5"), (5, 2, "{"), (6, 3, None))
        for index in range(size)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows).select(["address", "run", *NEEDED])
    for size in (1, 5, 100):
        told = judges.decide(iter(table.to_batches(max_chunksize=size)), Ids(), memory_limit=10 * 420)
        told_rows = [row for batch in told for row in batch.to_pylist()]
        assert [(row["key"], row["verdict"], row["operations"]) for row in told_rows] == [
            ("k1", "valid", 3), ("k2", "unknown", 50), ("k3", "invalid", 4),
            ("k4", "unknown", 2), ("k5", "unknown", 2), ("k6", "valid", 3),
        ]  # fmt: skip
        assert told_rows[1]["cause"] == "out-of-memory"
        assert "ZeroDivisionError: a mistake of the judge itself" in told_rows[3]["explanation"]
        assert told_rows[4]["cause"] == "error"
