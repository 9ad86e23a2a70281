"""A damaged input has the verdict unknown with its reason, and all others are judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands.check.analyze import as_text
from harness.errors import ExitCode
from results.pipeline.spark.hadoop_files import HadoopFiles
from results.pipeline.spark.output import read_table
from results.pipeline.write.output import load_manifest
from tests.spark.damaged import histories, make_files, make_half, make_histories, make_tables
from tests.spark.runs import make_run
from tests.spark.test_job import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from results.pipeline.write.summary import Summary

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def verdicts_of(spark: SparkSession, out: Path) -> dict[str, list[Any]]:
    """Returns the rows of the table of verdicts, by run."""
    return by_run(spark, out, "verdicts")


def by_run(spark: SparkSession, out: Path, name: str) -> dict[str, list[Any]]:
    """Returns the rows of a table, by run."""
    manifest = load_manifest(HadoopFiles(spark), str(out))
    assert manifest is not None
    table = read_table(spark, str(out), manifest, name)
    assert table is not None
    rows: dict[str, list[Any]] = {}
    for row in table.collect():
        rows.setdefault(row["run"], []).append(row)
    return rows


def assert_unknown(rows: Mapping[str, list[Any]], expected: Mapping[str, str]) -> None:
    """Asserts that each run is unknown with the expected cause, which names a file."""
    for name, said in expected.items():
        assert rows.get(name), name
        for row in rows[name]:
            assert (row["verdict"], row["explanation"]) == ("unknown", None), name
            assert said in row["cause"], name
            assert "file:/" in row["cause"], name


def assert_half(rows: list[Any]) -> None:
    """Asserts that the history of `make_half` has two keys: the intact one is judged, and the other is unknown."""
    told = {row["key"]: row for row in rows}
    assert {key: row["verdict"] for key, row in told.items()} == {"a": "valid", "b": "unknown"}
    assert "1 rows of this history are in quarantine" in told["b"]["cause"]
    assert "half.jsonl:4: " in told["b"]["cause"]


def test_a_damaged_input_is_unknown_and_the_others_are_judged(spark: SparkSession, tmp_path: Path) -> None:
    """One store has every kind of damage: each case is unknown with a reason that names the file, and no other run suffers."""
    store, out = tmp_path / "store", tmp_path / "out"
    make_run(store, "good", stale=False)
    make_run(store, "stale", stale=True)
    expected = {f"demo/{name}": said for name, said in make_histories(store, histories()).items()}
    expected |= {f"demo/{name}": said for name, said in make_tables(store).items()}
    expected |= make_files(store)
    half = make_half(store)
    (make_run(store, "bad-test", stale=False) / "test.json").write_text("{nonsense")
    expected["demo/bad-test"] = "bad-test/test.json: expected JSON"
    results = make_run(store, "bad-results", stale=False) / "results.json"
    results.write_text('{"format":"labrys-results","version":3,"valid":7}')
    results = make_run(store, "good-results", stale=False) / "results.json"
    details = {"seconds": 0.7, "restarted": True, "first_error": None, "error": None}
    part = {"valid": True, "reason": "The system worked again.", "details": details, "extra": False}
    document = {
        "format": "labrys-results",
        "version": 3,
        "valid": True,
        "reason": "r",
        "duration_s": 1.0,
        "timings": {},
    }
    results.write_text(json.dumps({**document, "parts": {"recovered": part}, "faults": [], "sightings": []}))

    summary = run(spark, store, out, pictures=True)
    rows = verdicts_of(spark, out)
    assert summary.runs == len(rows)
    assert_half(rows.pop(half))
    assert_unknown(rows, expected)
    definite = {name: [row["verdict"] for row in told] for name, told in rows.items() if name not in expected}
    good = {f"demo/{name}": ["valid"] for name in ("good", "good-again", "good-results", "bad-results")}
    assert definite == {**good, "demo/stale": ["invalid"]}
    assert summary.exit_code is ExitCode.INVALID
    assert_unknown_shown(summary, (out / "index.html").read_text(encoding="utf-8"))

    trends = by_run(spark, out, "trends")
    assert {name: row["verdict"] for name, (row,) in trends.items() if row["verdict"] != "unknown"} == {
        name: verdict for name, (verdict,) in definite.items()
    }
    (row,) = trends["demo/good-results"]
    assert (row["recovery_s"], row["recovery_from"], row["unrecovered"]) == (0.7, "run", 0)
    reasons = {row["reason"] for row in by_run(spark, out, "quarantine")["demo/bad-results"]}
    (reason,) = reasons
    assert reason.startswith("file:/")
    assert "demo/bad-results/results.json: expected true, false or" in reason


def assert_unknown_shown(summary: Summary, page: str) -> None:
    """Asserts that the terminal and the page show the first unknowns with their reasons, and the number of all."""
    said = as_text(summary)
    first = summary.undecided[0]
    assert first["cause"] is not None
    assert f"{first['run']}: {first['cause']}" in said
    assert "Unknown keys" in page
    assert first["run"] in page
    assert f"{summary.counts['unknown']:,} unknown" in page
    assert f"{summary.counts['unknown']:,} unknown" in said
    assert " row of file:/" in said
