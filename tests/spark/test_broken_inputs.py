"""A damaged input is unknown with its reason, and all others are judged."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from checker.formats.parquet import write_operations
from harness.errors import ExitCode
from results.pipeline.command import as_text
from results.pipeline.errors import RowsRefused
from results.pipeline.read.hadoop_files import HadoopFiles
from results.pipeline.write.output import load_manifest, read_table
from tests.spark.test_ingest import HEADER, lines_of, operations_of
from tests.spark.test_job import make_run, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from results.pipeline.write.summary import Summary

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

LARGE = 1 << 63
NO_OPERATION = "the history holds no operation"


def event(**changes: Any) -> bytes:
    """Returns the line of an invoke."""
    told = {"index": 0, "time": 1, "type": "invoke", "process": 0, "f": "read", "value": None, **changes}
    return json.dumps(told).encode() + b"\n"


def histories() -> Mapping[str, tuple[bytes | None, str]]:
    """Returns what `history.jsonl` holds, by the run's name, and what is said of it; None: there is no such file."""
    fault = event(type="info", process="nemesis", f="start-kill", value={"fault": 1, "targets": ["n1"]})
    whole = lines_of(operations_of(3))
    return {
        "header-only": (HEADER, NO_OPERATION),
        "faults-only": (HEADER + fault, NO_OPERATION),
        "empty": (b"", "expected a history, found an empty file"),
        "missing": (None, "expected operations.parquet, history.jsonl or history.edn, found none of them"),
        "torn-header": (HEADER[:20], 'expected a JSON object, found \'{"format":"labrys-hi\''),
        "one-byte": (b"{", "is never closed"),
        "binary": (HEADER + b"\0\xff\n" + whole, "expected a JSON object"),
        "time-of-80-bits": (HEADER + event(time=1 << 80), "expected nanoseconds since the run's start in 'time'"),
        "time-of-63-bits": (HEADER + event(time=LARGE - 1), "expected times below"),
        "index-of-64-bits": (HEADER + event(index=LARGE), "expected integers of 64 bits"),
        "last-index": (HEADER + event(index=LARGE - 1), "expected integers of 64 bits"),
        "no-text": (HEADER + event(f="\ud800"), "expected integers of 64 bits and text in Unicode"),
    }


def make_tables(store: Path) -> Mapping[str, str]:
    """Makes runs whose `operations.parquet` is damaged, and returns what is said of each, by name."""

    def table(name: str) -> Path:
        return make_run(store, name, stale=False) / "operations.parquet"

    rows = parquet.read_table(table("good-again"))
    write_operations(table("no-rows"), [], run="demo/no-rows")
    content = (path := table("truncated")).read_bytes()
    path.write_bytes(content[: len(content) // 2])
    table("no-bytes").write_bytes(b"")
    write_operations(path := table("bad-page"), operations_of(1, 2000), run="demo/bad-page")
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(byte ^ 0x5A for byte in content[4:3000]) + content[3000:])
    parquet.write_table(rows.drop(["phase"]), table("no-phase"))
    place = rows.schema.get_field_index("process")
    names = pa.array([str(number) for number in rows["process"].to_pylist()])
    parquet.write_table(rows.set_column(place, "process", names), table("processes-of-text"))
    place = rows.schema.get_field_index("start_ns")
    early = rows.set_column(place, "start_ns", pa.array([-LARGE] * len(rows), pa.int64()))
    place = rows.schema.get_field_index("run")
    named = early.set_column(place, "run", pa.array(["demo/long-ago"] * len(rows)))
    parquet.write_table(named, table("long-ago"))
    place = rows.schema.get_field_index("process")
    below = rows.set_column(place, "process", pa.array([-1] * len(rows), pa.int64()))
    place = rows.schema.get_field_index("run")
    named = below.set_column(place, "run", pa.array(["demo/below-zero"] * len(rows)))
    parquet.write_table(named, table("below-zero"))
    return {
        "no-rows": NO_OPERATION,
        "truncated": "expected a whole Parquet file",
        "no-bytes": "expected a history, found an empty file",
        "bad-page": "cannot be read",
        "no-phase": "expected a column 'phase'",
        "processes-of-text": "cannot be read: column: [process]",
        "long-ago": "expected start_ns within",
        "below-zero": "expected process from 0 on, found -1",
    }


def make_files(store: Path) -> Mapping[str, str]:
    """Makes histories and tables outside of runs, all damaged, and returns what is said of each, by path."""
    contents = {
        "empty.edn": (b"", "expected a history, found an empty file"),
        "text.edn": (b"hello", "found 'hello'"),
        "open.edn": (b"[{:type :invoke", "is never closed"),
        "empty.jsonl": (b"", "expected a history, found an empty file"),
        "packed.jsonl": (gzip.compress(HEADER), "name it so that it ends in .gz"),
        "torn.jsonl.gz": (
            gzip.compress(HEADER + lines_of(operations_of(3)) * 50)[:-500],
            "Unexpected end of input stream",
        ),
        "empty.parquet": (b"", "expected a history, found an empty file"),
        "table/part-0.parquet": (b"PAR1zzzz", "cannot be read as a table"),
    }
    (store / "table").mkdir()
    for name, (content, _) in contents.items():
        (store / name).write_bytes(content)
    return {str(store / name).removesuffix("/part-0.parquet"): said for name, (_, said) in contents.items()}


def make_half(store: Path) -> str:
    """Makes a history outside of runs of which all operations of key `b` are in quarantine, and returns its path."""
    write = event(f="write", value=1, key="a") + event(index=1, time=2, type="ok", f="write", value=1, key="a")
    lone = event(index=2, time=3, type="ok", process=1, value=1, key="b")
    (store / "half.jsonl").write_bytes(HEADER + write + lone)
    return str(store / "half.jsonl")


def make_histories(store: Path, contents: Mapping[str, tuple[bytes | None, str]]) -> Mapping[str, str]:
    """Makes runs that broke off, and returns what is said of each, by name."""
    for name, (content, _) in contents.items():
        folder = make_run(store, name, stale=False)
        (folder / "operations.parquet").unlink()
        if content is not None:
            (folder / "history.jsonl").write_bytes(content)
    return {name: said for name, (_, said) in contents.items()}


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
    """Holds each run to unknown verdicts whose cause says so and names a file."""
    for name, said in expected.items():
        assert rows.get(name), name
        for row in rows[name]:
            assert (row["verdict"], row["explanation"]) == ("unknown", None), name
            assert said in row["cause"], name
            assert "file:/" in row["cause"], name


def assert_half(rows: list[Any]) -> None:
    """Holds the history of `make_half` to its two keys: the whole one is judged, and the other is unknown."""
    told = {row["key"]: row for row in rows}
    assert {key: row["verdict"] for key, row in told.items()} == {"a": "valid", "b": "unknown"}
    assert "1 rows of this history are in quarantine" in told["b"]["cause"]
    assert "half.jsonl:4: " in told["b"]["cause"]


def test_a_damaged_input_is_unknown_and_the_others_are_judged(spark: SparkSession, tmp_path: Path) -> None:
    """Every kind of damage in one store: each is unknown with a reason that names the file, and no other run suffers."""
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
    results.write_text('{"format":"labrys-results","version":1,"valid":7}')
    results = make_run(store, "good-results", stale=False) / "results.json"
    details = {"seconds": 0.7, "restarted": False, "first_error": None, "error": None}
    part = {"valid": True, "reason": "The system worked again.", "details": details}
    document = {"format": "labrys-results", "version": 1, "valid": True, "reason": "r", "duration_s": 1.0}
    results.write_text(json.dumps({**document, "parts": {"recovered": part}, "faults": [], "sightings": []}))

    found = run(spark, store, out, pictures=True)
    rows = verdicts_of(spark, out)
    assert found.runs == len(rows)
    assert_half(rows.pop(half))
    assert_unknown(rows, expected)
    definite = {name: [row["verdict"] for row in told] for name, told in rows.items() if name not in expected}
    good = {f"demo/{name}": ["valid"] for name in ("good", "good-again", "good-results", "bad-results")}
    assert definite == {**good, "demo/stale": ["invalid"]}
    assert found.exit_code is ExitCode.INVALID
    assert_told(found, (out / "index.html").read_text(encoding="utf-8"))

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


def assert_told(found: Summary, page: str) -> None:
    """Holds the terminal and the page to what is unknown: each first one with its reason, and how many there are."""
    said = as_text(found)
    first = found.undecided[0]
    assert first["cause"] is not None
    assert f"{first['run']}: {first['cause']}" in said
    assert "What is unknown" in page
    assert first["run"] in page
    assert f"{found.counts['unknown']:,} unknown" in page
    assert f"{found.counts['unknown']:,} unknown" in said
    assert " row of file:/" in said


def test_nothing_but_runs_without_operations_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    """Where no history of a store holds an operation, all is unknown, and nothing is called valid."""
    store, out = tmp_path / "store", tmp_path / "out"
    wanted = ("header-only", "faults-only")
    expected = make_histories(store, {name: told for name, told in histories().items() if name in wanted})
    write_operations(make_run(store, "no-rows", stale=False) / "operations.parquet", [], run="demo/no-rows")
    found = run(spark, store, out, pictures=True)
    assert_unknown(
        verdicts_of(spark, out), {f"demo/{name}": said for name, said in {**expected, "no-rows": NO_OPERATION}.items()}
    )
    assert (found.exit_code, found.counts, found.operations) == (ExitCode.UNKNOWN, {"unknown": 3}, 0)
    assert "unknown" in (out / "index.html").read_text(encoding="utf-8").split("<title>")[1][:20]
    make_histories(store, {"empty": (b"", "")})
    with pytest.raises(RowsRefused, match=r"empty/history\.jsonl: expected a history, found an empty file"):
        run(spark, store, out, incremental=True, strict=True)
