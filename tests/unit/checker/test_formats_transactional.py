"""Histories of transactions are read as other checkers of transactions write them, and the result says what they lack."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from checker.checking import Refused, Request, check_file
from checker.deciders import Wanted
from checker.formats.columns import of_operations
from checker.formats.errors import BadHistory
from checker.formats.read import History, read_source
from checker.formats.source import Source
from checker.judging.judged import Judged
from checker.presentation import as_edn
from checker.transactions.judge import judge
from harness.errors import InputError
from harness.op import OpType
from harness.verdict import Verdict

SKEW = [[["append", "x", 1], ["r", "y", None]], [["append", "y", 2], ["r", "x", None]]]
SEEN = [["r", "x", [1]], ["r", "y", [2]]]


def read(text: str, transactions: str = "list-append") -> History:
    """Reads a history."""
    [history] = read_source(Source("h", io.BytesIO(text.encode())), transactions=transactions)
    return history


def decided(tmp_path: Any, text: str, workload: str = "list-append", *options: str) -> Judged:
    """Decides a history, as the command does."""
    file = tmp_path / "history"
    file.write_text(text, encoding="utf-8")
    wanted = Wanted(model=None, workload=workload, settings=options, by_place=True)
    [result] = check_file(str(file), Request(wanted=wanted))
    assert not isinstance(result, Refused)
    assert isinstance(result, Judged)
    return result


def edn(value: Any) -> str:
    """Returns micro-operations in EDN."""
    if isinstance(value, list):
        return f"[{' '.join(map(edn, value))}]"
    return "nil" if value is None else f":{value}" if isinstance(value, str) else str(value)


def completions(form: str) -> str:
    """Returns completions alone, without index, time and process."""
    values = [*SKEW, SEEN]
    if form == "edn":
        return "\n".join(f"{{:type :ok, :value {edn(value)}}}" for value in values)
    events = [{"type": "ok", "value": value, "more": [1]} for value in values]
    return json.dumps(events) if form == "array" else "\n".join(map(json.dumps, events))


@pytest.mark.parametrize("form", ["edn", "lines", "array"])
def test_completions_alone_have_only_edges_of_data(tmp_path: Any, form: str) -> None:
    """The request of each is its answer without the results of reads, and the result names the edges without data."""
    text = completions(form)
    history = read(text)
    assert [op.value for op in history.operations][:2] == SKEW
    assert history.operations[2].value == [["r", "x", None], ["r", "y", None]]
    assert [op.process for op in history.operations] == [0, 1, 2]
    assert list(history.lacks) == ["process", "realtime"]
    result = decided(tmp_path, text)
    assert result.verdict is Verdict.INVALID
    figures = result.to_json()["figures"][""]
    assert figures["anomaly-types"] == ["G2-item"]
    assert figures["lacking-edges"] == ["process", "realtime"]
    weaker = decided(tmp_path, text, "list-append", "consistency-model=strong-session-snapshot-isolation")
    assert weaker.verdict is Verdict.UNKNOWN
    assert "does not tell the processes, so strong-session-snapshot-isolation is not decided" in weaker.part.reason
    assert weaker.cause == "unsuited"
    assert "transactions began" not in weaker.part.reason
    by_data = decided(tmp_path, text, "list-append", "consistency-model=SI")
    assert by_data.verdict is Verdict.VALID
    assert "does not tell" not in by_data.part.reason


def test_the_order_of_a_process_needs_no_invokes(tmp_path: Any) -> None:
    """A process that misses its own append contradicts its session, and no edge of real time is needed."""
    events = [{"type": "ok", "process": 3, "value": [value]} for value in (["append", "x", 1], ["r", "x", None])]
    events.append({"type": "ok", "process": 4, "value": [["r", "x", [1]]]})
    result = decided(tmp_path, json.dumps(events), "list-append", "consistency-model=strong-session-serializable")
    assert list(result.to_json()["counts"]) == ["transactions", "G-single-item-process"]
    assert result.history.lacks == ("realtime",)


def test_softer_rules_are_told(tmp_path: Any) -> None:
    """A process may go on after an info, and a failed transaction may have results; both are warnings."""
    events = [
        {"type": kind, "process": 0, "f": "txn", "value": [["r", "x", value], ["append", "x", element]]}
        for kind, value, element in (
            ("invoke", None, 1), ("info", None, 1), ("invoke", None, 2), ("fail", [1], 2), ("invoke", None, 3), ("ok", [1], 3),
        )
    ]  # fmt: skip
    history = read("\n".join(map(json.dumps, events)))
    assert [op.type for op in history.operations] == [OpType.INFO, OpType.FAIL, OpType.OK]
    assert not history.lacks
    told = " ".join(history.warnings)
    assert "1 times a process worked again after an info" in told
    assert "1 fail completions have another value" in told
    with pytest.raises(BadHistory, match="never works again"):
        read_source(Source("h", io.BytesIO("\n".join(map(json.dumps, events)).encode())))


@pytest.mark.parametrize("alone", [True, False])
def test_reads_of_an_info_count_if_it_happened(tmp_path: Any, *, alone: bool) -> None:
    """An info whose append was read counts as an answer; another one, and a nil, do not. Both are told."""
    several: list[tuple[str, list[Any]]] = [
        ("info", [["r", "x", []], ["append", "y", 1], ["r", "z", None]]),
        ("info", [["r", "x", [7]], ["append", "y", 2]]),
        ("ok", [["append", "x", 1]]),
        ("ok", [["r", "x", [1]], ["r", "y", [1]], ["append", "z", 1]]),
    ]
    events: list[dict[str, Any]] = []
    if alone:
        events = [
            {"type": kind, "process": index, "f": "txn", "value": mops} for index, (kind, mops) in enumerate(several)
        ]
    else:
        for kind, mops in several:
            asked = [[f, key, None if f == "r" else value] for f, key, value in mops]
            events += [
                {"type": type_, "process": len(events) // 2, "f": "txn", "value": some}
                for type_, some in (("invoke", asked), (kind, mops))
            ]
    result = decided(tmp_path, json.dumps(events), "list-append", "consistency-model=serializable")
    assert result.part.verdict is Verdict.VALID
    told = " ".join(result.history.warnings)
    assert "1 transactions without an answer show results of reads, and another one read what they wrote" in told
    assert "1 transactions without an answer show results of reads, but nobody read" in told
    events[0 if alone else 1]["value"][0][2] = [1, 2]
    result = decided(tmp_path, json.dumps(events), "list-append", "consistency-model=serializable")
    assert list(result.to_json()["counts"]) == ["transactions", "garbage-read"]


def test_a_function_that_is_no_text_is_no_read() -> None:
    """A history with lists in place of names is refused with a sentence."""
    events = [{"type": kind, "process": 0, "f": "txn", "value": [[["r"], "x", {}]]} for kind in ("invoke", "info")]
    history = read("\n".join(map(json.dumps, events)))
    with pytest.raises(InputError, match="expected a micro-operation"):
        judge(of_operations(history.operations), workload="list-append", model="serializable")


TEXT = "w(1,1,0,0)\nr(1,1,1,1)\nw(2,5,1,1)\n\nr(2,5,2,2)\nr(1,0,2,2)\nw(1,9,2,-1)\nr(1,9,4,7)\n"


def test_the_text_of_micro_operations(tmp_path: Any) -> None:
    """Sessions are processes, 0 is the initial value, and the transaction -1 was rolled back."""
    history = read(TEXT, "rw-register")
    assert [(op.process, op.type, op.value) for op in history.operations] == [
        (0, OpType.OK, [["w", 1, 1]]),
        (1, OpType.OK, [["r", 1, None], ["w", 2, 5]]),
        (2, OpType.OK, [["r", 2, None], ["r", 1, None]]),
        (2, OpType.FAIL, [["w", 1, 9]]),
        (4, OpType.OK, [["r", 1, None]]),
    ]
    assert history.operations[2].result == [["r", 2, 5], ["r", 1, None]]
    result = decided(tmp_path, TEXT, "rw-register")
    assert set(result.to_json()["counts"]) == {"transactions", "G-single-item", "G1a"}


def test_a_first_transaction_may_write_the_initial_value(tmp_path: Any) -> None:
    """Its writes of 0 are the initial state, so that reads of 0 come before all writes; a warning tells it."""
    text = "w(1,0,0,0)\nw(2,0,0,0)\nr(1,0,1,1)\nw(2,1,1,1)\nr(2,0,2,2)\nw(1,1,2,2)\n"
    history = read(text, "rw-register")
    assert [op.process for op in history.operations] == [1, 2]
    assert "writes 0, the initial value, to 2 keys" in " ".join(history.warnings)
    assert list(decided(tmp_path, text, "rw-register").to_json()["counts"]) == ["transactions", "G2-item"]


def test_the_text_of_awdits_tests(tmp_path: Any) -> None:
    """Lines stand between transactions and sessions, and 0 is a value as any other one."""
    text = "r 1 1\n-----\nw 0 0\n=====\nr 0 0\r\n-----\n\nw 1 1"
    history = read(text, "rw-register")
    assert [(op.process, op.result) for op in history.operations] == [
        (0, [["r", 1, 1]]), (0, [["w", 0, 0]]), (1, [["r", 0, 0]]), (1, [["w", 1, 1]]),
    ]  # fmt: skip
    assert list(decided(tmp_path, text, "rw-register").to_json()["counts"]) == ["transactions", "G1c-process"]


EXAMPLE = """; reads have no place for their results, and indexes go back
{:process 1, :index 1 :type :invoke, :value [[:r x]]}
{:process 1, :index 2 :type :ok,     :value [[:r x []]]}
{:process 2, :index 1 :type :invoke, :value [[:append x 1] [:r x]]}
{:process :nemesis :type :info :f :kill :index 2}
{:process 2, :index 2 :type :ok,     :value [[:append x 1] [:r x [1]]]}
{:process 1, :index 9 :type :invoke, :value [[:r x]]}
{:process 1, :index 9 :type :ok,     :value [[:r x [1 2]]]}
"""


def test_examples_of_elle_cli_are_read(tmp_path: Any) -> None:
    """A read may lack the place of its result, and the order of the file counts where the index does not rise."""
    history = read(EXAMPLE)
    assert [(op.invoke_index, op.complete_index) for op in history.operations] == [(1, 2), (3, 5), (9, 10)]
    assert history.operations[1].value == [["append", "x", 1], ["r", "x", None]]
    assert "4 events have an :index that is not above the one before" in " ".join(history.warnings)
    assert list(decided(tmp_path, EXAMPLE).to_json()["counts"]) == ["transactions", "garbage-read"]
    with pytest.raises(BadHistory, match="h:4: expected an :index above 2, found 1"):
        read_source(Source("h", io.BytesIO(EXAMPLE.replace(":value", ":f :txn :value").encode())))


def test_members_that_are_null_are_missing() -> None:
    """A tool that writes all members in JSON has nulls in place of a process, an index, a time or an error."""
    event = {"type": "ok", "process": None, "time": None, "index": None, "f": None, "error": None}
    history = read(json.dumps([event | {"value": value} for value in SKEW]))
    assert history.lacks == ("process", "realtime")
    assert not history.timed


def test_clients_with_names_are_numbered(tmp_path: Any) -> None:
    """A client may have a name, also one that only completes; a warning tells its number in sentences."""
    text = (
        "{:type :invoke :process 4 :value [[:append x 1]]}{:type :ok :process 4 :value [[:append x 1]]}"
        '{:type :ok :process "c1" :value [[:r x [1]]]}{:type :ok :process "c1" :value [[:r x nil]]}'
    )
    result = decided(tmp_path, text)
    assert list(result.to_json()["counts"]) == ["transactions", "G-single-item-process"]
    assert "numbers: 5 is 'c1'" in " ".join(result.history.warnings)
    assert "transactions of process 5" in result.part.reason


@pytest.mark.parametrize("value", [3, [["w", "x", 1]]])
def test_a_failed_transaction_may_have_any_value(value: Any) -> None:
    """It has that of its invoke, with a warning."""
    events = [{"type": "invoke", "process": 0, "value": SKEW[0]}, {"type": "fail", "process": 0, "value": value}]
    history = read(json.dumps(events))
    assert history.operations[0].value == SKEW[0]
    assert "1 fail completions have another value than their invoke" in " ".join(history.warnings)


@pytest.mark.parametrize(
    ("text", "workload", "problem"),
    [
        (TEXT, "list-append", "h:1: expected lists, found reads and writes of single values"),
        ("w(1,1,0,0)\nw(1,x,0,0)", "rw-register", r"h:2: expected r\(key,value,session,transaction\)"),
        ("w(1,0,0,0)\nw(2,0,1,1)", "rw-register", "h:2: expected a write of a value other than 0"),
        ("w(1,5,0,0)\nw(1,0,0,0)", "rw-register", "h:2: expected a write of a value other than 0"),
        ("r 1 2\n=====\nx 1 2", "rw-register", "h:3: expected r key value, w key value, a line of - or a line of ="),
        ("w(1," + "1" * 9999, "rw-register", r"h:1: expected r\(key"),
        ('[{"type": "ok", "value": []}, 3]', "list-append", "h:2: expected a JSON object"),
        ('[{"type": "ok", "value": [', "list-append", "h:1: expected a JSON object, which breaks off here"),
        ('[{"type": "invoke", "value": []}, {"type": "invoke", "value": []}]', "list-append", "because neither has a process"),
        ('[{"type": "ok", "type": "ok"}]', "list-append", "duplicate"),
        ('[{"type": "ok", "value": ' + "[" * 5000 + "]" * 5000 + "}]", "list-append", "h"),
    ],
)  # fmt: skip
def test_what_is_none_of_these_has_a_place_and_a_sentence(text: str, workload: str, problem: str) -> None:
    """No text gives a traceback."""
    with pytest.raises(InputError, match=problem):
        read(text, workload)


def test_a_source_that_needs_what_the_history_lacks_is_refused(tmp_path: Any) -> None:
    """Versions cannot follow real time in a history without invokes."""
    with pytest.raises(
        InputError, match="expected an event of type invoke for each operation, which linearizable-keys"
    ):
        decided(tmp_path, TEXT, "rw-register", "linearizable-keys=true")


def test_the_map_of_edn_has_the_members_of_elles(tmp_path: Any) -> None:
    """Types, models that fall and examples of each type have Elle's names; a cycle returns to its first transaction."""
    text = as_edn([decided(tmp_path, completions("edn"))])
    for part in (
        ":valid? false",
        ":anomaly-types [:G2-item]",
        ":not #{:repeatable-read}",
        ":also-not #{:serializable :strong-serializable :strong-session-serializable}",
        ':anomalies {:G2-item [{:type :G2-item, :cycle [{:process 0, :type :ok, :f :txn, :value [[:append "x" 1] [:r "y" nil]]',
        ':steps [{:type :rw, :key "y"} {:type :rw, :key "x"}], :explanation "G2-item: a cycle of 2 transactions.',
    ):
        assert part in text


def test_anomalies_can_be_excluded_beyond_a_model(tmp_path: Any) -> None:
    """An anomaly that the model allows makes the history invalid if it, or what it implies, is named."""
    text = completions("lines")
    allowed = decided(tmp_path, text, "list-append", "consistency-model=snapshot-isolation", "anomalies=lost-update")
    assert allowed.verdict is Verdict.VALID
    assert "and none of lost-update" in allowed.part.reason
    excluded = decided(tmp_path, text, "list-append", "consistency-model=snapshot-isolation", "anomalies=G2,G1c")
    assert excluded.verdict is Verdict.INVALID
    with pytest.raises(InputError, match="found G3"):
        decided(tmp_path, text, "list-append", "anomalies=G3")


def test_events_without_a_process_follow_each_other() -> None:
    """As in the example of Elle's paper: an invoke without a process ends with the next event that has none."""
    texts = [f"{{:type {kind}, :value {edn(value)}}}" for value in [*SKEW, SEEN] for kind in (":invoke", ":ok")]
    history = read("\n".join(texts))
    assert history.lacks == ("process",)
    assert [(op.process, op.invoke_index, op.complete_index) for op in history.operations] == [
        (0, 0, 1),
        (1, 2, 3),
        (2, 4, 5),
    ]
    assert history.warnings == [
        "6 events have no process, so each transaction among them counts as one of a process of its own"
    ]


def test_an_info_without_a_process_does_not_end_the_others() -> None:
    """A transaction that may have happened, one that failed, and one that is only an answer."""
    values = edn([["append", "x", 1]]), edn([["append", "x", 2]]), edn([["r", "x", [1]]])
    events = [(":invoke", 0), (":info", 0), (":invoke", 1), (":fail", 1), (":ok", 2)]
    history = read("\n".join(f"{{:type {kind}, :value {values[number]}}}" for kind, number in events))
    assert [str(op.type) for op in history.operations] == ["info", "fail", "ok"]
    assert history.lacks == ("process", "realtime")


@pytest.mark.parametrize(
    ("second", "found"), [(":invoke", "found another invoke without one"), (":ok", "found that of another transaction")]
)
def test_two_open_transactions_without_a_process_are_refused(second: str, found: str) -> None:
    """Nobody could say which of them an answer ends."""
    text = f"{{:type :invoke, :value [[:append :x 1]]}}\n{{:type {second}, :value [[:append :x 2]]}}"
    with pytest.raises(InputError, match=f"h:2: expected the completion of the invoke on line 1, .*{found}"):
        read(text)
