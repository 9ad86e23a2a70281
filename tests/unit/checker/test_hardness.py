"""An unknown verdict has reasons: without the cause of the first one, the same history is decided."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.decide.decision import decide
from checker.decide.question import Question
from checker.decide.tables import read_table
from checker.edn.values import Keyword
from checker.explain.hardness import _CONDITIONS, REASONS, of_objects
from checker.formats.parquet import write_operations
from checker.knossos import result_map
from checker.models import Call, Inconsistent, Model, model
from checker.search.encode import encode
from checker.search.solving import Limits, solve
from checker.search.solving import outcome as made
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.deciding import analysis
from tests.own_models import operation

if TYPE_CHECKING:
    from checker._kernel import Outcome
    from checker.result import Hardness

ROOT = Path(__file__).parents[3]
LIMIT_S = 0.2


def stopped(outcome: Outcome, op: int | None = None) -> Outcome:
    """Returns an outcome as if its search had reached a limit."""
    reached = outcome.op if op is None else op
    return made("unknown", outcome.analyzer, cause="timeout", op=reached, unsuited=outcome.unsuited)


class Sum(Model):
    """A counter that only Python knows."""

    name = "sum"
    initial = 0

    def step(self, state: int, op: Call) -> int | Inconsistent:
        """See `Model`."""
        if op.f == "add":
            return state + int(op.argument)
        return state if not op.ok or op.result == state else Inconsistent("another sum")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"


class Log(Model):
    """A list that keeps the order of all values."""

    name = "log"
    initial = ()

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "append":
            return (*state, op.argument)
        return state if not op.ok or op.result == list(state) else Inconsistent("another list")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"


def crashed_adds(count: int, *, same: bool = False) -> list[Operation]:
    """Returns crashed additions, a read of a sum that none of their subsets has, and an addition that comes too late."""
    random = Random(1)
    amounts = [2 if same else 2 * random.randrange(2**30, 2**40) for _ in range(count)]
    adds = [operation(p, "add", amount, p, None) for p, amount in enumerate(amounts)]
    late = operation(101, "add", 2 if same else 1, 300, None)
    return [*adds, operation(100, "read", None, 200, 201, 2**41 + 7), late]


def wide_adds(processes: int) -> list[Operation]:
    """Returns rounds of additions that all overlap, and a read of a sum that none of their subsets has."""
    random = Random(2)
    adds = [
        operation(p, "add", 2 * random.randrange(2**30, 2**40), 1000 * turn + p, 1000 * turn + 500 + p)
        for turn in range(5)
        for p in range(processes)
    ]
    reads = [operation(99, "read", None, 1000 * turn + 300, 1000 * turn + 301, 7) for turn in range(1, 5)]
    return sorted([*adds, *reads], key=lambda op: op.invoke_index)


def appends(processes: int) -> list[Operation]:
    """Returns appends that overlap slightly, and a read of another list at the end."""
    made = [operation(i % processes, "append", i, 10 * i, 10 * i + 10 * processes - 5, i) for i in range(60)]
    return [*made, operation(50, "read", None, 9000, 9001, [1])]


def first(model_: Model | str, operations: list[Operation], **options: Any) -> Hardness:
    """Returns the first reason why a check reached its limit."""
    result = analysis(model_, operations, time_limit=LIMIT_S, threads=1, **options)
    assert (result.valid, result.cause) == (Verdict.UNKNOWN, "timeout")
    assert result.hardness[0].sentence in result.explanation
    assert result.hardness[0].advice in result.explanation
    assert result.to_json()["hardness"][0]["reason"] == result.hardness[0].reason
    return result.hardness[0]


def is_decided(model_: Model | str, operations: list[Operation]) -> bool:
    """Returns whether a check quickly decides a history."""
    return analysis(model_, operations, time_limit=10, threads=1, counterexample=False).valid is not Verdict.UNKNOWN


def test_operations_that_crashed() -> None:
    """A user's model: the reason has the count and the function. With two such operations, it is decided."""
    hardness = first(Sum(), crashed_adds(60))
    assert hardness.reason == "crashed"
    assert hardness.figures == {"operations": 60, "classes": 60}
    assert hardness.sentence.startswith("60 operations that may change the state never returned")
    assert hardness.sentence.endswith("60 of add.")
    assert is_decided(Sum(), crashed_adds(2))


def test_increments_of_different_amounts() -> None:
    """A built-in counter: the condition of its analyzer comes first, and the crashed operations second."""
    hardness = first("counter", crashed_adds(60))
    assert (hardness.reason, hardness.figures) == ("unequal-increments", {"amounts": 61})
    assert is_decided("counter", crashed_adds(60, same=True))


def test_operations_that_overlap() -> None:
    """The number of concurrent operations, and its frequency. With three processes, it is decided."""
    hardness = first(Sum(), wide_adds(40))
    assert hardness.reason == "overlap"
    assert hardness.figures["at_once"] == 40
    assert is_decided(Sum(), wide_adds(3))


def test_a_model_with_many_states() -> None:
    """The operations overlap slightly, but the state keeps their order. Without overlap there is one order."""
    hardness = first(Log(), appends(4))
    assert hardness.reason == "states"
    assert hardness.figures["states"] > 1000
    assert is_decided(Log(), appends(1))


def test_a_long_history_with_little_time() -> None:
    """Nothing in it is hard. With more time, it is decided."""
    operations = [operation(0, "add", 1, 2 * i, 2 * i + 1) for i in range(3000)]
    operations.append(operation(0, "read", None, 9000, 9001, 3000))
    result = analysis(Sum(), operations, time_limit=1e-6, threads=1)
    assert [hardness.reason for hardness in result.hardness] == ["length"]
    assert result.hardness[0].figures["operations"] == 3001
    assert is_decided(Sum(), operations)


@pytest.mark.parametrize(
    ("name", "options", "operations", "reason", "figures"),
    [
        (
            "register",
            {},
            [operation(i, "write", 7 if i < 4 else 8, 2 * i, 2 * i + 1) for i in range(6)],
            "repeated-values",
            {"times": 4, "values": 2},
        ),
        (
            "cas-register",
            {},
            [operation(0, "cas", [7, 7], 2, 3), operation(0, "write", 7, 0, 1)],
            "repeated-values",
            {"times": 2, "values": 1},
        ),
        (
            "register",
            {"initial": 7},
            [operation(0, "write", 7, 0, 1)],
            "repeated-values",
            {"times": 2, "values": 1},
        ),
        (
            "fifo-queue",
            {},
            [operation(0, "enqueue", "x", 0, 1), operation(0, "enqueue", "x", 2, 3)],
            "repeated-values",
            {"times": 2, "values": 1},
        ),
        (
            "fifo-queue",
            {},
            [operation(0, "dequeue", None, 0, 1), operation(1, "dequeue", None, 2, None)],
            "empty-and-crashed",
            {"empty": 1, "crashed": 1},
        ),
        ("fifo-queue", {"initial": [1]}, [operation(0, "enqueue", 1, 0, 1)], "initial-state", {"elements": 1}),
        (
            "set",
            {},
            [
                operation(0, "add", 1, 0, 1),
                operation(0, "remove", 2, 2, 3),
                operation(0, "read", None, 4, 5, [1]),
            ],
            "whole-reads",
            {"reads": 1, "removes": 1, "elements": 2},
        ),
        (
            "cas-register",
            {"failed_cas": "observe"},
            [replace(operation(0, "cas", [1, 2], 0, 1), type=OpType.FAIL)],
            "failed-cas",
            {"operations": 1},
        ),
        (
            "mutex",
            {},
            [operation(0, "acquire", None, 0, 1), operation(0, "acquire", None, 2, 3)],
            "no-turns",
            {"operations": 2},
        ),
    ],
)
def test_the_condition_of_an_analyzer(
    name: str, options: dict[str, Any], operations: list[Operation], reason: str, figures: dict[str, int]
) -> None:
    """Each reason has its figures, whatever the others are."""
    object_ = model(name, **options)
    encoded = encode(object_, operations)
    [outcome] = solve([encoded.problem], Limits(algorithm="zones"))
    assert outcome.unsuited in _CONDITIONS
    [hardness, *_] = of_objects(object_, encoded, stopped(outcome))
    assert (hardness.reason, hardness.figures) == (reason, figures)
    assert "{" not in hardness.text


def test_a_value_is_shown_as_the_operations_have_it() -> None:
    """The kernel has numbers for values; the message has the value."""
    operations = [operation(0, "write", "seven", 2 * i, 2 * i + 1) for i in range(3)]
    object_ = model("register")
    encoded = encode(object_, operations)
    [outcome] = solve([encoded.problem], Limits())
    [hardness, *_] = of_objects(object_, encoded, stopped(outcome))
    assert hardness.sentence == "The value seven is written 3 times. Values that are written more than once: 1."


def test_conditions_are_those_of_the_kernel() -> None:
    """Each condition is a message of an analyzer, and all messages about histories are listed."""
    conditions = set()
    for path in sorted((ROOT / "checker/kernel/src/near").glob("*.rs")):
        conditions |= set(re.findall(r'Unsuited\(\s*"([^"]+)"', path.read_text(encoding="utf-8")))
    without = {
        "an order is found by the search",  # at the caller's request
        "an increment whose result is known did not return",  # only in parts of histories
        "the lock is held at the beginning",  # a lock has two states
    }
    assert conditions - without == set(_CONDITIONS)
    assert {"crashed", "overlap", "states", "length"} < set(REASONS)


def test_it_takes_less_than_a_second() -> None:
    """A hundred thousand operations, each with a different class."""
    operations = [operation(i % 20, "add", 3 * i, 4 * i, 4 * i + 70 if i % 1000 else None) for i in range(100_000)]
    encoded = encode(Sum(), operations)
    [outcome] = solve([encoded.problem], Limits(time_limit_s=1e-6, threads=1))
    began_s = time.thread_time()
    hardness = of_objects(Sum(), encoded, stopped(outcome, op=len(encoded.codes) - 1))
    assert time.thread_time() - began_s < 1
    assert hardness[0].reason == "crashed"


def test_the_guide_has_all_reasons() -> None:
    """The table of docs/reference/checker.md has exactly these names."""
    text = (ROOT / "docs/reference/checker.md").read_text(encoding="utf-8")
    table = text.partition("| `reason` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(REASONS)


def test_arrays_and_files_say_the_same(tmp_path: Path) -> None:
    """A Parquet file that is decided from arrays, and the command's text, JSON and EDN."""
    values = ["a", "b", "c", "d", "e", "f", "g", "h"]
    writes = [operation(p, "write", value, p, None) for p, value in enumerate(values * 5)]
    reads = [
        operation(100 + i % 3, "read", None, 1000 + 10 * i, 1000 + 10 * i + 25, values[(i * i + i // 7) % 8])
        for i in range(300)
    ]
    object_ = model("register", initial="z")
    path = tmp_path / "operations.parquet"
    write_operations(path, [*writes, *reads], run="r")
    table = read_table(path, "table", object_)
    assert table is not None
    limits = Limits(time_limit_s=1e-6, threads=1)
    (result,) = decide(table, Question(model=object_, limits=limits)).keys.values()
    encoded = encode(object_, [*writes, *reads])
    [outcome] = solve([encoded.problem], limits)
    assert result.cause == outcome.cause == "timeout"
    by_reason = {hardness.reason: hardness for hardness in of_objects(object_, encoded, outcome)}
    assert result.hardness[0] == by_reason["repeated-values"]
    assert "is written 5 times" in result.explanation
    assert [hardness.reason for hardness in result.hardness] == list(by_reason)
    assert result_map(result)[Keyword("explanation")] == result.explanation
