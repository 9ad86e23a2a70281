"""The Spark job reads the same as `labrys check`, and reports malformed rows."""

from __future__ import annotations

import gzip
import random
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.errors import BadHistory
from checker.formats.jepsen import write_history
from checker.formats.parquet import NAMES, write_operations
from checker.formats.read import read_histories
from checker.values import json_text
from harness.event_lines import LineEncoder
from harness.op import NEMESIS, Op, Operation, OpType
from harness.pairing import Event, Pairing, events_of
from results.pipeline.errors import BadInput
from results.pipeline.read.sources import find_sources
from results.pipeline.spark import parts
from results.pipeline.spark.hadoop_files import HadoopFiles
from results.pipeline.spark.ingest import IngestedFrames, ingest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

HEADER = b'{"format":"labrys-history","version":1,"test":"t"}\n'


def operations_of(seed: int, count: int = 40) -> list[Operation]:
    """Returns some operations of a register with keys."""
    rng = random.Random(seed)
    made: list[Operation] = []
    for number in range(count):
        f = rng.choice(["read", "write", "cas"])
        value: Any = {"read": None, "write": number, "cas": [number, number + 1]}[f]
        kind = rng.choice([OpType.OK, OpType.OK, OpType.FAIL, OpType.INFO])
        result = rng.choice([None, 4]) if f == "read" else value
        made.append(
            Operation(
                process=number,
                f=f,
                value=value,
                result=result if kind is OpType.OK else None,
                type=kind,
                start_ns=2 * number,
                end_ns=None if kind is OpType.INFO and number % 2 else 2 * number + 1,
                invoke_index=2 * number,
                complete_index=None if kind is OpType.INFO and number % 2 else 2 * number + 1,
                key=rng.choice(["a", "ü"]),
                node="n1",
                error=None if kind is OpType.OK else "timeout",
            )
        )
    return _paired([event._replace(index=index) for index, event in enumerate(events_of(made))])


def _paired(events: Sequence[Op]) -> list[Operation]:
    pairing = Pairing(partial(BadHistory, "made"))
    for event in events:
        pairing.add(Event(event.index, event))
    return pairing.finish()


def lines_of(operations: Sequence[Operation]) -> bytes:
    """Returns the lines of a history without its header."""
    encoder = LineEncoder()
    return b"".join(encoder.event(op).encode() + b"\n" for op in events_of(operations))


def as_rows(operations: Sequence[Operation]) -> list[tuple[Any, ...]]:
    """Returns operations as table rows, without the run."""
    return [
        tuple(
            json_text(getattr(operation, name)) if name in {"value", "result"} else getattr(operation, name)
            for name in NAMES[1:]
        )
        for operation in operations
    ]


def read(spark: SparkSession, where: Path, *paths: Path) -> IngestedFrames:
    """Reads paths like the job."""
    files = HadoopFiles(spark)
    sources = find_sources(files, [str(path) for path in paths])
    return ingest(spark, files, sources, staged=str(where / "staged"), kept=str(where / "kept"))


def quarantined(ingested: IngestedFrames) -> list[tuple[str, int | None, str]]:
    """Returns file name, line and reason of each row in quarantine."""
    if ingested.quarantine is None:
        return []
    rows = ingested.quarantine.collect()
    return [(row["source"].rsplit("/", 1)[-1], row["line"], row["reason"]) for row in rows]


def test_every_format_gives_the_same_operations(spark: SparkSession, tmp_path: Path) -> None:
    """JSONL, EDN, both compressed, Parquet of Labrys and of Spark, under names with spaces and brackets."""
    home = tmp_path / "a store [x={1}]"
    home.mkdir()
    made = {
        name: operations_of(seed)
        for seed, name in enumerate(("j.jsonl", "z.jsonl.gz", "e.edn", "ez.edn.gz", "p.parquet"))
    }
    (home / "j.jsonl").write_bytes(HEADER + lines_of(made["j.jsonl"]))
    (home / "z.jsonl.gz").write_bytes(gzip.compress(HEADER + lines_of(made["z.jsonl.gz"])))
    write_history(home / "e.edn", events_of(made["e.edn"]))
    write_history(home / "plain.edn", events_of(made["ez.edn.gz"]))
    (home / "ez.edn.gz").write_bytes(gzip.compress((home / "plain.edn").read_bytes()))
    (home / "plain.edn").unlink()
    write_operations(home / "p.parquet", made["p.parquet"], run="of parquet")
    ingested = read(spark, tmp_path, home)
    assert quarantined(ingested) == []
    by_run: dict[str, list[tuple[Any, ...]]] = {}
    for row in ingested.operations.orderBy("run", "invoke_index").collect():
        by_run.setdefault(row["run"], []).append(tuple(row[name] for name in NAMES[1:]))
    assert {run.rsplit("/", 1)[-1] for run in by_run} == {*made, "of parquet"} - {"p.parquet"}
    for run, rows in by_run.items():
        name = "p.parquet" if run == "of parquet" else run.rsplit("/", 1)[-1]
        (history,) = read_histories(str(home / name))
        assert rows == as_rows(history.operations), name
    assert {seen.run: seen.operations for seen in ingested.seen} == {run: len(rows) for run, rows in by_run.items()}
    again = read(spark, tmp_path / "again", tmp_path / "kept" / "paired")
    assert again.operations.count() == sum(len(rows) for run, rows in by_run.items() if run != "of parquet")
    for part in (tmp_path / "kept").rglob("*.parquet"):
        assert all(history.operations for history in read_histories(str(part)))


def test_what_is_damaged_is_told_and_costs_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    """Each damaged line has a row with its reason. The other histories are whole. A torn end is not damage."""
    lines = HEADER + lines_of(operations_of(1))
    cut = lines.splitlines(keepends=True)
    home = tmp_path / "histories"
    home.mkdir()
    damaged = {
        "whole.jsonl": lines,
        "torn.jsonl": b"".join(cut[:-1]) + cut[-1][:30],
        "no-header.jsonl": b"{}\n" + lines.removeprefix(HEADER),
        "gap.jsonl": b"".join([*cut[:20], *cut[21:]]),
        "binary.jsonl": b"".join([*cut[:20], b"\xff\xfe\n", *cut[20:]]),
        "twice.jsonl": b"".join([*cut[:20], cut[19], *cut[20:]]),
        "later.edn": b"{:index 0 :type :invoke :process 0 :f :read :value nil :time 1}\n{:type 5}\n",
    }
    for name, content in damaged.items():
        (home / name).write_bytes(content)
    ingested = read(spark, tmp_path, home)
    by_file: dict[str, list[str]] = {}
    for name, _, reason in quarantined(ingested):
        by_file.setdefault(name, []).append(reason)
    assert by_file.keys() == {"no-header.jsonl", "gap.jsonl", "binary.jsonl", "twice.jsonl", "later.edn"}
    assert any("expected one header at the beginning, found 0" in reason for reason in by_file["no-header.jsonl"])
    assert any("expected the indexes from 0 on" in reason for reason in by_file["gap.jsonl"])
    assert any("expected a JSON object" in reason for reason in by_file["binary.jsonl"])
    assert any("expected the indexes from 0 on" in reason for reason in by_file["twice.jsonl"])
    (reason,) = by_file["later.edn"]
    assert reason.startswith("expected a :type")
    whole = str(home / "whole.jsonl")
    rows = ingested.operations.where(ingested.operations["run"] == whole).orderBy("invoke_index").collect()
    assert [tuple(row[name] for name in NAMES[1:]) for row in rows] == as_rows(operations_of(1))


def test_rows_of_tables_that_are_no_operations_are_told(spark: SparkSession, tmp_path: Path) -> None:
    """A table of Spark's is read as it is, except for malformed rows."""
    write_operations(tmp_path / "good.parquet", operations_of(3), run="r")
    good = spark.read.parquet(str(tmp_path / "good.parquet"))
    good.createOrReplaceTempView("good")
    wrong = spark.sql(
        "select * except (type, value, complete_index), "
        "case invoke_index when 0 then 'done' else type end as type, "
        "case when invoke_index between 1 and 8 then '{' else value end as value, "
        "case when invoke_index > 50 then 0L else complete_index end as complete_index from good"
    )
    wrong.write.parquet(str(tmp_path / "table"))
    ingested = read(spark, tmp_path, tmp_path / "table")
    reasons = {reason for _, _, reason in quarantined(ingested)}
    assert reasons == {
        "expected a type ok, fail or info, found done",
        "expected the JSON of a value in column 'value'",
        "expected a complete_index above the invoke_index",
    }
    assert ingested.operations.count() + len(quarantined(ingested)) == good.count()
    good.drop("phase").write.parquet(str(tmp_path / "short"))
    with pytest.raises(BadInput, match="expected a column 'phase'"):
        read(spark, tmp_path / "other", tmp_path / "short")


def test_a_run_has_one_source(spark: SparkSession, tmp_path: Path) -> None:
    """Two tables with a run of one name are refused, because they would be judged as one history."""
    for name in ("one", "two"):
        write_operations(tmp_path / f"{name}.parquet", operations_of(3), run="r")
    with pytest.raises(BadInput, match=r"the run r is in .*one\.parquet and in .*two\.parquet"):
        read(spark, tmp_path, tmp_path / "*.parquet")


def test_faults_of_a_history_are_kept_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Events of the nemesis are not operations."""
    encoder = LineEncoder()
    ops = [
        Op(0, 5, OpType.INFO, NEMESIS, "start-kill", {"fault": 1, "targets": ["n1"]}),
        Op(1, 6, OpType.INVOKE, 0, "write", 1),
        Op(2, 7, OpType.OK, 0, "write", 1),
        Op(3, 9, OpType.INFO, NEMESIS, "stop-kill", {"fault": 1}),
    ]
    (tmp_path / "h.jsonl").write_bytes(HEADER + b"".join(encoder.event(op).encode() + b"\n" for op in ops))
    ingested = read(spark, tmp_path, tmp_path / "h.jsonl")
    assert quarantined(ingested) == []
    assert ingested.operations.count() == 1
    assert ingested.fault_events is not None
    assert [row["f"] for row in ingested.fault_events.orderBy("invoke_index").collect()] == ["start-kill", "stop-kill"]


def test_paths_lead_somewhere_or_are_errors(spark: SparkSession, tmp_path: Path) -> None:
    """A missing path and an empty folder are errors. A file that is not a history is a source with its reason."""
    files = HadoopFiles(spark)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.edn").write_text("hello")
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress(HEADER))
    with pytest.raises(BadInput, match="nothing has this name"):
        find_sources(files, [str(tmp_path / "nothing*")])
    with pytest.raises(BadInput, match="found none of these"):
        find_sources(files, [str(tmp_path / "empty")])
    (packed,) = find_sources(files, [str(tmp_path / "packed.jsonl")])
    assert packed.trouble is not None
    assert re.search(r"packed\.jsonl: is compressed; rename it so that it ends in \.gz", packed.trouble)
    (text,) = find_sources(files, [str(tmp_path / "text.edn")])
    assert text.trouble is not None
    assert re.search(r"text\.edn:1: expected a history: .* found 'hello'", text.trouble)


@pytest.mark.parametrize("bad", [False, pytest.param(True, marks=pytest.mark.night)])
def test_a_large_history_is_read_by_several_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, bad: bool
) -> None:
    """Ranges of 3,000 bytes: operations across their ends, faults, a torn end. With a bad line, one task reads it all."""
    monkeypatch.setattr(parts, "PART_BYTES", 3000)
    ops: list[Op] = []
    for number in range(200):
        process = 1000 * (number % 7) + number // 70
        kind = OpType.OK if (number // 7) % 2 else OpType.INVOKE
        f = "write" if number % 3 else "é"
        ops.append(
            Op(
                number,
                number,
                kind,
                process,
                f if kind is OpType.INVOKE else _open(ops, process).f,
                [number, None],
                "k",
            )
        )
    ops.insert(100, Op(100, 99, OpType.INFO, NEMESIS, "start-kill", {"targets": ["n1"]}))
    encoder = LineEncoder()
    lines = [encoder.event(op._replace(index=index)).encode() + b"\n" for index, op in enumerate(ops)]
    if bad:
        lines[150] = b"{}\n"
    path = tmp_path / "large.jsonl"
    path.write_bytes(HEADER + b"".join(lines) + b'{"index":201,"ti')
    ingested = read(spark, tmp_path / "parts", path)
    monkeypatch.setattr(parts, "PART_BYTES", 1 << 30)
    whole = read(spark, tmp_path / "whole", path)
    assert len(list((tmp_path / "parts" / "staged" / "events").glob("0/*.parquet"))) > 5
    assert quarantined(ingested) == quarantined(whole)
    assert [line for _, line, _ in quarantined(ingested)] == ([152, 159, 166, 203] if bad else [])
    assert (tmp_path / "parts" / "staged" / "events" / "whole").exists() is bad
    rows = [sorted(history.operations.collect(), key=lambda row: row["invoke_index"]) for history in (ingested, whole)]
    assert rows[0] == rows[1]
    faults = [history.fault_events.collect() for history in (ingested, whole) if history.fault_events is not None]
    assert faults[0] == faults[1]
    assert len(faults[0]) == 1
    assert [seen.operations for seen in ingested.seen] == [seen.operations for seen in whole.seen] == [len(rows[0])]


def _open(ops: Sequence[Op], process: int) -> Op:
    return next(op for op in reversed(ops) if op.process == process)
