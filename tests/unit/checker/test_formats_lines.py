"""Jepsen's lines of events: the consoles and logs of old and today, and history.txt."""

from __future__ import annotations

import io
from contextlib import closing

import pytest

from checker.edn.forms import first_form
from checker.formats.errors import BadHistory
from checker.formats.log_lines import CONSOLE_LOG, HISTORY_TXT, JEPSEN_LOG
from checker.formats.read import History, read_source
from checker.formats.source import Source

EVENTS = (
    "0\t:invoke\t:write\t2",
    "c1\t:invoke\t:read\tnil",
    ':nemesis\t:info\t[:start :partition]\t{:isolated #{"n1"}}',
    "0\t:info\t:write\t2\tindeterminate: 5 > 3 (no answer",
    "c1\t:ok\t:read\t2",
    "2\t:invoke\t:cas\t[2 3]",
    '2\t:fail\t:cas\t[2 3]\t[:not-leader "n3"]',
    "3\t:invoke\t:read\tnil",
    "3\t:fail\t:read\t:timed-out",
)
PREFIXES = {
    HISTORY_TXT: [""],
    JEPSEN_LOG: [
        "INFO [2026-01-02 03:04:05,678] jepsen worker 3 - jepsen.util ",
        "2026-01-02 03:04:05,678{GMT}\tINFO\t[jepsen worker 3] jepsen.util: ",
        "INFO [2026-01-02 03:04:05,678] jepsen worker 3 - my.own.logger ",
    ],
    CONSOLE_LOG: ["INFO  jepsen.util - ", "INFO [worker 3] jepsen.util - "],
}


def read(text: str, *, keyed: bool | None = None, transactions: str | None = None) -> History:
    """Reads a history."""
    with closing(Source("h", io.BytesIO(text.encode()))) as source:
        [history] = read_source(source, keyed=keyed, transactions=transactions)
    return history


@pytest.mark.parametrize(
    ("kind", "prefix", "gap"),
    [
        (kind, prefix, gap)
        for kind, prefixes in PREFIXES.items()
        for prefix in prefixes
        for gap in ("\t", "  ")
        if gap == "\t" or "own" not in prefix  # an unknown logger is recognized by the tabs alone
    ],
)
def test_the_same_events_with_each_prefix(kind: str, prefix: str, gap: str) -> None:
    """A value may be followed by an error that is no EDN; clients may have names; lines of other loggers are skipped."""
    lines = [prefix + event.replace("\t", gap) for event in EVENTS]
    if kind != HISTORY_TXT:
        lines.insert(2, "INFO [2026-01-02 03:04:05,678] main - jepsen.core Worker 3 :ok :starting")
        lines.insert(5, "java.lang.Exception: at jepsen.util$fn.invoke(util.clj:3)")
    history = read("\n".join(lines) + "\n")
    assert (history.format, history.events, history.timed) == (kind, 9, False)
    assert [(op.process, op.f, op.value, op.result, str(op.type), op.error) for op in history.operations] == [
        (0, "write", 2, None, "info", "indeterminate: 5 > 3 (no answer"),
        ("c1", "read", None, 2, "ok", None),
        (2, "cas", [2, 3], None, "fail", "not-leader: n3"),
        (3, "read", None, None, "fail", "timed-out"),
    ]
    # The compare-and-set failed because there was no leader, so it says nothing about the value.
    assert history.conventions.get("failed_cas") == ("drop" if kind == CONSOLE_LOG else None)


def test_an_old_log_whose_failures_have_no_error_keeps_its_convention() -> None:
    """A compare-and-set that failed without an error proves that the value was different."""
    text = "INFO  jepsen.util - 2\t:invoke\t:cas\t[2 3]\nINFO  jepsen.util - 2\t:fail\t:cas\t[2 3]\n"
    assert not read(text).conventions


def test_an_error_may_continue_on_the_next_lines() -> None:
    """In history.txt, lines that do not begin as an event belong to the error before; elsewhere they are refused."""
    text = "0\t:invoke\t:write\t2\n0\t:info\t:write\t2\tjava.lang.Exception: no\n\tat a.b.C\n\n1\t:invoke\t:read\tnil\n"
    assert [op.error for op in read(text).operations] == ["java.lang.Exception: no", None]
    for broken in (text + "word\n", text.replace("\tjava.lang.Exception: no", ""), text + "2\t:inv"):
        with pytest.raises(BadHistory, match="expected an event: process, :type, :f and value"):
            read(broken)


def test_tuples_are_independent_keys() -> None:
    """The first read of a key and nil shows it; the user can choose, and transactions have their rules."""
    text = '0\t:invoke\t:read\t["x" nil]\n0\t:ok\t:read\t["x" 3]\n'
    assert [(op.key, op.result) for op in read(text).operations] == [("x", 3)]
    assert [op.key for op in read(text, keyed=False).operations] == [None]
    alone = read("0\t:ok\t:txn\t[[:r 1 [2]]]\n", transactions="list-append")
    assert alone.lacks == ("realtime",)


@pytest.mark.parametrize(
    ("text", "form", "rest"),
    [
        (" nil", "nil", ""),
        ("[1 [2 #{3}]] rest)", "[1 [2 #{3}]]", " rest)"),
        ('"a \\" b" c', '"a \\" b"', " c"),
        ("#tag {:a 1} [", "#tag {:a 1}", " ["),
        ("#_ 1 #_[2] 3 4", "#_ 1 #_[2] 3", " 4"),
        ("##Inf x", "##Inf", " x"),
        ("\\( (", "\\(", " ("),
        ("2 indeterminate: ", "2", " indeterminate: "),
    ],
)
def test_the_first_form_of_a_text(text: str, form: str, rest: str) -> None:
    """What follows need not be EDN."""
    assert first_form(text) == (form, rest)


@pytest.mark.parametrize("text", ["", "  ", "[1", '"a', "]", "#tag", "#_ 1", "; 1"])
def test_a_text_without_a_whole_form(text: str) -> None:
    """There is an error."""
    with pytest.raises(ValueError, match="expected a form of EDN"):
        first_form(text)
