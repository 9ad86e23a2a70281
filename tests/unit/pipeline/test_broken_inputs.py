"""What is found out about a damaged input without Spark, and which input a failure of Spark's is about."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet

from checker.formats.parquet import schema
from results.pipeline.errors import Unreadable
from results.pipeline.read.broken import without as without_file
from results.pipeline.read.events import BAD, END, OPERATION
from results.pipeline.read.footers import FOOTER_BYTES, footer_trouble
from results.pipeline.read.sources import Input
from results.pipeline.spark.broken import blamed
from results.pipeline.spark.events import events_read

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(*, without_columns: Sequence[str] = ()) -> bytes:
    """Returns the bytes of a table of operations without rows."""
    held = io.BytesIO()
    parquet.write_table(schema().empty_table().drop(list(without_columns)), held)
    return held.getvalue()


def told(content: bytes) -> str | None:
    """Returns what is wrong with a file of these bytes."""
    return footer_trouble(content[-FOOTER_BYTES:], len(content))


def test_a_whole_table_has_no_trouble() -> None:
    """Also where the footer is longer than what was read of it."""
    assert told(table()) is None
    assert footer_trouble(table()[-100:], len(table())) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PAR1", "4 bytes without a footer"),
        (table()[:-1], "without a footer at the end"),
        (b"PAR1" + b"\xff" * 4 + b"PAR1", "a footer of 4,294,967,295 bytes in a file of 12"),
        (b"PAR1" + b"\xff" * 40 + (40).to_bytes(4, "little") + b"PAR1", "an unreadable footer"),
        (table(without_columns=["phase"]), "expected a column 'phase', found run, key"),
    ],
)
def test_a_footer_tells_what_is_wrong(content: bytes, said: str) -> None:
    """A file that breaks off, one whose footer is no footer, and one that lacks a column."""
    reason = told(content)
    assert reason is not None
    assert said in reason


@pytest.mark.parametrize(
    "changes", [{"time": 1 << 70}, {"index": 1 << 63}, {"index": (1 << 63) - 1}, {"process": 1 << 63}, {"f": "\ud800"}]
)
def test_an_event_that_no_column_holds_is_a_bad_row(changes: dict[str, Any]) -> None:
    """It does not end the task: it goes into quarantine with its reason, and its neighbours are read."""
    good = {"index": 0, "time": 1, "type": "invoke", "process": 0, "f": "read", "value": None}
    lines = [json.dumps(fields).encode() for fields in (good, {**good, **changes}, {**good, "index": 1, "process": 1})]
    lines.insert(0, b'{"format":"labrys-history","version":1}')
    batch = pa.RecordBatch.from_arrays([pa.array(lines), pa.array(["file:///h.jsonl"] * 4)], names=["line", "file"])
    read = events_read({"file:/h.jsonl": ("r", "jsonl")}, keyed=None)
    rows = pa.Table.from_batches(read(iter([batch]))).to_pylist()
    assert sorted(row["row"] for row in rows) == sorted([OPERATION, OPERATION, BAD, END])
    (bad,) = (row for row in rows if row["row"] == BAD)
    reason, sample = bad["reason"], bad["sample"]
    assert reason.startswith("expected ")
    assert bad["line"] == 3
    assert sample


class Thrown:
    """A Java exception as the bridge shows it."""

    def __init__(self, message: str, condition: str | None, path: str, cause: Thrown | None = None) -> None:
        self._message, self._condition, self._path, self._cause = message, condition, path, cause

    def getCause(self) -> Thrown | None:  # noqa: N802 - Java's name
        """Returns the exception that it comes from."""
        return self._cause

    def getMessage(self) -> str:  # noqa: N802 - Java's name
        """Returns what it says."""
        return self._message

    def getCondition(self) -> str:  # noqa: N802 - Java's name
        """Returns Spark's name of it; other exceptions have no such method."""
        if self._condition is None:
            raise AttributeError("getCondition")
        return self._condition

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - Java's name
        """Returns what Spark's message is made of."""
        return {"path": self._path}


class Bridged(Exception):  # noqa: N818 - as py4j calls it
    """An error of the bridge to Java."""

    def __init__(self, thrown: Thrown) -> None:
        super().__init__("Py4J")
        self.java_exception = thrown


def without(sources: list[Input], error: Exception) -> list[Input] | None:
    """Returns the sources without the one that an error of Spark is about."""
    about = blamed(error)
    return None if about is None else without_file(sources, *about)


ONE = Input(path="file:/a b", data="file:/a b/h.jsonl", format="jsonl", run="a", day="", is_run=True, fingerprint="f")
TABLE = Input(path="file:/t", data="file:/t", format="parquet", run=None, day="", is_folder=True, fingerprint="g")


@pytest.mark.parametrize(
    ("path", "about"),
    [
        ("file:///a%20b/h.jsonl", ONE),
        ("file:/a b/h.jsonl", ONE),
        ("file:/a b/test.json", ONE),
        ("file:///t/part-0.parquet", TABLE),
        ("file:/t", TABLE),
    ],
)
def test_spark_names_the_input_that_it_cannot_read(path: str, about: Input) -> None:
    """The source of that file gets the reason, and is read again by the next incremental job; others stay as they are."""
    error = Bridged(
        Thrown("job failed", None, "", Thrown("r", "FAILED_READ_FILE.NO_HINT", path, Thrown("torn", None, "")))
    )
    sources = without([ONE, TABLE], error)
    assert sources is not None
    (changed,) = (source for source in sources if source.trouble is not None)
    plain = path.replace("///", "/").replace("%20", " ")
    assert changed == replace(about, trouble=f"{plain}: cannot be read: torn", fingerprint="")
    assert without(sources, error) is None, "a job never begins anew for the same input"


def test_a_failure_of_something_else_is_no_inputs() -> None:
    """A file of the job's own, and an error without a file, end the job."""
    assert without([ONE, TABLE], Bridged(Thrown("r", "FAILED_READ_FILE.NO_HINT", "file:/out/part-0.parquet"))) is None
    assert without([ONE, TABLE], Bridged(Thrown("r", "OUT_OF_MEMORY", "file:/t"))) is None
    assert without([ONE, TABLE], RuntimeError("file:/t")) is None
    error = Unreadable("file:/t", "expected a column 'f', found g")
    sources = without_file([ONE, TABLE], error.path, str(error))
    assert sources is not None
    assert [source.trouble for source in sources] == [None, "file:/t: expected a column 'f', found g"]
