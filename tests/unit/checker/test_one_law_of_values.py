"""What the recorder of a run takes, every reader and writer of histories takes; it refuses what it does not take."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from enum import IntEnum, StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checker.checking import Checked, Request, check_file
from checker.deciders import Wanted
from checker.formats.jepsen import write_history
from checker.formats.parquet import read_operations, write_operations
from checker.formats.read import read_histories
from harness.errors import InputError
from harness.event_lines import MAX_LINE_BYTES
from harness.history import HistoryWriter, MemoryHistory, pair, read_history
from harness.op import OpType
from harness.values import MAX_NESTING, exact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.op import Op, Operation, Value

DIGITS = sys.get_int_max_str_digits()
CHARACTERS = st.characters(exclude_categories=()) | st.sampled_from('\ud800\udfff\ud83d\ude00\x00\x7f\u2028"\\:#_')
TEXTS = st.text(CHARACTERS, max_size=6) | st.sampled_from(
    ["", "nil", ":a", "#inst", "\ud800", "\ud83d\ude00", "1", "a b"]
)
NUMBERS = (
    st.integers()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([10**4200, -(10**4200), 2**63, -(2**63) - 1, 10**DIGITS - 1])
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def nested(depth: int, value: Value = 1, *, by_key: bool = False) -> Value:
    """Returns a value inside of `depth` lists, or dicts."""
    for _ in range(depth):
        value = {"a": value} if by_key else [value]
    return value


LARGE: tuple[Value, ...] = (
    "\ud800",
    ["\ud83d\ude00", "a\udfff"],
    {"": {"#inst": "x"}, "a b": [{}], "\ud800": 1},
    "x" * (2 << 20),
    10**4200,
    10**DIGITS - 1,
    nested(MAX_NESTING),
    nested(MAX_NESTING, "\ud800", by_key=True),
    5e-324,
)


@contextmanager
def recorded(*values: Value, key: str | None) -> Iterator[tuple[Path, list[Op]]]:
    """Records a write of each value and a read that returns it, and yields the file and the events."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        history = HistoryWriter(path, {})
        for value in values:
            for f, argument in (("write", value), ("read", None)):
                for op_type, its in ((OpType.INVOKE, argument), (OpType.OK, value)):
                    time_ns = len(history.ops)
                    history.append(time_ns=time_ns, op_type=op_type, process=0, f=f, value=its, key=key, node="n1")
        history.close()
        yield path, history.ops


def shapes(operations: list[Operation]) -> list[str]:
    """Returns the exact values of operations; JSON tells 1 from 1.0 and from true."""
    return [json.dumps((op.f, op.key, op.type, op.value, op.result), sort_keys=True) for op in operations]


def verdict(path: Path) -> str:
    """Returns the verdict of `labrys check` for a register."""
    (result,) = check_file(str(path), Request(wanted=Wanted(model="register")))
    assert isinstance(result, Checked), result
    return str(result.verdict)


def assert_taken_everywhere(value: Value, *, key: str | None) -> None:
    """Asserts that each form of a history has the value, and gives the same verdict."""
    with recorded(value, key=key) as (path, ops):
        operations = pair(ops)
        assert shapes(list(pair(read_history(path).ops))) == shapes(operations)
        (read,) = read_histories(str(path))
        assert shapes(list(read.operations)) == shapes(operations)
        assert verdict(path) == "valid"
        table = path.with_name("operations.parquet")
        write_operations(table, operations, run="a/b")
        assert shapes(list(read_operations(table))) == shapes(operations)
        assert verdict(table) == "valid"
        edn = path.with_name("history.edn")
        write_history(edn, ops)
        assert verdict(edn) == "valid"


@settings(deadline=None, max_examples=30)
@given(value=JSON, key=st.sampled_from(["k", None]))
@example("\ud800", "k")
@example(["\ud83d\ude00", "a\udfff"], "k")
@example({"": {"#inst": "x"}, "a b": [{}], "\ud800": 1}, "k")
@example("x" * (2 << 20), None)
@example(["\ud800" * 5000, 1], "k")
@example(10**4200, "k")
@example(10**DIGITS - 1, "k")
@example(nested(MAX_NESTING), "k")
@example(nested(MAX_NESTING), None)
@example(nested(MAX_NESTING, "\ud800"), "k")
@example(nested(MAX_NESTING, by_key=True), "k")
@example(nested(MAX_NESTING - 1, []), "k")
@example(5e-324, "k")
@example(1e308, "k")
def test_what_a_run_records_each_form_of_its_history_has(value: Value, key: str | None) -> None:
    """history.jsonl, history.edn and operations.parquet have the value, and `labrys check` takes each."""
    assert_taken_everywhere(value, key=key)


@settings(deadline=None, max_examples=30)
@given(values=st.lists(JSON, min_size=2, max_size=3, unique_by=lambda value: json.dumps(exact(value), sort_keys=True)))
def test_each_form_tells_values_apart_alike(values: list[Value]) -> None:
    """A read of the first value after a write of the last is invalid in each form, and never a match by its text."""
    with recorded(*values, key="k") as (path, ops):
        last = ops[-1]
        stale = [*ops[:-1], last._replace(value=ops[0].value)]
        lines = path.read_text().splitlines()
        lines[-1] = json.dumps({**json.loads(lines[-1]), "value": ops[0].value})
        path.write_text("\n".join(lines) + "\n")
        table, edn = path.with_name("operations.parquet"), path.with_name("history.edn")
        write_operations(table, pair(stale), run="a/b")
        write_history(edn, stale)
        assert {verdict(file) for file in (path, table, edn)} == {"invalid"}


class Colour(StrEnum):
    """A text with a class of its own."""

    RED = "red"


class Number(IntEnum):
    """A number with a class of its own."""

    ONE = 1


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ((1, (2, "a")), [1, [2, "a"]]),
        ({2: 2, None: 3, True: 4, 1.5: 5}, {"2": 2, "null": 3, "true": 4, "1.5": 5}),
        ([Colour.RED, Number.ONE, {Colour.RED: Number.ONE}], ["red", 1, {"red": 1}]),
        ("\ud83d\ude00", "\U0001f600"),
    ],
    ids=["tuples", "keys", "enumerations", "two halves"],
)
@pytest.mark.parametrize("memory", [False, True], ids=["file", "memory"])
def test_a_value_is_recorded_as_readers_of_the_file_get_it(
    tmp_path: Path, value: Value, taken: Value, *, memory: bool
) -> None:
    """So the verdict of the run is that of its file."""
    history = MemoryHistory() if memory else HistoryWriter(tmp_path / "h.jsonl", {})
    event = history.append(time_ns=0, op_type=OpType.INVOKE, process=0, f="write", value=value)
    assert repr(event.value) == repr(taken)
    if isinstance(history, HistoryWriter):
        history.close()
        assert repr(read_history(tmp_path / "h.jsonl").ops[0].value) == repr(taken)


def test_a_client_that_changes_its_argument_does_not_change_the_history() -> None:
    """The recorded value shares no list with the argument."""
    history, argument = MemoryHistory(), [1, {"a": [2]}]
    history.append(time_ns=0, op_type=OpType.INVOKE, process=0, f="write", value=argument)
    argument[1]["a"].append(3)  # type: ignore[index]
    argument.clear()
    assert history.ops[0].value == [1, {"a": [2]}]


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        nested(MAX_NESTING + 1),
        nested(5000),
        {"a": nested(MAX_NESTING, by_key=True)},
        CYCLE,
        10**DIGITS,
        [-(10**5000)],
        math.nan,
        [math.inf],
        {1: 2, "1": 3},
        {(1, 2): 3},
        {1, 2},
        b"x",
        object(),
        "x" * MAX_LINE_BYTES,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_history_does_not_take_is_refused_with_its_reason(tmp_path: Path, value: Value) -> None:
    """The driver makes an outcome of the refusal; nothing is recorded."""
    history = HistoryWriter(tmp_path / "h.jsonl", {})
    with pytest.raises(InputError):
        history.append(time_ns=0, op_type=OpType.INVOKE, process=0, f="write", value=value)
    assert not history.ops
    history.close()


@pytest.mark.parametrize("member", ["key", "node", "phase", "via", "f"])
@pytest.mark.parametrize("name", ["a\ud800", 5])
def test_a_name_with_half_a_character_is_refused(tmp_path: Path, member: str, name: Any) -> None:
    """A column of Parquet has whole characters only."""
    history = HistoryWriter(tmp_path / "h.jsonl", {})
    names: Any = {"f": "read", member: name}
    with pytest.raises(InputError, match="whole characters"):
        history.append(time_ns=0, op_type=OpType.OK, process=0, **names)
    history.close()


@pytest.mark.parametrize("member", ["key", "node", "phase", "f"])
def test_readers_refuse_a_name_with_half_a_character(tmp_path: Path, member: str) -> None:
    """The error names the file and the line, in JSON and in EDN."""
    event = {"type": "invoke", "process": 0, "f": "read", "value": None, member: "a\ud800"}
    lines = tmp_path / "h.jsonl"
    lines.write_text(json.dumps(event) + "\n")
    edn = tmp_path / "h.edn"
    shown: dict[Any, str] = {**{name: f":{name}" for name in ("read", "invoke")}, None: "nil", 0: "0"}
    text = " ".join(f":{name} {shown.get(value, json.dumps(value))}" for name, value in event.items())
    edn.write_text(f"{{{text}}}\n")
    for path in (lines, edn):
        with pytest.raises(InputError, match=rf"{path.name}:1.*(whole characters|that is a (text|keyword))"):
            read_histories(str(path))


def test_an_error_with_half_a_character_is_recorded_with_a_replacement(tmp_path: Path) -> None:
    """Errors are texts for people; each form has the same one, and so have files of others."""
    with recorded(1, key="k") as (path, ops):
        event = {"index": 4, "time": 9, "type": "invoke", "process": 1, "f": "read", "value": None, "key": "k"}
        lines = [event, {**event, "index": 5, "type": "info", "error": "not-leader: \ud800\ud83d\ude00"}]
        path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in lines))
        read = read_history(path).ops
        assert read[-1].error == "not-leader: \ufffd\U0001f600"
        write_operations(tmp_path / "o.parquet", pair(read), run="a/b")
        write_history(tmp_path / "h.edn", read)
        for form in (tmp_path / "o.parquet", tmp_path / "h.edn"):
            (history,) = read_histories(str(form))
            assert history.operations[-1].error == read[-1].error
        assert len(ops) == 4
    history_in_memory = MemoryHistory()
    history_in_memory.append(time_ns=0, op_type=OpType.FAIL, process=0, f="read", error="a\udc00")
    assert history_in_memory.ops[0].error == "a\ufffd"
