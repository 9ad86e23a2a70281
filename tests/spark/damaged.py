"""Inputs with every kind of damage, and the expected message for each."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from checker.formats.parquet import write_operations
from tests.spark.runs import make_run
from tests.spark.test_ingest import HEADER, lines_of, operations_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LARGE = 1 << 63
NO_OPERATION = "the history holds no operation"


def event(**changes: Any) -> bytes:
    """Returns the line of an invoke."""
    line = {"index": 0, "time": 1, "type": "invoke", "process": 0, "f": "read", "value": None, **changes}
    return json.dumps(line).encode() + b"\n"


def histories() -> Mapping[str, tuple[bytes | None, str]]:
    """Returns the content of `history.jsonl` (None: no such file) and the expected message, by the run's name."""
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
        "no-text": (HEADER + event(f="\ud800"), "expected the name of a function in whole characters"),
    }


def make_tables(store: Path) -> Mapping[str, str]:
    """Makes runs with a damaged `operations.parquet`, and returns the expected messages by name."""

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
    index = rows.schema.get_field_index("process")
    names = pa.array([str(number) for number in rows["process"].to_pylist()])
    parquet.write_table(rows.set_column(index, "process", names), table("processes-of-text"))
    index = rows.schema.get_field_index("start_ns")
    early = rows.set_column(index, "start_ns", pa.array([-LARGE] * len(rows), pa.int64()))
    index = rows.schema.get_field_index("run")
    named = early.set_column(index, "run", pa.array(["demo/long-ago"] * len(rows)))
    parquet.write_table(named, table("long-ago"))
    index = rows.schema.get_field_index("process")
    below = rows.set_column(index, "process", pa.array([-1] * len(rows), pa.int64()))
    index = rows.schema.get_field_index("run")
    named = below.set_column(index, "run", pa.array(["demo/below-zero"] * len(rows)))
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
    """Makes damaged histories and tables outside of runs, and returns the expected messages by path."""
    contents = {
        "empty.edn": (b"", "expected a history, found an empty file"),
        "text.edn": (b"hello", "found 'hello'"),
        "open.edn": (b"[{:type :invoke", "is never closed"),
        "empty.jsonl": (b"", "expected a history, found an empty file"),
        "packed.jsonl": (gzip.compress(HEADER), "rename it so that it ends in .gz"),
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
    """Makes a history outside of runs with all operations of key `b` in quarantine, and returns its path."""
    write = event(f="write", value=1, key="a") + event(index=1, time=2, type="ok", f="write", value=1, key="a")
    lone = event(index=2, time=3, type="ok", process=1, value=1, key="b")
    (store / "half.jsonl").write_bytes(HEADER + write + lone)
    return str(store / "half.jsonl")


def make_histories(store: Path, contents: Mapping[str, tuple[bytes | None, str]]) -> Mapping[str, str]:
    """Makes runs that broke off, and returns the expected messages by name."""
    for name, (content, _) in contents.items():
        folder = make_run(store, name, stale=False)
        (folder / "operations.parquet").unlink()
        if content is not None:
            (folder / "history.jsonl").write_bytes(content)
    return {name: said for name, (_, said) in contents.items()}
