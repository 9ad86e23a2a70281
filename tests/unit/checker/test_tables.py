"""Long histories in Parquet are decided from arrays, with the same results as objects."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import checker.checking
from checker.checking import Checked, Request, check_file
from checker.decide import excerpts, tables
from checker.decide.decision import decide
from checker.decide.question import Question
from checker.deciders import Wanted
from checker.errors import Disagreement
from checker.formats import columns
from checker.formats.errors import BadHistory
from checker.formats.parquet import write_operations
from checker.models import model
from checker.models.opcodes import CAS, DEQUEUE_ANY, DEQUEUE_EMPTY
from checker.search import brute, solving
from checker.search.encode import encode
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.deciding import analysis, check_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from checker.search.solving import Limits

HISTORIES = 25
KEYS = 3
NO_VALUE = {DEQUEUE_ANY, DEQUEUE_EMPTY}
TWO_VALUES = {CAS}
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("register", {}),
    ("register", {"initial": 2, "nil_read": "any"}),
    ("cas-register", {}),
    ("cas-register", {"initial": "a", "nil_read": "any", "failed_cas": "observe"}),
    ("mutex", {"initial": True}),
    ("owner-mutex", {}),
    ("counter", {"initial": 1}),
    ("fifo-queue", {}),
    ("fifo-queue", {"initial": [1, "b"], "crashed_dequeue": "never"}),
    ("unordered-queue", {"initial": [0, 0]}),
    ("unordered-queue", {"crashed_dequeue": "never"}),
]
ASKED: dict[str, Any] = {
    "wanted": Wanted(model="register"),
    "conventions": {},
    "keyed": None,
    "algorithm": "auto",
    "time_limit_s": None,
    "memory_limit": None,
    "cross_check": False,
    "certificate": False,
}


def _renamed(value: Any, names: dict[int, Any]) -> Any:
    if isinstance(value, list):
        return [_renamed(member, names) for member in value]
    return names.get(value, value) if type(value) is int else value


def _keyed(
    draw: Callable[..., Any], name: str, random: Random, options: dict[str, Any], keys: int
) -> tuple[Any, list[Operation]]:
    """Draws a history of several keys. Some have numbers as names, of all types of values."""
    choices: list[dict[int, Any]] = [{}, {1: "b", 2: 10**30}, {0: None, 2: [3]}, {1: -5, 2: 2.5}]
    names = random.choice(choices) if name != "counter" else {}
    merged: list[Operation] = []
    object_ = model(name, **options)
    for index in range(keys):
        object_, operations = draw(name, random, unique=random.random() < 0.5, options=options)
        merged += [
            replace(
                operation,
                process=10 * index + operation.process,
                key=f"k{index}" if keys > 1 else None,
                invoke_index=keys * operation.invoke_index + index,
                complete_index=keys * operation.complete_index + index,
                value=_renamed(operation.value, names),
                result=_renamed(operation.result, names),
            )
            for operation in operations
        ]
    return object_, sorted(merged, key=lambda operation: operation.invoke_index)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[f"{n}{''.join(o)}" for n, o in OPTIONS])
def test_arrays_say_what_objects_say(
    draw: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: dict[str, Any],
) -> None:
    """Verdicts of all keys, the failing operation, the ok before it, and a counterexample that brute force confirms."""
    monkeypatch.setattr(columns, "BATCH_ROWS", 3)
    random = Random(f"{name}{options}")
    path = tmp_path / "operations.parquet"
    seen = set()
    for number in range(HISTORIES):
        object_, operations = _keyed(draw, name, random, options, KEYS if number % 2 else 1)
        write_operations(path, operations, run="r")
        monkeypatch.setattr(excerpts, "OBJECTS", 2 if number % 3 == 0 else 100)
        table = tables.read_table(path, "table", object_)
        assert table is not None
        result = decide(table, Question(model=object_, cross_check=number % 5 == 0))
        expected = check_keys(object_, operations)
        seen.add(result.valid)
        assert (result.valid, result.worst_key, result.operations) == (
            expected.valid,
            expected.worst_key,
            expected.operations,
        )
        assert list(result.keys) == list(expected.keys)
        for key, of_key in expected.keys.items():
            mine = result.keys[key]
            assert (mine.valid, mine.op, mine.operations) == (of_key.valid, of_key.op, of_key.operations)
            assert mine.explanation
            if of_key.valid is Verdict.INVALID:
                assert mine.previous_ok == of_key.previous_ok
                assert not mine.counterexample or brute.linearizable(object_, mine.counterexample) is False
                assert mine.counterexample or number % 3 == 0
        assert table.events == sum(1 + (op.complete_index is not None) for op in operations)
    assert seen >= {Verdict.VALID, Verdict.INVALID}


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[f"{n}{''.join(o)}" for n, o in OPTIONS])
def test_arrays_have_the_codes_of_objects(
    draw: Callable[..., Any], tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    """Opcodes and intervals are the same, and numbers are equal exactly where those of objects are."""
    random = Random(f"codes {name}{options}")
    path = tmp_path / "operations.parquet"
    for _ in range(HISTORIES):
        object_, operations = _keyed(draw, name, random, options, 1)
        write_operations(path, operations, run="r")
        table = tables.read_table(path, "table", object_)
        assert table is not None
        if not operations:
            continue
        known, [arrays] = encode(object_, operations), table.arrays
        part = arrays.part
        assert part.f.tolist() == [code.f for code in known.codes]
        assert (part.s.tolist(), part.e.tolist()) == (known.starts.tolist(), known.ends.tolist())
        counts = 1 if name == "unordered-queue" else 0  # at the beginning of the initial state
        theirs = [*known.initial[counts:], *(code.a for code in known.codes), *(code.b for code in known.codes)]
        mine = [*arrays.initial[counts:], *part.a.tolist(), *part.b.tolist()]
        if object_.numbers_values:
            used = [True] * (len(known.initial) - counts) + [code.f not in NO_VALUE for code in known.codes] + [
                code.f in TWO_VALUES for code in known.codes
            ]  # fmt: skip
            pairs = {(one, two) for one, two, is_used in zip(theirs, mine, used, strict=True) if is_used}
            assert len({one for one, _ in pairs}) == len({two for _, two in pairs}) == len(pairs)
        else:
            assert theirs == mine or name.endswith("mutex")


def _register(count: int) -> list[Operation]:
    """Returns sequential writes and reads in turn."""
    return [
        Operation(
            process=number % 5,
            f="read" if number % 2 else "write",
            value=None if number % 2 else number,
            result=number - number % 2,
            type=OpType.OK,
            start_ns=2 * number,
            end_ns=2 * number + 1,
            invoke_index=2 * number,
            complete_index=2 * number + 1,
        )
        for number in range(count)
    ]


def _checked(path: Path, operations: Sequence[Operation], **asked: Any) -> Any:
    write_operations(path, operations, run="r")
    [checked] = check_file(str(path), Request(**{**ASKED, **asked}))
    return checked


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a path for a file, and sets the limit of long files to 100 rows."""
    monkeypatch.setattr(checker.checking, "LONG_ROWS", 100)
    return tmp_path / "operations.parquet"


def test_a_long_history_is_decided_from_arrays(long: Path) -> None:
    """Its operations never become objects, and the explanation is the same."""
    valid = _checked(long, _register(1000))
    assert (valid.analysis.valid, valid.analysis.operations, valid.history.events) == (Verdict.VALID, 1000, 2000)
    assert valid.history.operations == ()
    operations = _register(1000)
    operations[901] = replace(operations[901], result=898)
    invalid = _checked(long, operations).analysis.worst
    assert (invalid.op, invalid.previous_ok) == (operations[901], operations[900])
    assert set(invalid.counterexample) == {operations[898], operations[900], operations[901]}
    assert invalid.explanation.startswith("Process 1 read 898 at ")
    assert "but process 0's write of 900 had completed at" in invalid.explanation


@pytest.mark.parametrize("value", [7007, "torn", 1.5])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {300: {"type": OpType.FAIL, "error": "not-leader: n2"}},
        {300: {"type": OpType.FAIL, "error": "not-leader"}, 304: {"type": OpType.FAIL}},
        {300: {"type": OpType.FAIL}, 954: {}},
        {954: {}, 958: {}},
        {300: {"type": OpType.FAIL, "f": "cas"}},
        {954: {"f": "cas", "type": OpType.INFO, "end_ns": None, "complete_index": None, "process": 99}},
    ],
)
def test_a_part_of_a_history_is_told_like_the_whole(
    long: Path, monkeypatch: pytest.MonkeyPatch, value: Any, changes: dict[int, dict[str, Any]]
) -> None:
    """The sentence names the operations that made the value, failed ones too, or says that there are none."""
    monkeypatch.setattr(excerpts, "OBJECTS", 100)
    operations = _register(1000)
    operations[901] = replace(operations[901], result=value)
    for index, change in changes.items():
        made = [-1, value] if change.get("f") == "cas" else value
        operations[index] = replace(operations[index], value=made, **change)
        if change.get("type", OpType.OK) is not OpType.OK:
            operations[index + 1] = replace(operations[index + 1], result=index - 2)
        else:
            operations[index + 1] = replace(operations[index + 1], result=value)
    result = _checked(long, operations, wanted=Wanted(model="cas-register")).analysis.worst
    expected = check_keys(model("cas-register"), operations).worst
    assert expected is not None
    assert (result.op, result.explanation) == (expected.op, expected.explanation)
    assert result.op == operations[901]


@pytest.mark.parametrize(
    ("row", "change", "asked"),
    [
        (500, {"value": [1, 2]}, {}),
        (500, {"value": -0.0}, {}),
        (0, {}, {"certificate": True}),
        (0, {}, {"algorithm": "linear"}),
        (0, {}, {"wanted": Wanted(model="noop")}),
    ],
)
def test_what_arrays_cannot_say_is_decided_from_objects(
    long: Path, row: int, change: dict[str, Any], asked: dict[str, Any]
) -> None:
    """There is a verdict for all values, models and options."""
    operations = _register(1000)
    operations[row] = replace(operations[row], **change)
    if "value" in change:
        operations[row + 1] = replace(operations[row + 1], result=change["value"], type=OpType.OK)
    checked = _checked(long, operations, **asked)
    assert len(checked.history.operations) == 1000
    [expected] = [analysis(asked.get("wanted", ASKED["wanted"]).model, operations)]
    assert checked.analysis.valid is expected.valid


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"process": 99, "type": OpType.INFO}, None),
        ({"type": OpType.INFO}, "works again after its operation of event 1000"),
        ({"complete_index": 1_000_000}, "invokes while its operation of event 1000 is open"),
        ({"complete_index": 999}, "expected a complete_index above, found 999"),
        ({"end_ns": 3}, "time decreases"),
    ],
)
def test_rules_hold_for_arrays_too(
    long: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], reason: str | None
) -> None:
    """A contradictory history is refused with the row, like any other, for any batches."""
    monkeypatch.setattr(columns, "BATCH_ROWS", 7)
    operations = _register(1000)
    operations[500] = replace(operations[500], **change)
    if reason is None:
        assert _checked(long, operations).history.operations == ()
        return
    with pytest.raises(BadHistory, match=r"row 50\d \(event 10\d\d\)") as caught:
        _checked(long, operations)
    assert reason in str(caught.value)


def test_files_of_several_runs(long: Path) -> None:
    """Each run is decided separately, from objects."""
    parts = []
    for run in ("a", "b"):
        write_operations(long, _register(150), run=run)
        parts.append(parquet.read_table(long))
    parquet.write_table(pa.concat_tables(parts), long)
    both = [result for result in check_file(str(long), Request(**ASKED)) if isinstance(result, Checked)]
    assert [json.dumps(checked.history.name.rpartition("#")[2]) for checked in both] == ['"a"', '"b"']
    assert all(checked.analysis.operations == 150 for checked in both)


def test_a_disagreement_brings_the_history(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a second algorithm contradicts the verdict, the error has all operations of the key."""

    def contrary(problems: Any, limits: Limits, **options: Any) -> Any:
        outcomes = solving.solve(problems, limits, **options)
        return [solving.outcome("invalid", "wgl") if limits.algorithm == "wgl" else one for one in outcomes]

    monkeypatch.setattr("checker.decide.concluding.solve", contrary)
    with pytest.raises(Disagreement) as caught:
        _checked(long, _register(200), cross_check=True)
    assert len(caught.value.operations) == 200
