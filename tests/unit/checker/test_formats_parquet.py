"""operations.parquet: the reader returns what was written, and refuses other files with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from checker.formats.errors import BadHistory
from checker.formats.parquet import COLUMNS, read_operations, schema, write_operations
from checker.values import json_text
from harness.errors import InputError
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from pathlib import Path

READ = Operation(
    process=3,
    f="read",
    value=None,
    result=7,
    type=OpType.OK,
    start_ns=10,
    end_ns=20,
    invoke_index=0,
    complete_index=2,
    key="k1",
    node="n2",
)
CAS = Operation(
    process=4,
    f="cas",
    value=[1, 2],
    result=None,
    type=OpType.INFO,
    start_ns=11,
    end_ns=None,
    invoke_index=1,
    complete_index=None,
    error="timeout: 5 s",
    scheduled_ns=9,
    phase="final",
)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
times = st.integers(0, 2**63 - 1)


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Operations with any values in the order of their invokes."""
    count = draw(st.integers(0, 6))
    return [
        Operation(
            process=draw(st.integers(0, 9)),
            f=draw(texts),
            value=draw(values),
            result=draw(values),
            type=draw(st.sampled_from([OpType.OK, OpType.FAIL, OpType.INFO])),
            start_ns=draw(times),
            end_ns=draw(times),
            invoke_index=2 * number,
            complete_index=2 * number + 1,
            key=draw(st.none() | texts),
            node=draw(st.none() | texts),
            error=draw(st.none() | texts),
            scheduled_ns=draw(st.none() | times),
            phase=draw(st.none() | texts),
            via=draw(st.none() | texts),
            order=draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        )
        for number in range(count)
    ]


def test_two_operations_are_read_back(tmp_path: Path) -> None:
    """Every member is preserved, absent ones as absent. The writer returns the number of rows."""
    path = tmp_path / "operations.parquet"
    assert write_operations(path, iter([READ, CAS]), run="20260101T000000Z") == 2
    assert list(read_operations(path)) == [READ, CAS]
    assert list(read_operations(path, run="20260101T000000Z")) == [READ, CAS]
    assert list(read_operations(path, run="another")) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["operations.parquet"]


@given(operations=histories())
def test_any_operations_are_read_back(tmp_path_factory: pytest.TempPathFactory, operations: list[Operation]) -> None:
    """Every JSON value is preserved, including the types of numbers."""
    path = tmp_path_factory.mktemp("parquet") / "operations.parquet"
    write_operations(path, operations, run="r")
    assert repr(list(read_operations(path))) == repr([_sorted_maps(operation) for operation in operations])


def _sorted_maps(operation: Operation) -> Operation:
    def of(value: Any) -> Any:
        return None if value is None else json.loads(json.dumps(value, sort_keys=True))

    return replace(operation, value=of(operation.value), result=of(operation.result))


def test_the_schema_is_the_published_one(tmp_path: Path) -> None:
    """Names, order, nullability and the version in the metadata are those of docs/reference/formats.md."""
    path = tmp_path / "operations.parquet"
    write_operations(path, [READ], run="r")
    layout = parquet.ParquetFile(path).schema_arrow
    assert layout.names == [column.name for column in COLUMNS]
    assert [field.nullable for field in layout] == [column.nullable for column in COLUMNS]
    assert layout.metadata[b"labrys.format"] == b"labrys-operations"
    assert layout.metadata[b"labrys.version"] == b"1"


def test_equal_values_have_equal_text() -> None:
    """The order of a map's keys is not kept. Numbers of different types stay different. A missing value has no text."""
    assert json_text({"b": 1, "a": [2]}) == json_text({"a": [2], "b": 1}) == '{"a":[2],"b":1}'
    assert len({json_text(value) for value in (1, 1.0, True, "1")}) == 4
    assert json_text(None) is None


def test_a_value_beyond_json_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    """NaN has no JSON, so writing it is an error, and no file remains."""
    with pytest.raises(InputError, match="JSON"):
        write_operations(tmp_path / "operations.parquet", [replace(READ, result=float("nan"))], run="r")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (replace(READ, process="nemesis"), "client's operation"),
        (replace(READ, invoke_index=2**70), "does not fit"),
        (replace(READ, error="\ud800"), "does not fit"),
    ],
)
def test_an_operation_that_does_not_fit_is_refused(tmp_path: Path, operation: Operation, message: str) -> None:
    """A value outside the columns' range is an error."""
    with pytest.raises(InputError, match=message):
        write_operations(tmp_path / "operations.parquet", [operation], run="r")


def test_rows_out_of_order_are_refused(tmp_path: Path) -> None:
    """Readers rely on the order of invokes, so another order is an error of the writer."""
    with pytest.raises(InputError, match="order of their invokes"):
        write_operations(tmp_path / "operations.parquet", [CAS, READ], run="r")


def _table(path: Path, **changed: list[Any]) -> None:
    columns: dict[str, list[Any]] = {
        "run": ["r"],
        "key": [None],
        "process": [0],
        "f": ["read"],
        "type": ["ok"],
        "start_ns": [1],
        "end_ns": [2],
        "value": [None],
        "result": ["5"],
        "node": [None],
        "error": [None],
        "scheduled_ns": [None],
        "phase": [None],
        "invoke_index": [0],
        "complete_index": [1],
    }
    columns.update(changed)
    kinds = {column.name: pa.int64() if column.kind == "int64" else pa.string() for column in COLUMNS}
    arrays = {name: pa.array(column, kinds.get(name)) for name, column in columns.items() if column}
    parquet.write_table(pa.table(arrays), path)


def test_a_table_of_another_writer_is_taken_by_its_columns(tmp_path: Path) -> None:
    """Plain strings, no metadata and an extra column are accepted: Spark writes such files."""
    path = tmp_path / "operations.parquet"
    _table(path, day=["2026-01-01"])
    assert [operation.result for operation in read_operations(path)] == [5]


def test_a_table_may_lack_what_earlier_versions_did_not_write(tmp_path: Path) -> None:
    """The columns `via` and `order` are optional."""
    path = tmp_path / "operations.parquet"
    _table(path)
    assert [(operation.via, operation.order) for operation in read_operations(path)] == [(None, None)]
    _table(path, via=["n2"], order=[-5])
    assert [(operation.via, operation.order) for operation in read_operations(path)] == [("n2", -5)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"type": ["maybe"]}, "row 1: expected a type ok, fail or info, found 'maybe'"),
        ({"process": [None]}, "row 1: expected a value in column 'process', found null"),
        ({"complete_index": [None]}, "row 1: expected a complete_index"),
        ({"result": ["[1"]}, r"row 1: expected the JSON of a value, found '\[1'"),
        ({"result": ["NaN"]}, "row 1: expected the JSON of a value, found 'NaN'"),
        ({"result": ["[1e999]"]}, "row 1: expected a finite number, found inf"),
        ({"result": ["[" * 100_000]}, "row 1: expected the JSON of a value"),
        ({"node": []}, "expected a column 'node'"),
    ],
)
def test_a_bad_table_is_refused(tmp_path: Path, changed: dict[str, list[Any]], message: str) -> None:
    """The error names the row and the problem."""
    path = tmp_path / "operations.parquet"
    _table(path, **changed)
    with pytest.raises(BadHistory, match=message):
        list(read_operations(path))


def test_another_version_is_refused(tmp_path: Path) -> None:
    """A file of a later version may have a different meaning, so it is refused."""
    path = tmp_path / "operations.parquet"
    later = schema().with_metadata({b"labrys.format": b"labrys-operations", b"labrys.version": b"2"})
    parquet.write_table(later.empty_table(), path)
    with pytest.raises(BadHistory, match="expected labrys-operations version 1, found labrys-operations version 2"):
        list(read_operations(path))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"{}\n"])
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """Arbitrary bytes under the right name are an error about the file, not a crash."""
    path = tmp_path / "operations.parquet"
    path.write_bytes(content)
    with pytest.raises(BadHistory, match="expected a Parquet file"):
        list(read_operations(path))
