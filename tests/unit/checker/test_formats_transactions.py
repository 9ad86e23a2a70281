"""The kernel reads the transactions of a file as the readers of events do, or leaves the file to them."""

from __future__ import annotations

import io
import json
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker._kernel import Transactions
from checker.checking import Request, check_file
from checker.deciders import Wanted
from checker.formats import read
from checker.formats.columns import of_operations
from checker.formats.plain import Operations, read_plain
from checker.formats.read import read_source
from checker.formats.readers import EDN, JSONL
from checker.formats.source import Source
from checker.judging.judged import Judged
from checker.transactions.judge import judge
from harness.errors import InputError
from harness.pairing import events_of
from harness.verdict import Verdict
from tests.unit.checker.transaction_orders import random_history

if TYPE_CHECKING:
    from checker.formats.plain import Plain
    from harness.op import Operation

HISTORIES = 300
DATA = Path(__file__).parents[2] / "data" / "histories" / "transactions"
KEYS: dict[str, list[Any]] = {"integers": [7, 8], "texts": ["x", "y"], "rare": ["é", 'a"b']}


def edn(operations: list[Operation]) -> bytes:
    """Returns a history as Jepsen prints it, with keywords as functions."""

    def form(value: Any) -> str:
        if isinstance(value, list):
            return f"[{' '.join(map(form, value))}]"
        return "nil" if value is None else json.dumps(value, ensure_ascii=False)

    def mops(value: list[list[Any]] | None) -> str:
        return "nil" if value is None else f"[{' '.join(f'[:{f} {form(key)} {form(of)}]' for f, key, of in value)}]"

    return "".join(
        f"{{:type :{op.type}, :process {op.process}, :f :txn, :time {op.time_ns}, :value {mops(op.value)}}}\n"
        for op in events_of(operations)
    ).encode()


def json_lines(operations: list[Operation]) -> bytes:
    """Returns a history in JSON Lines without a header."""
    lines = [
        json.dumps({"type": str(op.type), "process": op.process, "f": op.f, "time": op.time_ns, "value": op.value})
        for op in events_of(operations)
    ]
    return ("\n".join(lines) + "\n").encode()


def plain(format_name: str, text: bytes, workload: str) -> Plain | None:
    """Returns the history as arrays; None if the kernel leaves it to Python."""
    with closing(Source("history", io.BytesIO(text))) as source:
        return read_plain(format_name, source, keyed=False, transactions=workload)


def with_keys(operations: list[Operation], names: list[Any]) -> list[Operation]:
    """Returns a history whose two keys have other names."""
    first = operations[0].value[0][1] if operations else None

    def renamed(value: Any) -> Any:
        return value and [[f, names[key != first], element] for f, key, element in value]

    return [replace(op, value=renamed(op.value), result=renamed(op.result)) for op in operations]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("workload", ["list-append", "rw-register"])
def test_both_readers_give_the_same(workload: str, keys: str) -> None:
    """Operations and judgements are the same, of JSON and of EDN; only rare values are left to Python."""
    random = Random(f"{workload} {keys}")
    read_by_kernel = 0
    for _ in range(HISTORIES):
        operations = with_keys(random_history(random, most=8, lists=workload == "list-append"), KEYS[keys])
        for format_name, text in [(JSONL, json_lines(operations)), (EDN, edn(operations))]:
            with closing(Source("history", io.BytesIO(text))) as source:
                [expected] = read_source(source, keyed=False)
            history = plain(format_name, text, workload)
            if history is None:
                continue
            read_by_kernel += 1
            assert isinstance(history.columns.texts, Transactions)
            assert list(history.operations) == list(expected.operations)
            assert judge(history.columns, workload=workload, model="serializable") == judge(
                of_operations(expected.operations), workload=workload, model="serializable"
            )
    assert read_by_kernel == (0 if keys == "rare" else 2 * HISTORIES)


def test_known_histories(tmp_path: Path) -> None:
    """Of the known histories, those in EDN that the kernel reads have the judgement of the others' reader."""
    with tarfile.open(DATA / "histories.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    read_by_kernel = 0
    for path in sorted(tmp_path.rglob("*.edn")):
        workload = path.parent.name
        history = plain(EDN, path.read_bytes(), workload)
        if history is None:
            continue
        read_by_kernel += 1
        with closing(Source("history", io.BytesIO(path.read_bytes()))) as source:
            [expected] = read_source(source)
        assert list(history.operations) == list(expected.operations), path.name
        assert judge(history.columns, workload=workload, model="PL-SS") == judge(
            of_operations(expected.operations), workload=workload, model="PL-SS"
        ), path.name
    assert read_by_kernel > 500


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ('{"type":"ok","process":0,"f":"txn","value":[["append","x",5]]}', "micro-operation 1: expected the functions"),
        ('{"type":"ok","process":0,"f":"txn","value":[["r","x",7]]}', "expected a list as the result of a read"),
        ('{"type":"ok","process":0,"f":"txn","value":[["pop","x",7]]}', "expected a micro-operation"),
        ('{"type":"ok","process":0,"f":"txn"}', "expected a list of micro-operations"),
    ],
)
def test_answers_of_another_form_are_those_of_the_other_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str, sentence: str
) -> None:
    """The kernel reads no such history, so the anomaly has the place and the sentence of the other reader."""
    [judged] = checked(tmp_path, monkeypatch, second)
    assert isinstance(judged, Judged)
    assert judged.verdict is Verdict.INVALID
    assert sentence in judged.to_json()["explanation"]


def test_errors_are_those_of_the_other_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel reads no bad history, so its error has its place and its sentence."""
    with pytest.raises(InputError, match="a process has one operation at a time"):
        checked(tmp_path, monkeypatch, '{"type":"invoke","process":0,"f":"txn","value":[["r","y",null]]}')


def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str) -> list[Any]:
    """Returns the result of a history of a read and another event."""
    monkeypatch.setattr(read, "LONG_BYTES", 0)
    path = tmp_path / "history.jsonl"
    path.write_text('{"type":"invoke","process":0,"f":"txn","value":[["r","x",null]]}\n' + second + "\n")
    return list(check_file(str(path), Request(wanted=Wanted(workload="list-append"))))


def test_a_long_file_is_read_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`labrys check` gives the kernel the workload, in EDN even without --no-keyed."""
    monkeypatch.setattr(read, "LONG_BYTES", 0)
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :invoke, :process 0, :f :txn, :value [[:append 1 1] [:r 2 nil]]}\n"
        "{:type :ok, :process 0, :f :txn, :value [[:append 1 1] [:r 2 nil]]}\n"
        "{:type :invoke, :process 0, :f :txn, :value [[:r 1 nil]]}\n"
        "{:type :ok, :process 0, :f :txn, :value [[:r 1 []]]}\n"
    )
    request = Request(wanted=Wanted(workload="list-append"))
    [judged] = check_file(str(path), request)
    assert isinstance(judged, Judged)
    assert judged.history.plain is not None
    assert isinstance(judged.history.plain.columns.texts, Transactions)
    assert judged.to_json()["figures"][""]["anomaly-types"] == ["G-single-item-realtime"]
    assert [op.result for op in judged.shown] == [[["append", 1, 1], ["r", 2, None]], [["r", 1, []]]]


def test_a_long_valid_file_needs_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the operations of an anomaly become objects, because those of all take seven times as long as the rest."""
    monkeypatch.setattr(read, "LONG_BYTES", 0)
    path = tmp_path / "history.jsonl"
    path.write_text(
        '{"type":"invoke","process":0,"f":"txn","value":[["append",1,1],["r",1,null]]}\n'
        '{"type":"ok","process":0,"f":"txn","value":[["append",1,1],["r",1,[1]]]}\n'
        '{"type":"invoke","process":0,"f":"txn","value":[["r",1,null]]}\n'
        '{"type":"ok","process":0,"f":"txn","value":[["r",1,[1]]]}\n'
    )
    monkeypatch.setattr(Operations, "_all", None)
    [judged] = check_file(str(path), Request(wanted=Wanted(workload="list-append")))
    assert isinstance(judged, Judged)
    assert judged.verdict is Verdict.VALID


def test_transactions_with_independent_keys() -> None:
    """A tuple of a key and a transaction is no transaction."""
    text = (
        b"{:type :invoke, :process 0, :f :txn, :value [5 [[:r 1 nil]]]}\n"
        b"{:type :ok, :process 0, :f :txn, :value [5 [[:r 1 []]]]}"
    )
    with closing(Source("history", io.BytesIO(text))) as source:
        [history] = read_source(source)
    [operation] = history.operations
    assert (operation.key, operation.value, operation.result) == ("5", [["r", 1, None]], [["r", 1, []]])
