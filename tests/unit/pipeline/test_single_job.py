"""The job in one process: its folder is one job's, whole; what it cannot do, it says before anything is written.

That its tables are Spark's is held in tests/spark.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from pyarrow import parquet
from rich.console import Console

import cli
from checker.deciders import Wanted
from checker.formats.jepsen import write_history
from checker.formats.parquet import write_operations
from harness.errors import ExitCode, InputError
from harness.pairing import events_of
from harness.pool import Pool
from results.pipeline import local
from results.pipeline.errors import BadInput, BadOutput, NotSuited, RowsRefused
from results.pipeline.options import AnalysisOptions
from results.pipeline.progress import Steps
from results.pipeline.read.local_files import LocalFiles, is_local
from results.pipeline.read.sources import find_sources
from results.pipeline.schema import VERSION
from results.pipeline.write.output import GENERATIONS, LOCK, load_manifest
from results.record.forms import Results
from tests.spark.damaged import NO_OPERATION, histories, make_files, make_half, make_histories, make_tables
from tests.spark.histories import two_writes_and_a_read
from tests.spark.runs import in_one_process, make_results, make_run, make_valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from results.pipeline.write.summary import Summary

# What breaks off, or is a data set, and so a matter of Spark's.
OF_SPARK = frozenset({"torn.jsonl.gz", "table"})


def run(store: Path, out: Path, **changes: Any) -> Summary:
    """Does the job."""
    return in_one_process(replace(AnalysisOptions(paths=[str(store)], out=str(out), pictures=False), **changes))


def rows_of(summary: Summary, name: str) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of a table by run."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for folder in summary.tables[name]:
        for row in parquet.read_table(folder.removeprefix("file:")).to_pylist():
            rows.setdefault(row["run"], []).append(row)
    return rows


def test_a_job_is_whole_and_a_rerun_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full job, one that breaks off, one that is refused, and one that reads only what has changed."""
    store, out = tmp_path / "store", tmp_path / "out"
    make_run(store, "1", stale=False)
    bad = make_run(store, "2", stale=True)
    make_results(bad)
    (store / "demo" / "latest").symlink_to("2")
    first = run(store, out, pictures=True)
    assert "demo/2" in (out / "index.html").read_text(encoding="utf-8")
    assert (first.exit_code, first.counts, first.operations) == (ExitCode.INVALID, {"valid": 1, "invalid": 1}, 6)
    assert [row["run"] for row in first.refuted] == ["demo/2"]
    before = load_manifest(LocalFiles(), str(out))
    assert before is not None

    def breaks(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(local, "decided", breaks)
        with pytest.raises(KeyboardInterrupt):
            run(store, out)
    assert load_manifest(LocalFiles(), str(out)) == before
    assert [path.name for path in (out / GENERATIONS).iterdir()] == [before.generations[0].id]
    assert not (out / LOCK).exists()

    (out / LOCK).write_text(json.dumps({"host": os.uname().nodename, "pid": os.getppid(), "since": "now"}))
    with pytest.raises(BadOutput, match="another job writes here"):
        run(store, out)
    (out / LOCK).write_text(json.dumps({"host": os.uname().nodename, "pid": 2**22 + 1, "since": "then"}))

    make_histories(store, {"header-only": histories()["header-only"], "missing": histories()["missing"]})
    shutil.rmtree(bad)
    make_run(store, "2", stale=False)
    with pytest.raises(RowsRefused, match=r"expected operations\.parquet, history.jsonl or history"):
        run(store, out, incremental=True, strict=True)
    second = run(store, out, incremental=True)
    assert (second.runs, second.read, second.counts) == (4, 3, {"valid": 2, "unknown": 2})
    assert (second.exit_code, second.quarantined) == (ExitCode.UNKNOWN, 1)
    assert len(second.tables["verdicts"]) == 2
    with pytest.raises(BadOutput, match="without --incremental"):
        run(store, out, incremental=True, wanted=Wanted(model="register"))
    third = run(store, out, incremental=True)
    assert (third.read, third.counts) == (0, second.counts)


def test_the_results_of_these_runs_have_the_form_of_today(tmp_path: Path) -> None:
    """The helpers write what Labrys writes: all members that the types demand."""
    folder = make_run(tmp_path, "1", stale=True)
    for write in (make_results, make_valid):
        write(folder)
        results = msgspec.json.decode((folder / "results.json").read_bytes(), type=Results)
        assert results.valid is True
        assert [fault.planned.id for fault in results.faults] == ([0] if write is make_results else [])


def test_a_view_of_a_system_has_its_version(tmp_path: Path) -> None:
    """The versions of a run of `my-store-log` name `my-store`."""
    store = tmp_path / "store"
    file = make_run(store, "1", stale=False) / "test.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"system": "my-store-log"}))
    ((row,),) = rows_of(run(store, tmp_path / "out"), "runs").values()
    assert (row["system"], row["system_version"]) == ("my-store-log", "0.4.0")


def test_damage_is_unknown_with_its_reason(tmp_path: Path) -> None:
    """Bad events, and files that are empty, missing, or no history: each is unknown and in quarantine. Others are judged."""
    store = tmp_path / "store"
    make_run(store, "good", stale=False)
    expected = _make_damaged(store)
    (make_run(store, "bad-test", stale=False) / "test.json").write_text("{nonsense")
    expected["demo/bad-test"] = "bad-test/test.json: expected JSON"
    (make_run(store, "bad-results", stale=False) / "results.json").write_text('{"format":"labrys-results","version":3}')
    summary = run(store, tmp_path / "out", pictures=True)
    rows = rows_of(summary, "verdicts")
    assert {
        name for name, its in rows.items() if any(row["verdict"] == "valid" for row in its)
    } == rows.keys() - expected
    assert summary.counts == {"valid": 3, "unknown": sum(len(rows[name]) for name in expected)}
    for name, said in expected.items():
        for row in rows[name]:
            assert (row["verdict"], row["explanation"]) == ("unknown", None), name
            assert said in row["cause"], name
            assert "file:/" in row["cause"], name
    quarantined = rows_of(summary, "quarantine")
    assert NO_OPERATION not in str(quarantined)
    assert "demo/bad-results" in quarantined


def _make_damaged(store: Path) -> dict[str, str]:
    """Makes damaged sources that one process reads; returns what is said of each run."""
    expected = {f"demo/{name}": said for name, said in _without(make_histories(store, histories())).items()}
    expected |= {f"demo/{name}": said for name, said in _without(make_tables(store)).items()}
    expected |= _without(make_files(store))
    for name in OF_SPARK:
        shutil.rmtree(store / "demo" / name, ignore_errors=True)
        shutil.rmtree(store / name, ignore_errors=True)
        (store / name).unlink(missing_ok=True)
    return expected


def _without(told: Mapping[str, str]) -> dict[str, str]:
    return {name: said for name, said in told.items() if name.rpartition("/")[2] not in OF_SPARK}


def test_a_bad_event_costs_only_its_key(tmp_path: Path) -> None:
    """The key of a completion without an invoke is unknown, with the line; the other key is judged."""
    half = make_half(tmp_path)
    its = {row["key"]: row for row in rows_of(run(Path(half), tmp_path / "out"), "verdicts")[half]}
    assert {key: row["verdict"] for key, row in its.items()} == {"a": "valid", "b": "unknown"}
    assert "half.jsonl:4: process 1 completes 'read' (ok), but has no operation open" in its["b"]["cause"]


def test_a_file_that_cannot_be_read_to_its_end_is_a_matter_of_spark(tmp_path: Path) -> None:
    """So is a data set of several files. Nothing is written."""
    stores = [tmp_path / name for name in sorted(OF_SPARK)]
    for store in stores:
        store.mkdir()
        make_histories(store, histories())
        make_tables(store)
        make_files(store)
        paths = [*(store / "demo").iterdir(), *(path for path in store.iterdir() if path.name != "demo")]
        for path in paths:
            if path.name != store.name:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert _refused(store, tmp_path / "out"), store.name
        assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("*.json")), store


def _refused(store: Path, out: Path) -> bool:
    try:
        run(store, out)
    except NotSuited:
        return True
    return False


def test_what_is_too_much_for_one_process_is_a_matter_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More operations than one process takes."""
    store = tmp_path / "store"
    make_run(store, "1", stale=False)
    with pytest.raises(NotSuited, match=r"more than 2 operations, the limit of this process \(--in-process\)"):
        run(store, tmp_path / "out", in_process=2)
    run(store, tmp_path / "out", in_process=3)


def test_a_key_that_does_not_fit_into_its_memory_is_unknown(tmp_path: Path) -> None:
    """With the cause, and the run is not left out."""
    make_run(tmp_path / "store", "1", stale=False)
    (row,) = _verdicts(run(tmp_path / "store", tmp_path / "out", memory_limit=240))
    assert (row["verdict"], row["cause"]) == ("unknown", "out-of-memory")


def long_events(count: int, spaces: int) -> bytes:
    """A history of `count` reads in JSON Lines, each event padded with spaces."""
    pad = " " * spaces
    return b"".join(
        b'{"index":%d,"time":%d,%s"type":"%s","process":0,"f":"read","value":null}\n'
        % (2 * number + later, 2 * number + later, pad.encode(), kind)
        for number in range(count)
        for later, kind in enumerate((b"invoke", b"ok"))
    )


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".edn", ".edn.gz"])
def test_operations_are_counted_and_not_estimated(tmp_path: Path, ending: str) -> None:
    """Neither long lines nor compression change the number. A word on the border of two parts counts once."""
    count = 500
    data = long_events(count, spaces=300)
    if ".edn" in ending:
        data = b"".join(
            b"{:index %d, :time %d, :type :%s, :process 0, :f :read, :value nil}%s\n"
            % (2 * n + later, n, kind, b" " * 300)
            for n in range(count)
            for later, kind in enumerate((b"invoke", b"ok"))
        )
    path = tmp_path / f"history{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    run(path, tmp_path / "out", in_process=count)
    with pytest.raises(NotSuited, match="more than 499 operations"):
        run(path, tmp_path / "out2", in_process=count - 1)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64])
def test_counting_does_not_depend_on_the_parts(size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file comes in parts of any size."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(long_events(20, spaces=3))
    monkeypatch.setattr("checker.formats.source._BUFFER_BYTES", size)
    (source,) = find_sources(LocalFiles(), [str(path)])
    assert local._count(source, 100) == 20


def test_csv_is_refused_by_name(tmp_path: Path) -> None:
    """A file that the user names ends the job; one in a folder is a source that cannot be read, and is never skipped."""
    store = tmp_path / "store"
    make_run(store, "1", stale=False)
    table = store / "table.csv"
    table.write_text("run,f,type\nr,read,ok\n")
    with pytest.raises(
        BadInput, match=r"table\.csv: expected a history, found a table in CSV, which Labrys does not read"
    ):
        run(table, tmp_path / "out")
    summary = run(store, tmp_path / "out")
    assert summary.counts["unknown"] == 1
    assert [reason.reason for reason in summary.reasons if "CSV, which Labrys does not read" in reason.reason]


def test_paths_of_other_file_systems_are_a_matter_of_spark(tmp_path: Path) -> None:
    """A scheme, and a pattern that only Hadoop understands."""
    assert all(map(is_local, ("store", "/store", "./a*/[ab]?", "file:/store", str(tmp_path))))
    assert not any(
        map(is_local, ("hdfs://host/store", "s3a://bucket/x", "file:///store", "/store/{a,b}", "file:store"))
    )
    with pytest.raises(NotSuited, match="hdfs://host/store: is not a plain path of this machine"):
        in_one_process(AnalysisOptions(paths=["hdfs://host/store"], out=str(tmp_path / "out")))


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    """In one job, and in a folder that has one of them already."""
    one, other, out = tmp_path / "one", tmp_path / "other", tmp_path / "out"
    make_run(one, "1", stale=False)
    run(one, out)
    make_run(other, "1", stale=False)
    refused = r"the run demo/1 is in file:\S*one/demo/1 and in file:\S*other/demo/1; give only one of them"
    with pytest.raises(BadInput, match=refused):
        run(other, tmp_path / "new", paths=[str(one), str(other)])
    with pytest.raises(BadInput, match=refused):
        run(other, out, incremental=True)


def test_histories_are_judged_by_what_they_say(tmp_path: Path) -> None:
    """A read of nil after a write is wrong in a history of ours; events are kept as a table that can be read again."""
    store = tmp_path / "store"
    store.mkdir()
    operations = two_writes_and_a_read(stale=False)
    operations[-1] = replace(operations[-1], result=None)
    write_history(store / "ours.edn", events_of(operations))
    summary = run(store, tmp_path / "out", wanted=Wanted(model="register"))
    assert summary.counts == {"invalid": 1}
    (folder,) = summary.tables["operations"]
    again = run(
        store,
        tmp_path / "again",
        paths=[f"{folder}/*/*/*/*.parquet"],
        wanted=Wanted(model="register"),
    )
    assert again.counts == {"invalid": 1}


def test_lines_without_a_header_count_in_their_order(tmp_path: Path) -> None:
    """Two files of another tool, with one warning for both; one of them reads what nobody wrote."""
    store = tmp_path / "store"
    store.mkdir()
    for name, value in (("good", 1), ("bad", 2)):
        written, read = {"f": "write", "process": 0, "value": 1}, {"f": "read", "process": 1}
        events = [
            {**written, "type": "invoke"}, {**written, "type": "ok"},
            {**read, "type": "invoke"}, {**read, "type": "ok", "value": value},
        ]  # fmt: skip
        (store / f"{name}.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    said = StringIO()
    options = AnalysisOptions(
        paths=[str(store)], out=str(tmp_path / "out"), pictures=False, wanted=Wanted(model="register")
    )
    summary = local.analyze_here(options, Steps(Console(file=said, width=500)))
    assert {row["run"].rpartition("/")[2]: row["verdict"] for row in _verdicts(summary)} == {
        "good.jsonl": "valid",
        "bad.jsonl": "invalid",
    }
    assert said.getvalue().count("not the header of a history.jsonl") == 1
    assert "bad.jsonl and 1 other history: the first line is an event" in said.getvalue()


def _verdicts(summary: Summary) -> list[dict[str, Any]]:
    return [row for rows in rows_of(summary, "verdicts").values() for row in rows]


def test_the_first_invalid_keys_get_a_counterexample(tmp_path: Path) -> None:
    """Those that show it earliest, ten of a run; all of them get an explanation."""
    operations = [
        operation
        for number in range(12)
        for operation in two_writes_and_a_read(stale=True, key=f"{11 - number:02}", since=number * 6)
    ]
    store = tmp_path / "store"
    write_operations(make_run(store, "1", stale=False) / "operations.parquet", operations, run="demo/1")
    (rows,) = rows_of(run(store, tmp_path / "out"), "verdicts").values()
    assert {row["verdict"] for row in rows} == {"invalid"}
    assert all(row["explanation"] for row in rows)
    assert sorted(row["key"] for row in rows if row["counterexample"] is None) == ["00", "01"]


def _files(summary: Summary) -> dict[str, bytes]:
    """Returns the files of all tables, by the table and the name."""
    folders = [(name, Path(folder.removeprefix("file:"))) for name, its in summary.tables.items() for folder in its]
    return {
        f"{name}/{path.relative_to(folder)}": path.read_bytes()
        for name, folder in folders
        for path in sorted(folder.rglob("*.parquet"))
    }


def test_other_processes_write_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a pool, each table is the same file, damaged sources too; an error that ends the job is the same error."""
    store = tmp_path / "store"
    for number in range(6):
        make_results(make_run(store, str(number), stale=number % 3 == 0))
    make_valid(make_run(store, "valid", stale=False))
    _make_damaged(store)
    here = run(store, tmp_path / "here", keep_operations=True)
    calls: list[int] = []
    passed = Pool.map

    def counted(self: Pool, *arguments: Any, **others: Any) -> Any:
        calls.append(len(arguments[1]))
        return passed(self, *arguments, **others)

    monkeypatch.setattr(local, "_FEW_RUNS", 1)
    monkeypatch.setattr(local, "processes", lambda: 2)
    monkeypatch.setattr(Pool, "map", counted)
    there = run(store, tmp_path / "there", keep_operations=True)
    assert len(calls) >= 3
    assert _files(there) == _files(here)
    assert (there.counts, there.quarantined) == (here.counts, here.quarantined)
    with pytest.raises(InputError, match="never closed") as refused:
        run(store, tmp_path / "bad", wanted=Wanted(model="register", initial="{"))
    monkeypatch.setattr(local, "_FEW_RUNS", 1 << 20)
    with pytest.raises(InputError) as as_before:
        run(store, tmp_path / "bad", wanted=Wanted(model="register", initial="{"))
    assert str(refused.value) == str(as_before.value)


def test_the_end_of_a_process_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to do, and the output folder is unchanged."""
    store = tmp_path / "store"
    make_run(store, "1", stale=False)
    monkeypatch.setattr(local, "_FEW_RUNS", 1)
    monkeypatch.setattr(local, "processes", lambda: 2)
    monkeypatch.setattr(local, "_judged", _dies)
    with pytest.raises(local.WorkerEnded, match="--incremental"):
        run(store, tmp_path / "out")
    assert load_manifest(LocalFiles(), str(tmp_path / "out")) is None


def _dies(*_: Any, **__: Any) -> Any:
    os._exit(3)


def test_an_output_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A folder that holds other files is no place for tables."""
    store = tmp_path / "store"
    make_run(store, "1", stale=False)
    with pytest.raises(BadOutput, match="expected a new folder"):
        run(store, store)
    assert [path.name for path in store.iterdir()] == ["demo"]


def test_checksums_of_hadoop_go_with_the_file_that_they_are_of(tmp_path: Path) -> None:
    """A file that Hadoop wrote and that is replaced here can be read by Hadoop: its old checksums are gone."""
    files = LocalFiles()
    path = tmp_path / "manifest.json"
    checksums = tmp_path / ".manifest.json.crc"
    checksums.write_bytes(b"crc\0")
    files.replace(f"file:{path}", b"new")
    assert (path.read_bytes(), checksums.exists()) == (b"new", False)
    checksums.write_bytes(b"crc\0")
    assert [entry.name for entry in files.folder(str(tmp_path))] == ["manifest.json"]
    files.delete(f"file:{path}")
    assert list(tmp_path.iterdir()) == []


def trends_of(summary: Summary) -> dict[str, dict[str, Any]]:
    """Returns the rows of the newest table of trends, by run."""
    return {
        row["run"]: row for row in parquet.read_table(summary.tables["trends"][-1].removeprefix("file:")).to_pylist()
    }


def test_a_run_that_crosses_a_threshold_is_unexpected_on_the_page(tmp_path: Path) -> None:
    """Its verdict stays valid; the row and the page have the threshold."""
    store, out = tmp_path / "store", tmp_path / "out"
    make_valid(make_run(store, "1", stale=False))
    make_valid(make_run(store, "2", stale=False), "p99_ms < 1: it is 2")
    summary = run(store, out, pictures=True)
    assert dict(summary.outcomes) == {"as-expected": 1, "unexpected": 1}
    rows = trends_of(summary)
    assert (rows["demo/1"]["crossed"], rows["demo/1"]["outcome"]) == ([], "as-expected")
    assert (rows["demo/2"]["crossed"], rows["demo/2"]["outcome"]) == (["p99_ms < 1: it is 2"], "unexpected")
    assert rows["demo/2"]["verdict"] == "valid"
    page = (out / "index.html").read_text(encoding="utf-8")
    assert '<span class="mark invalid">✗ valid</span><br><span class="quiet">crossed p99_ms &lt; 1: it is 2' in page
    assert "1 of 2 runs came out unexpectedly" in page


def test_an_analysis_of_another_version_does_not_go_on(tmp_path: Path) -> None:
    """Its tables may have other columns."""
    store, out = tmp_path / "store", tmp_path / "out"
    make_valid(make_run(store, "1", stale=False))
    run(store, out, incremental=True)
    manifest = next(path for path in out.iterdir() if path.suffix == ".json")
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "version": VERSION - 1}))
    with pytest.raises(BadOutput, match=f"found labrys-analysis {VERSION - 1}"):
        run(store, out, incremental=True)


def test_half_of_a_character_in_a_reason_costs_no_verdict(tmp_path: Path) -> None:
    """A program may answer it, and the reason of the verdict has the value."""
    events = [
        {"type": kind, "f": "read", "value": value, "process": 0, "time": time}
        for time, (kind, value) in enumerate([("invoke", None), ("ok", "\ud800")])
    ]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="ascii")
    words = ["analyze", str(path), "--model", "register", "--no-spark", "--no-pictures", "--out", str(tmp_path / "out")]
    assert cli.invoke(words) == 1
