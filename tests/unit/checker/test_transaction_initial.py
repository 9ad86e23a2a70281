"""Registers of transactions that begin with another value than nil: `--initial`."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import Request, check_file
from checker.deciders import Wanted
from checker.formats.columns import of_operations
from checker.formats.jepsen import write_history
from checker.judging.judged import Judged
from checker.transactions.judge import judge
from checker.values import json_text
from cli import main
from harness.errors import InputError
from harness.op import OpType
from harness.pairing import events_of
from harness.verdict import Verdict
from tests.unit.checker.transaction_orders import random_history, transaction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from checker.judging import Judgement
    from harness.op import Operation

ZERO = [
    {"type": "invoke", "process": 0, "f": "txn", "value": [["r", "k", None], ["w", "k", 1]]},
    {"type": "ok", "process": 0, "f": "txn", "value": [["r", "k", 0], ["w", "k", 1]]},
    {"type": "invoke", "process": 1, "f": "txn", "value": [["r", "k", None]]},
    {"type": "ok", "process": 1, "f": "txn", "value": [["r", "k", 1]]},
]
EDN = """
{:process 0, :type :invoke, :f :txn, :value [[:r :k nil] [:w :k 1]]}
{:process 0, :type :ok, :f :txn, :value [[:r :k 0] [:w :k 1]]}
{:process 1, :type :invoke, :f :txn, :value [[:r :k nil]]}
{:process 1, :type :ok, :f :txn, :value [[:r :k 1]]}
"""
JSONL = "\n".join(map(json.dumps, ZERO))
MODELS = ("strict-serializable", "serializable", "read-atomic", "read-committed", "update-atomic")
SOURCES: Sequence[Sequence[str]] = ((), ("writes-follow-reads",), ("linearizable-keys",), ("atomic-visibility",))


def begun(operations: Sequence[Operation], initial: Any) -> list[Operation]:
    """Returns the same answers of registers that begin with a value in place of nil."""
    return [
        replace(operation, result=[[f, key, initial if value is None else value] for f, key, value in operation.result])
        if operation.type is OpType.OK and isinstance(operation.result, list)
        else operation
        for operation in operations
    ]


def judged(operations: Sequence[Operation], model: str, sources: Sequence[str], initial: Any) -> Judgement:
    """Judges registers."""
    text = None if initial is None else json_text(initial)
    return judge(of_operations(operations), workload="rw-register", model=model, sources=sources, initial=text)


@pytest.mark.parametrize("initial", [0, -7, "empty", [1, 2], 0.5])
@pytest.mark.parametrize("shows", [False, True])
def test_another_initial_value_changes_nothing(initial: Any, *, shows: bool) -> None:
    """Random histories, with the value in each read of nil: the verdict, the types and the sentences are those of nil."""
    random = Random(f"initial {initial} {shows}")
    verdicts = set()
    for number in range(120):
        operations = random_history(random, most=6, lists=False, shows=shows)
        model, sources = MODELS[number % 5], SOURCES[number % 4]
        expected = judged(operations, model, sources, None)
        judgement = judged(begun(operations, initial), model, sources, initial)
        assert (judgement.verdict, judgement.counts, judgement.reason) == (
            expected.verdict,
            expected.counts,
            expected.reason,
        )
        assert dict(judgement.figures) == dict(expected.figures)
        assert [(anomaly.kind, anomaly.subject, anomaly.rows) for anomaly in judgement.anomalies] == [
            (anomaly.kind, anomaly.subject, anomaly.rows) for anomaly in expected.anomalies
        ]
        verdicts.add(judgement.verdict)
        for anomaly, other in zip(judgement.anomalies, expected.anomalies, strict=True):
            assert "nil" not in anomaly.explanation
            assert initial is not None
            assert other.explanation.count("nil") <= anomaly.explanation.count(_words(initial))
    assert {Verdict.VALID, Verdict.INVALID} <= verdicts


def _words(value: Any) -> str:
    return "[1 2]" if value == [1, 2] else str(value)


def test_nil_is_a_value_like_any_other() -> None:
    """Nobody wrote it, if the registers begin with another value; then the verdict names no option."""
    judgement = judged(
        [transaction(0, OpType.OK, [["r", "x", None], ["w", "x", 1]], start=0, end=1)], "serializable", (), 0
    )
    assert judgement.verdict is Verdict.INVALID
    assert judgement.counts == {"transactions": 1, "garbage-read": 1}
    assert "read x as nil, but no transaction wrote nil." in judgement.anomalies[0].explanation
    assert "--initial" not in judgement.anomalies[0].explanation


def test_a_value_that_nobody_wrote_may_be_the_initial_one() -> None:
    """The sentence names the option and the value; not if there are two such values, nor for lists."""
    first = transaction(0, OpType.OK, [["r", "x", 0], ["w", "x", 1]], start=0, end=1)
    [anomaly] = judged([first], "serializable", (), None).anomalies
    assert "no transaction wrote 0. If the registers begin with 0, say so with --initial 0." in anomaly.explanation
    other = transaction(1, OpType.OK, [["r", "y", "none yet"]], start=2, end=3)
    [anomaly] = judged([other], "serializable", (), None).anomalies
    assert """say so with --initial '"none yet"'.""" in anomaly.explanation
    for garbage in judged([first, other], "serializable", (), None).anomalies:
        assert "--initial" not in garbage.explanation
    listed = transaction(0, OpType.OK, [["r", "x", [0]]], start=0, end=1)
    [anomaly] = judge(of_operations([listed]), workload="list-append", model="serializable").anomalies
    assert "--initial" not in anomaly.explanation


def test_a_write_of_the_initial_value_is_not_decided() -> None:
    """A read of it does not tell whether it saw the write; the reason names the place."""
    operations = [
        transaction(0, OpType.OK, [["w", "x", 1], ["w", "y", 0]], start=0, end=1),
        transaction(1, OpType.OK, [["r", "y", 0]], start=2, end=3),
    ]
    judgement = judged(operations, "serializable", (), 0)
    assert (judgement.verdict, judgement.cause) == (Verdict.UNKNOWN, "unsuited")
    assert judgement.reason.startswith(
        "Event 0, micro-operation 2 writes 0 to the key 'y', which is the initial value;"
    )


def checked(path: Path, *, settings: Sequence[str] = (), initial: str | None = None) -> Judged:
    """Checks a file of registers."""
    wanted = Wanted(workload="rw-register", settings=settings, initial=initial)
    [result] = check_file(str(path), Request(wanted=wanted))
    assert isinstance(result, Judged)
    return result


@pytest.mark.parametrize("text", [EDN, JSONL, f"[{','.join(map(json.dumps, ZERO))}]"])
def test_each_format_takes_it(tmp_path: Path, text: str) -> None:
    """By its own option, and as an option of the workload; also if the kernel reads the file."""
    (tmp_path / "h").write_text(text)
    assert checked(tmp_path / "h").verdict is Verdict.INVALID
    assert checked(tmp_path / "h", initial="0").verdict is Verdict.VALID
    assert checked(tmp_path / "h", settings=["initial=0"]).verdict is Verdict.VALID
    assert checked(tmp_path / "h", initial="1").verdict is Verdict.INVALID  # nobody wrote 0, and 1 is not it
    if text[0] != "[":
        (tmp_path / "long").write_text(text + " " * (1 << 20))
        assert checked(tmp_path / "long", initial="0").verdict is Verdict.VALID


def test_a_form_with_its_own_initial_value_refuses_another_one(tmp_path: Path) -> None:
    """In the text form with numbers, 0 is the initial value; in the form with lines between, no value is."""
    (tmp_path / "numbered").write_text("r(1,0,0,0)\nw(1,1,0,0)\n")
    with pytest.raises(InputError, match="in this form, 0 is the initial value of each register; leave initial out"):
        checked(tmp_path / "numbered", initial="0")
    (tmp_path / "apart").write_text("r 1 0\nw 1 1\n-\nr 1 1\n")
    assert checked(tmp_path / "apart").verdict is Verdict.INVALID
    assert (
        checked(tmp_path / "apart", settings=["initial=0", "consistency-model=serializable"]).verdict is Verdict.VALID
    )


def code_of(*arguments: str) -> int:
    """Returns the exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_what_takes_no_initial_state_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lists begin empty; the errors name the option. A value that is no EDN is an error too."""
    (tmp_path / "h.edn").write_text(EDN)
    path = str(tmp_path / "h.edn")
    assert code_of("check", path, "--workload", "list-append", "--initial", "0") == 254
    assert "--initial: only models support this" in capsys.readouterr().err
    out = str(tmp_path / "out")
    assert code_of("analyze", path, "--out", out, "--workload", "list-append", "--initial", "0") == 254
    assert "--initial: the workload list-append takes no initial state; leave it out" in capsys.readouterr().err
    assert code_of("check", path, "--workload", "rw-register", "--initial", "{") == 254
    assert "--initial:1:2: the '{' of line 1 is never closed" in capsys.readouterr().err


def test_analyze_takes_it(tmp_path: Path) -> None:
    """In this process; the exit codes are those of `labrys check`."""
    operations = [
        transaction(0, OpType.OK, [["r", "k", 0], ["w", "k", 1]], start=0, end=1),
        transaction(1, OpType.OK, [["r", "k", 1]], start=2, end=3),
    ]
    write_history(tmp_path / "h.edn", events_of(operations))
    asked = ["analyze", str(tmp_path / "h.edn"), "--workload", "rw-register"]
    assert code_of(*asked, "--out", str(tmp_path / "nil")) == 1
    assert code_of(*asked, "--out", str(tmp_path / "zero"), "--initial", "0") == 0
