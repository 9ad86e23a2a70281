"""Reading histories of every format: the accepted forms with their meaning, and the refused ones with their messages."""

from __future__ import annotations

import gzip
import io
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from checker.formats.errors import BadHistory
from checker.formats.jepsen import write_history
from checker.formats.log_lines import CONSOLE_LOG
from checker.formats.parquet import write_operations
from checker.formats.read import History, read_histories, read_source
from checker.formats.readers import EDN, JSONL, PARQUET, copy_limit
from checker.formats.source import opened
from harness.errors import InfrastructureError, InputError
from harness.history import HistoryWriter, pair, read_history
from harness.op import Op, Operation, OpType
from harness.pairing import Event, Pairing, events_of

HEADER = '{"format":"labrys-history","version":1}\n'


def read_text(tmp_path: Path, text: str | bytes, *, keyed: bool | None = None) -> History:
    """Reads the single history of a file with this content."""
    path = tmp_path / "history"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    (history,) = read_histories(str(path), keyed=keyed)
    return history


def brief(operations: Any) -> list[tuple[Any, ...]]:
    """Returns process, f, value, result, type and indexes of operations."""
    return [(o.process, o.f, o.value, o.result, str(o.type), o.invoke_index, o.complete_index) for o in operations]


VECTOR = """; a comment
[{:process 0, :type :invoke, :f :write, :value 1}
 {:process 1, :type :invoke, :f :read, :value nil}
 {:process 0, :type :ok, :f :write, :value 1}
 {:process :nemesis, :type :info, :f :start, :value [:isolated {"n1" #{"n2"}}]}
 {:process 1, :type :ok, :f :read, :value 1}
 {:process 2, :type :invoke, :f :cas, :value [1 2]}
 {:process 2, :type :info, :f :cas, :value [1 2], :error [:timeout "5 s"]}]
"""
OPERATIONS = [
    (0, "write", 1, 1, "ok", 0, 2),
    (1, "read", None, 1, "ok", 1, 4),
    (2, "cas", [1, 2], None, "info", 5, 6),
]


@pytest.mark.parametrize(
    "text",
    [
        VECTOR,
        VECTOR.replace("[{", "({").replace('5 s"]}]', '5 s"]})'),
        VECTOR.replace("[{", "{").replace('5 s"]}]', '5 s"]}'),
        VECTOR.replace("{:process", "#jepsen.history.Op{:process"),
        VECTOR.replace("\n", "\r\n"),
        VECTOR.replace("\n", " ").replace("; a comment", ""),
        "\ufeff" + VECTOR,
        VECTOR.replace(":ok", '"ok"').replace(":f :read", ':f "read"').replace(":nemesis", '"nemesis"'),
        VECTOR.replace(":process", ":index -1, :time -1, :process"),
    ],
    ids=["vector", "list", "stream", "records", "crlf", "one line", "byte order mark", "strings", "minus one"],
)
def test_shapes_of_edn(tmp_path: Path, text: str) -> None:
    """One vector, one list, or a sequence of maps; tagged, spread over lines, with strings: all give the same history."""
    history = read_text(tmp_path, text)
    assert (history.format, history.events, history.timed, history.keyed) == (EDN, 7, False, False)
    assert brief(history.operations) == OPERATIONS
    assert history.operations[2].error == "timeout: 5 s"
    assert not history.warnings


def test_events_that_are_no_clients(tmp_path: Path) -> None:
    """Events of a nemesis or of other non-clients are counted and skipped, with or without index and time."""
    history = read_text(
        tmp_path,
        "{:type :info, :process :nemesis, :f :start}\n"
        "{:index 1, :time 7, :type :invoke, :process 0, :f :read, :value nil}\n"
        "{:index 2, :type :info, :process :nemesis, :f nil, :value ##NaN, :time 3}\n"
        "{:type :info, :process :watcher, :f :leader, :value :n1}\n"
        "{:index 4, :time 9, :type :ok, :process 0, :f :read, :value 3}\n",
    )
    assert (history.events, history.timed, history.warnings) == (5, True, [])
    assert brief(history.operations) == [(0, "read", None, 3, "ok", 1, 4)]


def test_clients_with_names(tmp_path: Path) -> None:
    """A process that invokes is a client. A name that never invokes is not, and a completion without an invoke is an error."""
    history = read_text(
        tmp_path,
        "{:process :logger :type :info :f :note :value 1}\n"
        "{:process :a :type :invoke :f :write :value 1}\n"
        '{:process "a" :type :invoke :f :read :value nil}\n'
        "{:process :a :type :info :f :write :value 1}\n"
        '{:process "a" :type :ok :f :read :value 1}\n',
    )
    assert [(op.process, op.type, op.result) for op in history.operations] == [
        ("a", OpType.INFO, None),
        ('"a"', OpType.OK, 1),
    ]
    with pytest.raises(BadHistory, match="a name that has invoked, found :b"):
        read_text(tmp_path, "{:process :b :type :ok :f :write :value 1}")


def test_tuples_with_a_tag(tmp_path: Path) -> None:
    """The first event with Jepsen's tag for tuples shows that the history has keys."""
    history = read_text(
        tmp_path,
        "{:process 0 :type :invoke :f :write :value #jepsen.independent/tuple [8 3]}\n"
        "{:process 0 :type :ok :f :write :value #jepsen.independent/tuple [8 3]}\n",
    )
    assert [(op.key, op.value, op.result) for op in history.operations] == [("8", 3, 3)]


def test_an_operation_has_its_members_where_they_belong() -> None:
    """Operations are made without their constructor, from the fields in order."""
    invoke = Op(3, 10, OpType.INVOKE, 7, "cas", [1, 2], "k", "n1", None, 5, "final")
    pairing = Pairing(partial(BadHistory, "x"))
    pairing.add(Event(1, invoke))
    pairing.add(Event(2, Op(4, 20, OpType.OK, 7, "cas", [1, 3], "k", "n2", "odd", 6, None)))
    [paired] = pairing.finish()
    expected = Operation(
        process=7,
        f="cas",
        value=[1, 2],
        result=[1, 3],
        type=OpType.OK,
        start_ns=10,
        end_ns=20,
        invoke_index=3,
        complete_index=4,
        key="k",
        node="n1",
        error="odd",
        scheduled_ns=5,
        phase="final",
    )
    assert paired == expected
    assert repr(paired) == repr(expected)


@pytest.mark.parametrize("odd", ["", "é", "\u2028", "x" * 5000, "x" * 100_000])
def test_lines_come_the_same_however_they_are_buffered(tmp_path: Path, odd: str) -> None:
    """Line numbers and text, for short and long lines, and for characters that other tools take as line ends."""
    text = "\n".join([*(f"{number}\r" for number in range(70_000)), odd, "", "end"])
    path = tmp_path / "lines"
    path.write_bytes(text.encode())
    with opened(str(path)) as source:
        lines: list[str] = []
        while piece := source.readline(1 << 16):
            if source.line > len(lines):
                lines.append("")
            lines[-1] += piece
    assert "".join(lines) == text
    assert [line.removesuffix("\n") for line in lines] == text.split("\n")


def test_indexes_and_times_of_edn(tmp_path: Path) -> None:
    """Members are kept as given, in any order of keys. Unknown ones are skipped."""
    history = read_text(
        tmp_path,
        '{:index 3, :time 10, :type :invoke, :process 0, :f :read, :value nil, :node "n1", :clock-offsets {"n1" 0.1}}\n'
        "{:value 7, :f :read, :process 0, :type :ok, :time 25, :index 8, :phase :final}\n",
    )
    (operation,) = history.operations
    assert history.timed
    assert (operation.invoke_index, operation.complete_index) == (3, 8)
    assert (operation.start_ns, operation.end_ns, operation.node) == (10, 25, "n1")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("#{3 1 2}", [1, 2, 3]),
        ('[:append "x" {:a 1, "b" nil}]', ["append", "x", {"a": 1, "b": None}]),
        ("(1 2)", [1, 2]),
        ("1.5", 1.5),
        ("1/2", "1/2"),
        ("##Inf", "##Inf"),
        ("12345678901234567890N", 12345678901234567890),
        ("#foo/bar [1]", {"#foo/bar": [1]}),
        (r"\a", "a"),
        ('#inst "2026-01-01"', {"#inst": "2026-01-01T00:00:00.000-00:00"}),
    ],
)
def test_values_of_edn(tmp_path: Path, value: str, expected: Any) -> None:
    """Each value becomes one that JSON can represent."""
    history = read_text(tmp_path, f"{{:process 0 :type :invoke :f :add :value {value}}}")
    assert history.operations[0].value == expected


def test_different_values_stay_different(tmp_path: Path) -> None:
    """A keyword and a string of the same name are two values, as in EDN. Equal ones are one."""
    values = [":a", '"a"', "a", r"\a", '":a"', ":b", '"1/2"', "1/2", ":a", '"a"', "1", "1.0", "true", '"1"']
    text = "\n".join(f"{{:process {i} :type :invoke :f :write :value {value}}}" for i, value in enumerate(values))
    read = [repr(operation.value) for operation in read_text(tmp_path, text).operations]
    assert read[0] == read[8] == "'a'"
    assert read[1] == read[9]
    assert len(set(read)) == len(set(values))


@pytest.mark.parametrize(
    ("events", "keyed", "expected"),
    [
        ([":write [:x 1]", ":read [:x nil]"], None, [("x", 1), ("x", None)]),
        ([":read [3 nil]", ":cas [3 [1 2]]"], None, [("3", None), ("3", [1, 2])]),
        ([":cas [1 2]", ":read nil"], None, [(None, [1, 2]), (None, None)]),
        ([":cas [1 2]", ":write [3 4]"], None, [(None, [1, 2]), (None, [3, 4])]),
        ([":cas [1 [2 3]]"], True, [("1", [2, 3])]),
        ([":read [3 nil]"], False, [(None, [3, None])]),
        ([":read [3 nil]", ':write ["3" 1]'], None, [("3", None), ('"3"', 1)]),
        ([":get nil, :key 3", ":put 1, :key 4"], None, [("3", None), ("4", 1)]),
    ],
)
def test_independent_keys(
    tmp_path: Path, events: list[str], keyed: bool | None, expected: list[tuple[str | None, Any]]
) -> None:
    """Tuples are keys on request, or if the first read invokes one; never because a cas looks like one."""
    text = "{:process :nemesis :type :info :f :start :value [1 nil]}\n"
    for process, event in enumerate(events):
        f, _, value = event.partition(" ")
        text += f"{{:process {process} :type :invoke :f {f} :value {value}}}\n"
    history = read_text(tmp_path, text, keyed=keyed)
    assert [(operation.key, operation.value) for operation in history.operations] == expected
    assert history.keyed == any(key is not None for key, _ in expected)


def test_a_failure_need_not_name_its_key(tmp_path: Path) -> None:
    """With tuples as values, a failed or crashed completion may have nil. Its invoke has the key and the value."""
    history = read_text(
        tmp_path,
        "{:process 0 :type :invoke :f :write :value [:x 1]}\n{:process 0 :type :fail :f :write :value nil}\n"
        "{:process 1 :type :invoke :f :write :value [:x 2]}\n{:process 1 :type :info :f :write}\n",
        keyed=True,
    )
    assert [(o.key, o.value, str(o.type)) for o in history.operations] == [("x", 1, "fail"), ("x", 2, "info")]


CONSOLE = """Running the test
INFO  jepsen.util - 0\t:invoke\t:read\tnil
INFO  jepsen.util - 1\t:invoke\t:cas\t[0 3]
INFO  jepsen.core - nemesis is up
INFO  jepsen.util - :nemesis\t:info\t:start\tnil
INFO  jepsen.util - 0\t:fail\t:read\t:timed-out
INFO  jepsen.util - 1\t:fail\t:cas\t[0 3]
INFO  jepsen.util - 2\t:invoke\t:write\t4
INFO  jepsen.util - 2\t:info\t:write\t:timed-out
INFO  jepsen.util - 3\t:invoke\t:read\tnil
INFO  jepsen.util - 3\t:ok\t:read\t4
"""


def test_logs_of_a_console(tmp_path: Path) -> None:
    """The reader finds events in the log. If a completion has a time-out in place of a value, the invoke's value counts."""
    history = read_text(tmp_path, CONSOLE.removeprefix("Running the test\n"))
    assert (history.format, history.events, history.timed) == (CONSOLE_LOG, 9, False)
    assert brief(history.operations) == [
        (0, "read", None, None, "fail", 0, 3),
        (1, "cas", [0, 3], None, "fail", 1, 4),
        (2, "write", 4, None, "info", 5, 6),
        (3, "read", None, 4, "ok", 7, 8),
    ]
    assert history.operations[2].error == "timed-out"
    assert brief(read_text(tmp_path, CONSOLE).operations) == brief(history.operations)


def test_kv_logs(tmp_path: Path) -> None:
    """Porcupine's key-value logs are EDN with a :key."""
    history = read_text(
        tmp_path,
        '{:process 0, :type :invoke, :f :append, :key "3", :value "x 0 0 y"}\n'
        '{:process 0, :type :ok, :f :append, :key "3", :value "x 0 0 y"}\n'
        '{:process 0, :type :invoke, :f :get, :key "4", :value nil}\n',
    )
    assert brief(history.operations) == [
        (0, "append", "x 0 0 y", "x 0 0 y", "ok", 0, 1),
        (0, "get", None, None, "info", 2, None),
    ]
    assert [operation.key for operation in history.operations] == ["3", "4"]


def write_jsonl(path: Path) -> None:
    """Writes a history in Labrys's format: two keys, a fault, an open operation."""
    writer = HistoryWriter(path, {"test": "t"})
    append = writer.append
    append(time_ns=1, op_type=OpType.INVOKE, process=0, f="write", value=5, key="a", node="n1", scheduled_ns=0)
    append(time_ns=2, op_type=OpType.INFO, process="nemesis", f="start-kill", value={"fault": 1, "targets": ["n1"]})
    append(time_ns=3, op_type=OpType.INVOKE, process=1, f="cas", value=[5, 6], key="b", node="n2")
    append(time_ns=4, op_type=OpType.OK, process=0, f="write", value=5, key="a", node="n1", via="n3", order=-(2**63))
    append(time_ns=5, op_type=OpType.FAIL, process=1, f="cas", value=[5, 6], key="b", node="n2", error="mismatch")
    append(time_ns=6, op_type=OpType.INVOKE, process=0, f="read", key="a", node="n1", phase="final")
    writer.close()


def test_our_own_formats_agree(tmp_path: Path) -> None:
    """JSON lines, Parquet and Jepsen's EDN of one history give the same operations, paired like the harness's."""
    jsonl, table, edn = (tmp_path / name for name in ("history.jsonl", "operations.parquet", "history.edn"))
    write_jsonl(jsonl)
    ops = read_history(jsonl).ops
    expected = pair(ops)
    write_operations(table, expected, run="r")
    write_history(edn, ops)
    by_format = {}
    for path in (jsonl, table, edn):
        (history,) = read_histories(str(path))
        by_format[history.format] = history
        assert history.operations == expected
        assert history.timed
        assert history.keyed
    assert set(by_format) == {JSONL, PARQUET, EDN}
    assert [op for op in ops if op.process != "nemesis"] == events_of(expected)


def test_compressed_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any format may be compressed, and come through a pipe that gives a few bytes at a time."""
    jsonl, table = tmp_path / "history.jsonl", tmp_path / "operations.parquet"
    write_jsonl(jsonl)
    expected = pair(read_history(jsonl).ops)
    write_operations(table, expected, run="r")
    for content in (jsonl.read_bytes(), table.read_bytes()):
        packed = tmp_path / "packed.gz"
        packed.write_bytes(gzip.compress(content))
        (history,) = read_histories(str(packed))
        assert history.operations == expected
        for stream in (content, gzip.compress(content)):
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stream)))
            (history,) = read_histories("-")
            assert (history.name, list(history.operations)) == ("-", expected)


def test_a_file_of_several_runs(tmp_path: Path) -> None:
    """Each run is a separate history, named by the file and the run."""
    jsonl, table = tmp_path / "history.jsonl", tmp_path / "operations.parquet"
    write_jsonl(jsonl)
    operations = pair(read_history(jsonl).ops)
    parts = []
    for run in ("r1", "r2"):
        write_operations(table, operations, run=run)
        parts.append(parquet.read_table(table))
    parquet.write_table(pa.concat_tables(parts, promote_options="permissive"), table)
    histories = read_histories(str(table))
    assert [history.name for history in histories] == [f"{table}#r1", f"{table}#r2"]
    assert all(history.operations == operations for history in histories)


def test_empty_histories(tmp_path: Path) -> None:
    """A file with an empty history is a history. An empty file is not."""
    assert not read_text(tmp_path, "[]").operations
    assert not read_text(tmp_path, HEADER).operations
    table = tmp_path / "operations.parquet"
    write_operations(table, [], run="r")
    (history,) = read_histories(str(table))
    assert not history.operations
    for text in ("", "  \n\n", "; nothing\n", "INFO  jepsen.core - nothing\n"):
        with pytest.raises(BadHistory, match=r"found (an empty file|no event)"):
            read_text(tmp_path, text)


def test_what_is_passed_over_is_said(tmp_path: Path) -> None:
    """A torn last line, another value on info, and times that go back between processes are warnings."""
    torn = read_text(
        tmp_path, HEADER + '{"index":0,"time":1,"type":"invoke","process":0,"f":"read","value":null}\n{"index":1,"ti'
    )
    assert (len(torn.operations), torn.warnings) == (1, ["line 3, the last one, is torn off and was left out"])
    changed = read_text(
        tmp_path, "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :info :f :write :value 2}"
    )
    assert changed.operations[0].value == 1
    assert "1 info completions have another value than their invoke, the first in line 2" in changed.warnings[0]
    back = read_text(
        tmp_path,
        "{:process 0 :type :invoke :f :read :value nil :time 5}\n{:process 1 :type :invoke :f :read :value nil :time 4}",
    )
    assert "times go back in line 2" in back.warnings[0]


INVOKE = "{:process 0 :type :invoke :f :write :value 1}"
TIMED = "{:process 0 :type :invoke :f :write :value 1 :time 9}"
INDEXED = "{:process 0 :type :invoke :f :write :value 1 :index 9}"
BARE = '{"type":"invoke","process":0,"f":"read"}'
EVENT = '{"index":0,"time":1,"type":"invoke","process":0,"f":"read","value":null}'


@pytest.mark.parametrize(
    ("extra", "timed"),
    [("", False), ('"time":3,', True), ('"time":3,"index":77,', True)],
    ids=["bare", "time", "index"],
)
def test_events_without_a_header_are_taken_in_the_order_of_the_lines(tmp_path: Path, extra: str, timed: bool) -> None:
    """There is one warning. Another tool's index does not count, and a missing value is nil."""
    lines = [
        f'{{{extra}"type":"invoke","process":0,"f":"write","value":1}}',
        f'{{{extra}"type":"invoke","process":1,"f":"read"}}',
        f'{{{extra}"type":"ok","process":1,"f":"read","value":1}}',
        f'{{{extra}"type":"ok","process":0,"f":"write"}}',
        '{"type":"inv',
    ]
    history = read_text(tmp_path, "\n".join(lines))
    assert brief(history.operations) == [(0, "write", 1, None, "ok", 0, 3), (1, "read", None, 1, "ok", 1, 2)]
    assert (history.format, history.timed) == (JSONL, timed)
    header, torn = history.warnings
    assert header.startswith("line 1 is an event and not the header")
    assert ("no times" in header) is not timed
    assert "torn off" in torn


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('["a",null]', "a"),
        ("[7,null]", "7"),
        ("null", None),
        ('["a",1]', None),
        ("[null]", None),
        ("[null,null]", None),
    ],
)
def test_an_event_without_a_header_may_be_keyed(tmp_path: Path, value: str, key: str | None) -> None:
    """The first read of [key, null] shows it, as in EDN; and the user can choose."""
    types = [(kind, process) for process in (0, 1) for kind in ("invoke", "info")]
    text = "".join(f'{{"type":"{kind}","process":{number},"f":"read","value":{value}}}\n' for kind, number in types)
    assert [operation.key for operation in read_text(tmp_path, text).operations] == [key, key]
    path = tmp_path / "chosen.jsonl"
    path.write_text(text)
    (chosen,) = read_histories(str(path), keyed=False)
    assert not chosen.keyed


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (f"{INVOKE}\n\n{INVOKE}", 3, "process 0 invokes 'write', but its 'write' of line 1 is still open"),
        ("[{:process 3 :type :ok :f :read :value 1}]", 1, "process 3 completes 'read' (ok), but has no operation open"),
        (f"{INVOKE}\n{{:process 0 :type :ok :f :read :value 1}}", 2, "expected the completion of 'write' of line 1"),
        (f"{INVOKE}\n{{:process 0 :type :ok :f :write :value 1 :key 2}}", 2, "expected a completion on key None"),
        (
            f"{INVOKE}\n{{:process 0 :type :info :f :write :value 1}}\n{INVOKE}",
            3,
            "process 0 invokes 'write', but ended with the info of line 2",
        ),
        (f"{TIMED}\n{{:process 0 :type :ok :f :write :value 1 :time 8}}", 2, "time decreases"),
        (
            f"{TIMED}\n{{:process 0 :type :ok :f :write :value 1 :time 12}}\n{TIMED}",
            3,
            "time decreases: process 0 has an event at 9 ns, but its last operation completed at 12 ns",
        ),
        (f"{INDEXED}\n{{:process 0 :type :ok :f :write :value 1}}", 2, "expected an :index as the events before have"),
        (f"{INVOKE}\n{{:process 0 :type :ok :f :write :value 1 :index 1}}", 2, "expected no :index"),
        (f"{INDEXED}\n{{:process 0 :type :ok :f :write :value 1 :index 9}}", 2, "expected an :index above 9, found 9"),
        (f"{TIMED}\n{{:process 0 :type :ok :f :write :value 1}}", 2, "expected an :time as the events before have"),
        ("{:process 0 :type :invoke :f :write :value 1 :time 1.5}", 1, "whole nanoseconds from 0 on, found 1.5"),
        ("{:process 0 :type :invoke :f :write :value ##NaN}", 1, "a value that equals itself, found ##NaN"),
        ("{:process 0 :type :invoke :f :write :value [1 #{##NaN}]}", 1, "found ##NaN"),
        ("\n{:process 0 :type :begin :f :write}", 2, "expected a :type :invoke, :ok, :fail or :info, found :begin"),
        (
            "{:type :invoke :f :write}",
            1,
            "expected a :process that is a number from 0 on, :nemesis, or a name that has invoked, found nil",
        ),
        ("{:process -1 :type :invoke :f :write}", 1, "found -1"),
        ("{:process true :type :invoke :f :write}", 1, "found true"),
        ("{:process :worker :type :ok :f :write}", 1, "found :worker"),
        ("{:process 99999999999999999999 :type :invoke :f :write}", 1, "found 99999999999999999999N"),
        ("{:process 0 :type :invoke}", 1, "expected an :f that is a keyword, found nil"),
        ("{:process 0 :type :invoke :f 7}", 1, "expected an :f that is a keyword, found 7"),
        ("[1 2]", 1, "expected the map of an event, found 1"),
        (f"{INVOKE}\nnil", 2, "expected the map of an event, found nil"),
        (f"{INVOKE}\n{{:process 1 :type", 2, "is never closed"),
        (f"[{INVOKE}", 1, "expected ']' at the end"),
        (f"[{INVOKE}]\n{INVOKE}", 2, "expected the end of the file after the last closing bracket"),
        ("[" * 1_000_000, 1, "nesting of at most 130"),
        ("{:process 0 :type :invoke :f :write :value " + "[" * 1_000_000, 1, "nesting of at most 130"),
        (
            "{:process 0 :type :invoke :f :read :value [1 nil]}\n{:process 1 :type :invoke :f :read :value nil}",
            2,
            "keyed",
        ),
        ("\x7fELF\x02\0\0", 1, "found binary data"),
        (b"[\x00\xff]", 1, "expected text, found binary data"),
        (b'{:process 0\n :f "caf\xe9"}', 2, "expected UTF-8 text"),
        (b"{:process 0}\n; \xc3", 2, "expected UTF-8 text"),
        ("hello", 1, "expected a history"),
        ("<html>", 1, "expected a history"),
        ("{}", 1, "header"),
        ('{"a":1}', 1, "header"),
        ('{"format":"labrys-history","version":2}', 1, "expected version 1 of the format, found 2"),
        (f"[{EVENT}", 1, "expected ] at the end of the JSON array; it breaks off after element 1"),
        (f"[{EVENT} {EVENT}]", 1, "expected a comma or ] after element 1, found '{'"),
        (f"[{EVENT},]", 2, "expected a JSON object, found ']'"),
        (f"[{EVENT}] 3", 1, "expected the end of the file after the JSON array, found '3'"),
        (f"[{EVENT}, 3]", 2, "expected a JSON object, found '3]'"),
        (f"[{EVENT},", 2, "expected a JSON object, found ''"),
        (f'[{EVENT}, {{"type": tru}}]', 2, "expected a JSON object"),
        ('[\n {"type":"invoke"}]', 1, 'expected a "process" that is a number from 0 on'),
        (f"{EVENT}\n{BARE}\n", 2, 'expected an "time" as the events before have'),
        (f"{BARE}\n{EVENT}\n", 2, 'expected no "time", since the events before have none'),
        (f"{BARE}\n{HEADER}", 2, 'expected a "type" "invoke", "ok", "fail" or "info", found nil'),
        ("0\t:invoke\t:read\tnil\n\na word\n", 3, "expected an event: process, :type, :f and value, found 'a word'"),
        ("0\t:invoke\t:read\tnil\n1\t:inv", 2, "expected an event"),
        ("0\t:invoke\t:read\tnil\n0\t:ok\t:read\t1 2", 2, "expected an event"),
        (f"{HEADER}{EVENT}\n{EVENT}\n", 3, "expected index 1, found 0"),
        (f"{HEADER}{EVENT[:-5]}\n{EVENT}\n", 2, "expected a JSON object"),
        (f"{HEADER}[1]\n", 2, "expected a JSON object"),
        (HEADER + EVENT.replace("null", "NaN") + "\n", 2, "NaN is not JSON"),
        (HEADER + EVENT.replace("null", "1e999") + "\n", 2, "expected a finite number, found inf"),
        (HEADER + EVENT.replace("null", "[" * 100_000) + "\n", 2, "expected a JSON object"),
        (HEADER + EVENT.replace("null", "[" * 200 + "]" * 200) + "\n", 2, "nested at most 128 deep"),
        (HEADER + EVENT.replace('"process":0', '"process":"x"') + "\n", 2, "expected a number or 'nemesis'"),
        (HEADER + EVENT + "\n" + EVENT.replace('"index":0', '"index":1') + "\n", 3, "is still open"),
        ("INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:inv", 2, "expected an event"),
        ("INFO  jepsen.util - 0\t:invoked\t:read\tnil\n", 1, "expected an event"),
        ("INFO  jepsen.util - 0\t:invoke\t:read\t[1\n", 1, "expected an event"),
        ("INFO  jepsen.util - 0\t:ok\t:read\t1\n", 1, "has no operation open"),
    ],
)
def test_bad_input_is_refused_with_its_line(tmp_path: Path, text: str | bytes, line: int, reason: str) -> None:
    """The file, the line, the expected and the actual content; exit code 254; never another kind of error."""
    with pytest.raises(InputError) as caught:
        read_text(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'history'}:{line}:")
    assert reason in message
    assert caught.value.exit_code == 254


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    """Gzip data that ends early or is damaged is an error about the file."""
    packed = gzip.compress((VECTOR + "; " * 5000).encode())
    for content in (packed[:100], packed[:-9], packed[:60] + b"xxxx" + packed[64:], b"\x1f\x8b"):
        with pytest.raises(BadHistory, match=r"history:\d+: "):
            read_text(tmp_path, content)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A missing path, or a directory."""
    with pytest.raises(BadHistory, match="No such file"):
        read_histories(str(tmp_path / "missing"))
    with pytest.raises(BadHistory, match="directory"):
        read_histories(str(tmp_path))


@pytest.mark.parametrize("name", ["x" * 256, "a\0b", "/proc/self/mem", "/dev/full/x"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    """A name that no file can have, and a file without permission to read."""
    with pytest.raises(BadHistory, match=r"cannot be read|is no path"):
        read_histories(str(tmp_path / name))


def test_what_is_unpacked_is_bounded(tmp_path: Path) -> None:
    """A megabyte of gzip that expands to zeros is refused at the limit, as Parquet and as text, and leaves no file."""
    bomb = tmp_path / "bomb"
    for head in (b"PAR1", b"{:a "):
        bomb.write_bytes(gzip.compress(head + b" " * (8 << 20)))
        with (
            pytest.raises(BadHistory, match=r"exceeds the limit; --unpack-limit MIB"),
            opened(str(bomb), 1 << 20) as source,
        ):
            read_source(source)
    with pytest.raises(BadHistory, match=r"exceeds the limit"), opened(str(bomb), 9 << 20) as source:
        list(source.parts(1 << 20))


def test_a_copy_leaves_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit, a copy may use the free space less a reserve, or half of the free space."""
    path = tmp_path / "history"
    path.write_bytes(b"PAR1")
    with opened(str(path)) as source:
        for free, most in ((10 << 30, 9 << 30), (1 << 30, 1 << 29), (1 << 50, 64 << 30), (0, 0)):
            monkeypatch.setattr("shutil.disk_usage", lambda _path, free=free: SimpleNamespace(free=free))
            assert copy_limit(source, tmp_path) == most


def test_a_full_temporary_folder_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, or a missing folder, is an error that names TMPDIR."""
    packed = tmp_path / "history.gz"
    packed.write_bytes(gzip.compress(b"PAR1" + bytes(10_000)))

    def full(*_arguments: Any, **_options: Any) -> Any:
        return open("/dev/full", "wb", buffering=0)  # noqa: PTH123 - closed by its user

    def missing(*_arguments: Any, **_options: Any) -> Any:
        raise FileNotFoundError("No usable temporary directory found")

    for replacement in (full, missing):
        monkeypatch.setattr("tempfile.NamedTemporaryFile", replacement)
        with pytest.raises(InfrastructureError, match=r"no temporary copy can be made.*set TMPDIR"):
            read_histories(str(packed))


def test_a_tilde_is_a_name_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyarrow would expand it, and the table would appear in another folder than the rest of a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    path = Path("~") / "operations.parquet"
    assert write_operations(path, [_row()], run="r") == 1
    assert [entry.name for entry in (tmp_path / "~").iterdir()] == ["operations.parquet"]
    (history,) = read_histories(str(path))
    assert len(history.operations) == 1


def test_a_doubled_column_is_refused(tmp_path: Path) -> None:
    """It is ambiguous which of two columns of one name counts."""
    path = tmp_path / "operations.parquet"
    write_operations(path, [_row()], run="r")
    table = parquet.read_table(path)
    parquet.write_table(table.append_column("f", table.column("f")), path)
    with pytest.raises(BadHistory, match="expected one column 'f', found 2"):
        read_histories(str(path))


def test_a_scheduled_time_before_the_run_is_refused(tmp_path: Path) -> None:
    """It would appear as a latency of decades."""
    event = '{"index":0,"time":1,"type":"invoke","process":0,"f":"read","value":null,"scheduled":-1000000000000000000}'
    with pytest.raises(BadHistory, match=r"expected nanoseconds since the run's start or null in 'scheduled'"):
        read_text(tmp_path, f"{HEADER}{event}\n")


def _row(**changed: Any) -> Operation:
    fields: dict[str, Any] = {
        "process": 0,
        "f": "read",
        "value": None,
        "result": 1,
        "type": OpType.OK,
        "start_ns": 1,
        "end_ns": 2,
        "invoke_index": 0,
        "complete_index": 1,
    }
    return Operation(**{**fields, **changed})


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            [_row(complete_index=5), _row(invoke_index=1, complete_index=6)],
            "row 2 (event 1): process 0 invokes while its operation of event 0",
        ),
        (
            [_row(type=OpType.INFO), _row(invoke_index=2, complete_index=3)],
            "works again after its operation of event 0",
        ),
        ([_row(complete_index=0)], "expected a complete_index above, found 0"),
        ([_row(end_ns=0)], "time decreases, from 1 to 0 ns"),
    ],
)
def test_bad_rows_are_refused(tmp_path: Path, rows: list[Operation], reason: str) -> None:
    """The same rules apply to operations that are already paired."""
    path = tmp_path / "operations.parquet"
    write_operations(path, rows, run="r")
    with pytest.raises(BadHistory) as caught:
        read_histories(str(path))
    assert reason in str(caught.value)
