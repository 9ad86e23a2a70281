"""history.edn: the form that knossos and Jepsen read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checker.edn.reader import load_all
from checker.edn.values import EdnMap, EdnSet, Keyword, Tagged
from checker.formats.jepsen import write_history, write_key_histories
from harness.errors import InfrastructureError, InputError
from harness.op import NEMESIS, Op, OpType

if TYPE_CHECKING:
    from pathlib import Path

INVOKE, OK, FAIL, INFO = OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO

HISTORY = [
    Op(0, 5, INVOKE, 0, "read", None, "k1", "n1", scheduled_ns=4),
    Op(1, 6, INVOKE, 1, "cas", [1, 2], "k2", "n2"),
    Op(2, 7, INFO, NEMESIS, "start-kill", {"fault": 1, "targets": ["n1"]}),
    Op(3, 8, OK, 0, "read", 7, "k1", "n1", via="n3", order=-12),
    Op(4, 9, FAIL, 1, "cas", None, "k2", "n2", 'mismatch: found "3"'),
    Op(5, 10, INVOKE, 2, "write", 3, "k1", "n3", phase="final"),
    Op(6, 11, INFO, 2, "write", 99, "k1", "n3", "timeout"),
    Op(7, 12, INVOKE, 0, "read", None, "k1", "n1"),
]


def test_the_whole_history(tmp_path: Path) -> None:
    """One map per line in Jepsen's order of keys, keyed values as tuples, and the invoke's value on fail and info."""
    path = tmp_path / "history.edn"
    assert write_history(path, iter(HISTORY)) == 8
    assert path.read_text() == (
        '{:index 0, :time 5, :type :invoke, :process 0, :f :read, :value ["k1" nil], :node "n1", :scheduled 4, '
        ":labrys/conventions {:keyed true, :nil-read :exact, :failed-cas :drop, :crashed-dequeue :takes}}\n"
        '{:index 1, :time 6, :type :invoke, :process 1, :f :cas, :value ["k2" [1 2]], :node "n2"}\n'
        '{:index 2, :time 7, :type :info, :process :nemesis, :f :start-kill, :value {:fault 1, :targets ["n1"]}}\n'
        '{:index 3, :time 8, :type :ok, :process 0, :f :read, :value ["k1" 7], :node "n1", :via "n3", :order -12}\n'
        '{:index 4, :time 9, :type :fail, :process 1, :f :cas, :value ["k2" [1 2]], :node "n2", '
        ':error "mismatch: found \\"3\\""}\n'
        '{:index 5, :time 10, :type :invoke, :process 2, :f :write, :value ["k1" 3], :node "n3", :phase :final}\n'
        '{:index 6, :time 11, :type :info, :process 2, :f :write, :value ["k1" 3], :node "n3", :error "timeout"}\n'
        '{:index 7, :time 12, :type :invoke, :process 0, :f :read, :value ["k1" nil], :node "n1"}\n'
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["history.edn"]


def test_a_file_for_each_key(tmp_path: Path) -> None:
    """Clients only, plain values, indexes of the whole history, and file names that are safe for any key."""
    files = write_key_histories(tmp_path / "keys", [*HISTORY, Op(8, 13, INVOKE, 3, "read", key="../k 3")])
    assert {key: path.name for key, path in files.items()} == {
        "k1": "0000-k1.edn",
        "k2": "0001-k2.edn",
        "../k 3": "0002-.._k_3.edn",
    }
    forms = load_all(files["k2"].read_text())
    assert [(form[Keyword("index")], form[Keyword("value")]) for form in forms] == [(1, (1, 2)), (4, (1, 2))]


def test_transactions_have_keywords(tmp_path: Path) -> None:
    """Elle and knossos use keywords for the functions within a transaction."""
    path = tmp_path / "history.edn"
    write_history(path, [Op(0, 0, INVOKE, 0, "txn", [["append", "x", 1], ["r", "x", None]])])
    assert ':value [[:append "x" 1] [:r "x" nil]]' in path.read_text()


def test_only_what_knossos_reads(tmp_path: Path) -> None:
    """No tags and no sets. Names that are not keywords stay strings."""
    path = tmp_path / "history.edn"
    value = {"a b": [1.5, True, None, "x"], "deep": [{"y": [[]]}]}
    write_history(path, [Op(0, 0, INVOKE, 0, "do it", value)])
    (form,) = load_all(path.read_text())
    assert form[Keyword("f")] == "do it"

    def kinds(part: object) -> set[type]:
        if isinstance(part, EdnMap):
            return {EdnMap}.union(*(kinds(key) | kinds(member) for key, member in part.items()))
        return {type(part)}.union(*map(kinds, part)) if isinstance(part, tuple) else {type(part)}

    assert not kinds(form) & {Tagged, EdnSet}


def test_errors_leave_no_file(tmp_path: Path) -> None:
    """A value beyond EDN, or a missing directory, is an error, and no partial file remains."""
    with pytest.raises(InputError):
        write_history(tmp_path / "history.edn", [Op(0, 0, INVOKE, 0, "read", object())])
    with pytest.raises(InfrastructureError, match="cannot be written"):
        write_history(tmp_path / "missing" / "history.edn", [])
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match="cannot be made"):
        write_key_histories(tmp_path / "file", [])
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
