"""operations.parquet as arrays: equal to the operations, row by row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from checker.formats.columns import (
    INTEGER,
    NEVER,
    NOTHING,
    OTHER,
    PAIR,
    ColumnReader,
    Columns,
    batches_of,
    integers_of,
    joined,
)
from checker.formats.errors import BadHistory
from checker.formats.parquet import COLUMNS, open_parquet, read_operations, write_operations
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from pathlib import Path

times = st.integers(0, 2**63 - 1)
values = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.integers(),
    st.lists(st.integers(-(10**18), 10**18), min_size=2, max_size=2),
    st.lists(st.integers(), max_size=3),
    st.sampled_from(
        ["", "1", "-", [1, "2"], [1, 2.0], {"a": 1}, True, False, 1.0, -0.0, [], [[1, 2], 3], 10**18, -(10**18)]
    ),
)
names = st.sampled_from(["read", "write", "a", "", "é"])


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Operations with values of all kinds."""
    made = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from([OpType.OK, OpType.FAIL, OpType.INFO]))
        ended = kind is not OpType.INFO or draw(st.booleans())
        made.append(
            Operation(
                process=draw(st.integers(0, 3)),
                f=draw(names),
                value=draw(values),
                result=draw(values),
                type=kind,
                start_ns=draw(times),
                end_ns=draw(st.none() | st.integers(0, 2**63 - 1)),
                invoke_index=2 * number,
                complete_index=2 * number + 1 if ended else None,
                key=draw(st.none() | names),
            )
        )
    return made


def whole_file(path: Path) -> Columns:
    """Returns all rows of a file."""
    reader = ColumnReader(str(path))
    return joined([some for _, some in batches_of(open_parquet(path), reader)], reader)


def _value(kind: int, first: int, second: int, texts: Any) -> Any:
    return (
        {NOTHING: None, INTEGER: first, PAIR: [first, second]}.get(kind) if kind != OTHER else json.loads(texts[first])
    )


@given(operations=histories())
def test_arrays_say_what_operations_say(tmp_path_factory: pytest.TempPathFactory, operations: list[Operation]) -> None:
    """Every array, read back, is the operation's member. Types are the narrowest that fit."""
    path = tmp_path_factory.mktemp("columns") / "operations.parquet"
    write_operations(path, operations, run="r")
    read = whole_file(path)
    assert len(read) == len(operations)
    for row, operation in enumerate(read_operations(path)):
        assert read.keys[read.key[row]] == operation.key
        assert read.functions[read.function[row]] == operation.f
        assert (OpType.OK, OpType.FAIL, OpType.INFO)[read.type[row]] is operation.type
        assert read.process[row] == operation.process
        assert read.start[row] == operation.invoke_index
        assert read.end[row] == (NEVER if operation.type is OpType.INFO else operation.complete_index)
        assert read.start_ns[row] == operation.start_ns
        assert read.end_ns[row] == (-1 if operation.end_ns is None else operation.end_ns)
        for column, value in ((read.value, operation.value), (read.result, operation.result)):
            kind = int(column.kind[row])
            back = _value(kind, int(column.first[row]), int(column.second[row]), read.texts)
            assert (repr(back), kind == NOTHING) == (repr(value), value is None)
            if type(value) is int and abs(value) < 10**18:
                assert kind == INTEGER
            if kind == PAIR:
                assert all(type(member) is int for member in value)
    assert [row for _, rows in read.rows_by_key() for row in rows] == sorted(
        range(len(read)), key=lambda row: read.key[row]
    )


def test_numbers_are_the_same_in_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, functions and texts keep their places for any batches of the file."""
    path = tmp_path / "operations.parquet"
    rows = [
        Operation(
            process=0,
            f="fg"[number % 2],
            value="abc"[number % 3],
            result=None,
            type=OpType.OK,
            start_ns=0,
            end_ns=0,
            invoke_index=2 * number,
            complete_index=2 * number + 1,
            key=str(number % 4),
        )
        for number in range(50)
    ]
    write_operations(path, rows, run="r")
    whole = whole_file(path)
    batches = parquet.ParquetFile(path).iter_batches(batch_size=7)
    reader = ColumnReader("spark")
    cut = joined([reader.of_batch(batch) for batch in batches], reader)
    assert (cut.keys, cut.functions, cut.texts) == (["0", "1", "2", "3"], ["f", "g"], ['"a"', '"b"', '"c"'])
    assert np.array_equal(cut.key, whole.key)
    assert np.array_equal(cut.value.first, whole.value.first)


def _table(path: Path, **rows: list[Any]) -> None:
    good = {"process": 0, "f": "read", "type": "ok", "start_ns": 1, "invoke_index": 0, "complete_index": 1}
    length = len(next(iter(rows.values())))
    table = {
        column.name: pa.array(
            rows.get(column.name, [good.get(column.name)] * length),
            pa.int64() if column.kind == "int64" else pa.string(),
        )
        for column in COLUMNS
    }
    parquet.write_table(pa.table(table), path)


def test_json_of_other_writers_is_the_same_value(tmp_path: Path) -> None:
    """Spaces, zeros and orders of members that Labrys's writer does not use make no difference."""
    path = tmp_path / "operations.parquet"
    _table(path, value=["1", "-0", "[ 1, 2 ]", '{"b":1, "a":2}', '{"a":2,"b":1}', "null", "[1,2]"])
    read = whole_file(path)
    assert read.value.kind.tolist() == [INTEGER, INTEGER, PAIR, OTHER, OTHER, NOTHING, PAIR]
    assert read.value.first.tolist() == [1, 0, 1, 0, 0, 0, 1]
    assert read.texts == ['{"a":2,"b":1}']


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"type": ["ok", "begun"]}, "row 2: expected a type ok, fail or info"),
        ({"process": [0, None]}, "row 2: expected a value in column 'process', found null"),
        ({"complete_index": [1, None]}, "row 2: expected a complete_index"),
        ({"value": ["1", "[1"]}, "expected the JSON of a value, found '\\[1'"),
        ({"value": ["1", "NaN"]}, "expected the JSON of a value, found 'NaN'"),
    ],
)
def test_bad_rows_are_refused(tmp_path: Path, changed: dict[str, list[Any]], reason: str) -> None:
    """The error is that of the reader of operations."""
    path = tmp_path / "operations.parquet"
    _table(path, **changed)
    with pytest.raises(BadHistory, match=reason):
        whole_file(path)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("[]", []),
        ("[0]", [0]),
        ("[1,-2,300]", [1, -2, 300]),
        ("[999999999999999999]", [999_999_999_999_999_999]),
        ("[1000000000000000000]", None),
        ("[99999999999999999999999]", None),
        ("[1,2.5]", None),
        ("[1e3]", None),
        ("[true]", None),
        ('["1"]', None),
        ('["1,2"]', None),
        ("[[1,2],[3]]", None),
        ("[null]", None),
        ("5", None),
        ('"[1]"', None),
        ("{}", None),
    ],
)
def test_a_list_of_integers_is_read_without_an_object_for_each(text: str, members: list[int] | None) -> None:
    """Any other text goes to the JSON reader."""
    integers = integers_of(text)
    assert (None if integers is None else integers.tolist()) == members
