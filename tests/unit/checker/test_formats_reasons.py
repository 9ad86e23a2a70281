"""What clients put in place of a value: the reason of a failure, and the key of a compare-and-set beside its two values."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.errors import BadHistory
from checker.formats.log_lines import CONSOLE_LOG
from checker.formats.plain import read_plain
from checker.formats.read import read_source
from checker.formats.readers import EDN, JSONL
from checker.formats.source import Source
from checker.models import model
from checker.models.base import Call
from harness.errors import InputError
from harness.op import OpType

if TYPE_CHECKING:
    from checker.formats.read import History

HEADER = '{"format":"labrys-history","version":1}\n'
TOLD = "1 fail completions have another value than their invoke, the first in line"


def read(text: str, *, keyed: bool | None = None) -> History:
    """Reads a history event by event."""
    [history] = read_source(Source("h", io.BytesIO(text.encode())), keyed=keyed)
    return history


def lines(*events: dict[str, Any], own: bool = False) -> str:
    """Returns events as JSON Lines; as a history.jsonl if it is our own."""
    placed = [{"index": at, "time": at, **event} if own else event for at, event in enumerate(events)]
    return (HEADER if own else "") + "".join(json.dumps(event) + "\n" for event in placed)


def event(kind: str, f: str, value: Any, process: int = 0) -> dict[str, Any]:
    """Returns an event of a client."""
    return {"type": kind, "process": process, "f": f, "value": value}


FAILED_CAS = (
    event("invoke", "cas", [0, 3]), event("fail", "cas", ["expected", 5]), event("invoke", "read", None, 1),
    event("ok", "read", 0, 1),
)  # fmt: skip
FAILED_CAS_EDN = """
{:type :invoke, :f :cas, :value [0 3], :process 0}
{:type :fail, :f :cas, :value [:expected 5], :process 0}
{:type :invoke, :f :read, :value nil, :process 1}
{:type :ok, :f :read, :value 0, :process 1}
"""
FAILED_CAS_LOG = """
INFO  jepsen.util - 0\t:invoke\t:cas\t[0 3]
INFO  jepsen.util - 0\t:fail\t:cas\t[:expected 5]
INFO  jepsen.util - 1\t:invoke\t:read\tnil
INFO  jepsen.util - 1\t:ok\t:read\t0
"""


@pytest.mark.parametrize(
    ("text", "format_", "begins"),
    [
        (FAILED_CAS_EDN, EDN, ""),
        (lines(*FAILED_CAS), JSONL, ""),
        (lines(*FAILED_CAS, own=True), JSONL, HEADER),
        (FAILED_CAS_LOG, CONSOLE_LOG, ""),
    ],
)
def test_a_failed_operation_may_carry_its_reason(text: str, format_: str, begins: str) -> None:
    """In each format: the value of the invoke counts, one warning tells it, and the kernel reads the same."""
    history = read(text)
    failed = history.operations[0]
    assert (failed.type, failed.f, failed.value, failed.result) == (OpType.FAIL, "cas", [0, 3], None)
    assert history.operations[1].result == 0
    assert [TOLD in warning for warning in history.warnings].count(True) == 1
    assert text.startswith(begins)
    plain = read_plain(format_, Source("h", io.BytesIO(text.encode())), keyed=None)
    assert plain is not None
    assert (list(plain.operations), plain.warnings) == (list(history.operations), history.warnings)


@pytest.mark.parametrize("kind", ["fail", "info"])
@pytest.mark.parametrize("value", ["mismatch", 7, ["expected", 5], ["a", ["expected", 5]], None])
def test_a_keyed_operation_may_carry_its_reason(kind: str, value: Any) -> None:
    """Where a key and a value would be: the process tells the operation, so its key and value are those of the invoke."""
    events = [event("invoke", "read", ["a", None]), event("ok", "read", ["a", 1]), event("invoke", "write", ["a", 2])]
    text = lines(*events, event(kind, "write", value))
    written = json.dumps(value).replace("null", "nil")
    edn = (
        '{:type :invoke :f :read :value ["a" nil] :process 0} {:type :ok :f :read :value ["a" 1] :process 0}\n'
        f'{{:type :invoke :f :write :value ["a" 2] :process 0}} {{:type :{kind} :f :write :value {written} :process 0}}'
    )
    for history in (read(text, keyed=True), read(edn)):
        last = history.operations[-1]
        assert (last.type, last.key, last.value) == (OpType(kind), "a", 2)


def test_a_success_must_have_its_key() -> None:
    """An answer that happened shows the key that was asked for; a reason has no place there."""
    events = [event("invoke", "read", ["a", None]), event("ok", "read", ["b", 1])]
    with pytest.raises(BadHistory, match="expected a completion on key 'a'"):
        read(lines(*events), keyed=True)
    with pytest.raises(BadHistory, match=r"expected a value \[key value\]"):
        read(lines(events[0], event("ok", "read", 1)), keyed=True)


def test_an_explicit_key_is_no_reason() -> None:
    """The key of an event's own field is that of its invoke, also if the operation failed."""
    events = [{**event("invoke", "write", 1), "key": "a"}, {**event("fail", "write", 1), "key": "b"}]
    with pytest.raises(BadHistory, match="expected a completion on key 'a'"):
        read(lines(*events, own=True))


@pytest.mark.parametrize("kind", ["fail", "info"])
@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('1\t[:dup "x y"]', "dup: x y"),
        ("1\t:dup", "dup"),
        ('1\t(:dup 7 "x")', "dup: 7 x"),
        (':dup\t"x y"', "dup: x y"),
        (":dup", "dup"),
        (":dup x y", "dup: x y"),
        ("1\tindeterminate: timeout", "indeterminate: timeout"),
        ("1\tjava.io.IOException [x", "java.io.IOException [x"),
    ],
)
def test_an_error_on_a_line_has_the_text_that_it_has_in_edn(kind: str, written: str, text: str) -> None:
    """A form after the value, or in its place, loses no word, and keeps no sign of EDN; other words stay as they are."""
    [operation] = read(f"0\t:invoke\t:write\t1\n0\t:{kind}\t:write\t{written}\n").operations
    assert (operation.type, operation.value, operation.error) == (OpType(kind), 1, text)


CAS_OF_THREE = (
    event("invoke", "cas", ["b", None, "v1"]), event("fail", "cas", ["b", None, "v1"]),
    event("invoke", "cas", ["a", "v8", "v9"], 1), event("ok", "cas", ["a", "v8", "v9"], 1),
    event("invoke", "cas", ["a", ["v9", "v7"]], 1), event("info", "cas", ["a", ["v9", "v7"]], 1),
)  # fmt: skip
CAS_OF_THREE_EDN = """
{:process 0 :type :invoke :f :cas :value ["b" nil "v1"]}
{:process 0 :type :fail :f :cas :value ["b" nil "v1"]}
{:process 1 :type :invoke :f :cas :value ["a" "v8" "v9"]}
{:process 1 :type :ok :f :cas :value ["a" "v8" "v9"]}
{:process 1 :type :invoke :f :cas :value ["a" ["v9" "v7"]]}
{:process 1 :type :info :f :cas :value ["a" ["v9" "v7"]]}
"""


@pytest.mark.parametrize(
    ("text", "keyed"), [(CAS_OF_THREE_EDN, None), (lines(*CAS_OF_THREE), True), (lines(*CAS_OF_THREE, own=True), True)]
)
def test_a_cas_may_have_its_key_beside_both_values(text: str, keyed: bool | None) -> None:
    """`[key expected new]` is `[key [expected new]]`; in EDN it shows that the history is keyed."""
    history = read(text, keyed=keyed)
    assert [(operation.key, operation.value) for operation in history.operations] == [
        ("b", [None, "v1"]), ("a", ["v8", "v9"]), ("a", ["v9", "v7"]),
    ]  # fmt: skip
    assert not history.warnings or "--keyed" not in " ".join(history.warnings)


def test_a_cas_of_three_without_keys_names_the_option() -> None:
    """A model takes two values; the error tells how three are read."""
    call = Call("cas", ["a", 1, 2], ["a", 1, 2], ["a", 1, 2], ok=True)
    with pytest.raises(InputError, match=r"expected \[expected, new\] as the value of cas, found .*; --keyed takes it"):
        model("cas-register").step(1, call)


def test_a_value_tells_a_transaction_whatever_its_function() -> None:
    """Several registers: the function of a transaction may have any name."""
    call = Call("write", [["w", "x", 1]], [["w", "x", 1]], [["w", "x", 1]], ok=True)
    assert model("multi-register").step((), call) == (("x", 1),)


DUP_EDN = """{:type :invoke :f :enqueue :value 7 :process 0}
{:type :KIND :f :enqueue :value [:dup "x y"] :process 0}
{:type :invoke :f :dequeue :value nil :process 1}
{:type :ok :f :dequeue :value 7 :process 1}
"""
DUP_LOG = """INFO  jepsen.util - 0\t:invoke\t:enqueue\t7
INFO  jepsen.util - 0\t:KIND\t:enqueue\t[:dup "x y"]
INFO  jepsen.util - 1\t:invoke\t:dequeue\tnil
INFO  jepsen.util - 1\t:ok\t:dequeue\t7
"""
DUP = (
    event("invoke", "enqueue", 7), event("KIND", "enqueue", ["dup", "x y"]), event("invoke", "dequeue", None, 1),
    event("ok", "dequeue", 7, 1),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["fail", "info"])
@pytest.mark.parametrize(
    ("text", "format_"),
    [(DUP_EDN, EDN), (lines(*DUP), JSONL), (lines(*DUP, own=True), JSONL), (DUP_LOG, CONSOLE_LOG)],
    ids=["edn", "jsonl", "own", "log"],
)
def test_the_words_of_a_reason_are_kept(text: str, format_: str, kind: str) -> None:
    """They are the error of the operation, with the text that `:error [:dup "x y"]` has; the kernel reads the same."""
    text = text.replace("KIND", kind)
    history = read(text)
    assert [op.error for op in history.operations] == ["dup: x y", None]
    assert (history.operations[0].type, history.operations[0].value) == (OpType(kind), 7)
    plain = read_plain(format_, Source("h", io.BytesIO(text.encode())), keyed=None)
    assert plain is not None
    assert list(plain.operations) == list(history.operations)
    assert plain.operations[0].error == "dup: x y"


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("timed out", "timed out"),
        (["dup"], "dup"),
        (["expected", 5, None, [1, 2]], "expected: 5 nil [1,2]"),
        ([3, "x y"], None),
        (8, None),
        ([], None),
        ({"a": 1}, None),
    ],
)
def test_a_value_without_words_is_no_reason(value: Any, error: str | None) -> None:
    """A number, or a list that begins with one, is a value; the warning tells that it is another one than in the invoke."""
    text = lines(event("invoke", "enqueue", 7), event("info", "enqueue", value))
    [operation] = read(text).operations
    assert (operation.value, operation.error) == (7, error)
    plain = read_plain(JSONL, Source("h", io.BytesIO(text.encode())), keyed=None)
    assert plain is None or plain.operations[0].error == error


def test_an_error_of_its_own_stays() -> None:
    """A reason beside an error does not replace it."""
    failed = event("fail", "enqueue", ["dup", "x y"]) | {"error": "full"}
    [operation] = read(lines(event("invoke", "enqueue", 7), failed)).operations
    assert operation.error == "full"


def test_the_value_of_the_invoke_is_no_reason() -> None:
    """Most clients repeat the value, and it may be a text."""
    [operation] = read(lines(event("invoke", "enqueue", "x y"), event("info", "enqueue", "x y"))).operations
    assert operation.error is None
