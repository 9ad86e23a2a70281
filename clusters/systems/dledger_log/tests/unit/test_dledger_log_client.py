"""The client of DLedger's log: its requests, and its outcomes for scripted and recorded answers."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.kit.stored import entry_body
from clusters.systems.dledger.members import Members
from clusters.systems.dledger.routing import Group
from clusters.systems.dledger.tests.unit.test_dledger_outcomes import (
    PERHAPS_APPENDED,
    REFUSED_BEFORE_THE_APPEND,
    refused_read,
    refused_write,
)
from clusters.systems.dledger_log.client import CLIENTS
from clusters.systems.dledger_log.entries import BARRIER
from harness.node import Node
from harness.op import ONLY_KEY, Fail, Info, Invocation, Ok
from tests.unit.clusters.remoting_script import answer, frame, scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.op import Outcome, Value

    Script = Callable[[Mapping[str, Any], Mapping[str, Any]], bytes | None]

NODES = (Node(name="n1", address="127.0.0.1"), Node(name="n2", address="127.0.0.1"))
APPEND, GET = 50001, 50002
NOOP, CONFIG_CHANGE = 2, 3

# Recorded answers of three plain servers of DLedger 0.4.0, except for the request's number.
HEADER = '{{"code":200,"flag":1,"language":"JAVA","opaque":{opaque},"serializeTypeCurrentRPC":"JSON","version":0}}'
APPENDED = '{"code":200,"group":"labrys","index":0,"leaderId":"n1","pos":0,"term":1}'
NO_SUCH_INDEX = '{"code":410,"entries":[],"group":"labrys","leaderId":"n1","remoteId":"n1","term":-1}'
GET_AT_A_FOLLOWER = '{"code":404,"entries":[],"group":"labrys","leaderId":"n1","remoteId":"n2","term":-1}'
APPEND_AT_A_FOLLOWER = '{"code":404,"group":"labrys","index":-1,"leaderId":"n1","pos":-1,"remoteId":"n2","term":-1}'
ONE_ENTRY = (
    '{"code":200,"entries":[{"body":"aGVsbG8=","bodyCrc":0,"chainCrc":0,"channel":0,"index":0,"magic":1,"pos":0,'
    '"size":53,"term":1}],"group":"labrys","term":-1}'
)


class Log:
    """A leader with a log, with answers in the library's form."""

    def __init__(self, *bodies: bytes, magics: Mapping[int, int] | None = None) -> None:
        self.bodies = list(bodies)
        self.magics = dict(magics or {})
        self.refused: dict[int, int] = {}

    def __call__(self, header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
        """Appends, or gets one entry."""
        if header["code"] == APPEND:
            self.bodies.append(base64.b64decode(body["body"]))
            return answer(header["opaque"], {"code": 200, "index": len(self.bodies) - 1, "leaderId": "n1", "term": 1})
        assert header["code"] == GET
        index = body["beginIndex"]
        if index in self.refused:
            return answer(header["opaque"], {"code": self.refused[index]})
        if index >= len(self.bodies):
            return answer(header["opaque"], {"code": 410, "entries": []})
        entry = {
            "index": index,
            "magic": self.magics.get(index, 1),
            "body": base64.b64encode(self.bodies[index]).decode(),
        }
        return answer(header["opaque"], {"code": 200, "entries": [entry]})


def says(body: str | dict[str, Any] | None, *, status: int = 200, remark: str | None = None) -> Script:
    """A script that always gives this answer; a text is a recorded one."""
    if isinstance(body, str):
        return lambda header, _: frame(HEADER.format(opaque=header["opaque"]).encode(), body.encode())
    return lambda header, _: answer(header["opaque"], body, status=status, remark=remark)


def outcome_of(
    script: Script,
    f: str,
    value: Value = None,
    *,
    key: str | None = None,
    barrier: bool = True,
    window: int = 4,
    at: Node = NODES[0],
) -> Outcome:
    """The outcome of a new client for this script's answers."""

    async def main() -> Outcome:
        async with scripted(script) as node, asyncio.timeout(10):
            group = Group(
                name="labrys", nodes=NODES, port=node.port, members=Members(NODES, port=node.port, system="DLedger")
            )
            workload = "set" if f == "add" or (f == "read" and value is None) else "log"
            client = CLIENTS[workload](group=group, node=at, barrier=barrier, window=window, follows=False)
            try:
                return await client.invoke(Invocation(f, value, key))
            finally:
                await client.close()

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the pause after refusals, and gives connections more time on a busy machine."""
    monkeypatch.setattr("clusters.systems.dledger.routing.PAUSE_S", 0.0)
    monkeypatch.setattr(Group.connect, "__defaults__", (30.0,))


def test_answers_of_real_servers() -> None:
    """The client parses each kind of answer of plain servers."""
    assert outcome_of(says(APPENDED), "append", "v") == Ok(0, order=0)
    assert outcome_of(says(APPENDED), "add", "v") == Ok("v", order=0)
    assert outcome_of(says(APPEND_AT_A_FOLLOWER), "append", "v", at=NODES[1]) == Fail("not-leader: n1 leads")
    assert outcome_of(says(GET_AT_A_FOLLOWER), "read", at=NODES[1], barrier=False) == Fail("not-leader: n1 leads")
    assert outcome_of(says(NO_SUCH_INDEX), "read", 5, barrier=False) == Ok(None)
    assert outcome_of(says(ONE_ENTRY), "read", 0, barrier=False) == Ok("not an entry of this test: b'hello'")


@given(value=st.recursive(st.none() | st.integers() | st.text(), lambda some: st.lists(some, max_size=3), max_leaves=4))
def test_what_is_appended_is_read(value: Value) -> None:
    """Any JSON value comes back unchanged, at its offset and under its key only."""
    log = Log(entry_body("other", 7), entry_body("k", value))
    assert outcome_of(log, "read", key="k") == Ok([value], order=2)
    assert outcome_of(log, "read", 1, key="k") == Ok(value, order=3)
    assert outcome_of(log, "read", [0, 9], key="k") == Ok([[1, value]], order=4)
    assert outcome_of(log, "read", key="other") == Ok([7], order=5)


def test_an_append_tells_its_offset_and_an_add_its_element() -> None:
    """Both are one entry of the log, with key and value."""
    log = Log(entry_body(ONLY_KEY, 1))
    assert outcome_of(log, "append", [1, "x"], key="k") == Ok(1, order=1)
    assert outcome_of(log, "add", 5) == Ok(5, order=2)
    assert [json.loads(body) for body in log.bodies[1:]] == [
        {"key": "k", "value": [1, "x"]},
        {"key": None, "value": 5},
    ]


@pytest.mark.parametrize("window", [1, 3, 500])
def test_a_read_gets_the_whole_log(window: int) -> None:
    """With any number of requests in flight, each entry is read once, in order; other entries are skipped."""
    log = Log(*(entry_body(ONLY_KEY, number) for number in range(100)), magics={3: NOOP, 50: CONFIG_CHANGE})
    expected = [number for number in range(100) if number not in {3, 50}]
    assert outcome_of(log, "read", window=window) == Ok(expected, order=100)
    assert outcome_of(log, "read", window=window, barrier=False) == Ok(expected)
    assert log.bodies[100:] == [BARRIER]


def test_answers_in_any_order() -> None:
    """Answers can come in any order; each belongs to the request with its number."""
    log = Log(*(entry_body(ONLY_KEY, number) for number in range(9)))
    frames: list[bytes] = []

    def turned_round(header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
        if header["code"] == APPEND:
            return log(header, body)
        frames.append(log(header, body))
        if len(frames) < 3:
            return b""
        back = b"".join(reversed(frames))
        frames.clear()
        return back

    assert outcome_of(turned_round, "read", window=3) == Ok(list(range(9)), order=9)


def test_a_barrier_hides_what_is_behind_it() -> None:
    """A read skips entries after its marker, which may never be committed; without a marker it returns them."""

    class Busy(Log):
        def __call__(self, header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
            said = super().__call__(header, body)
            if header["code"] == APPEND:
                self.bodies.append(entry_body(ONLY_KEY, "uncommitted"))
            return said

    assert outcome_of(Busy(entry_body(ONLY_KEY, "committed")), "read") == Ok(["committed"], order=1)
    assert outcome_of(Busy(entry_body(ONLY_KEY, "committed")), "read", 2) == Ok(None, order=1)
    assert outcome_of(Busy(entry_body(ONLY_KEY, "committed")), "read", [0, 2]) == Ok([[0, "committed"]], order=1)
    log = Log(entry_body(ONLY_KEY, "committed"), entry_body(ONLY_KEY, "uncommitted"))
    assert outcome_of(log, "read", barrier=False) == Ok(["committed", "uncommitted"])


@pytest.mark.parametrize("code", [*REFUSED_BEFORE_THE_APPEND, *PERHAPS_APPENDED])
def test_appends_follow_the_table(code: int) -> None:
    """Each code gives the outcome in the table, for add and append."""
    refused = says({"code": code, "leaderId": "n1"})
    expected = refused_write(code)
    assert outcome_of(refused, "append", 1) == outcome_of(refused, "add", 1) == expected
    assert isinstance(expected, Fail if code in REFUSED_BEFORE_THE_APPEND else Info)


@pytest.mark.parametrize("code", [*REFUSED_BEFORE_THE_APPEND, *sorted(PERHAPS_APPENDED.keys() - {410})])
@pytest.mark.parametrize("at", [0, 7, 19])
def test_a_read_that_is_refused_in_its_middle_fails(code: int, at: int) -> None:
    """An error never shortens a list; a refused marker makes the read fail."""
    log = Log(*(entry_body(ONLY_KEY, number) for number in range(20)))
    log.refused[at] = code
    assert outcome_of(log, "read") == refused_read(code)
    assert outcome_of(says({"code": code}), "read") == refused_read(code)


def test_an_entry_that_is_not_there_below_the_marker_is_missing() -> None:
    """If the log is shorter than the marker, the list ends at the log's end, so that the checker finds the loss."""
    log = Log(*(entry_body(ONLY_KEY, number) for number in range(20)))
    log.refused[5] = 410
    assert outcome_of(log, "read") == Ok([0, 1, 2, 3, 4], order=20)


@pytest.mark.parametrize(
    "body",
    [
        b"hello",
        b"",
        b"[1]",
        b'{"key":null}',
        b'{"key":null,"value":1,"more":2}',
        b"\xff",
        b'{"key":null,"value":1',
        b"[" * 100_000,
    ],
)
def test_entries_that_nobody_appended_are_elements_that_nobody_added(body: bytes) -> None:
    """A read returns damaged and foreign entries, so that the checker reports them."""
    outcome = outcome_of(Log(entry_body(ONLY_KEY, 1), body), "read")
    assert isinstance(outcome, Ok)
    assert outcome.value[0] == 1
    assert outcome.value[1].startswith("not an entry of this test: b'")
    assert len(outcome.value[1]) < 500


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        [{"index": 1, "magic": 1, "body": ""}],
        [{"index": 0, "body": ""}],
        [{"index": 0, "magic": 1, "body": "!"}],
        [{"index": 0, "magic": 1, "body": 5}],
        [{"index": 0, "magic": 1, "body": ""}] * 2,
    ],
)
def test_answers_that_are_not_the_entry_fail_the_read(value: Value) -> None:
    """Another entry, none or several, or a body that is not base64 is a bad answer."""
    outcome = outcome_of(says({"code": 200, "entries": value}), "read", 0, barrier=False)
    assert isinstance(outcome, Fail)
    assert outcome.error.startswith("no-answer: ")


@pytest.mark.parametrize("index", [None, -1, "5", True, 1.5])
def test_an_append_without_an_index_is_in_doubt(index: Value) -> None:
    """An append with success but no offset is info; a read with such a marker fails."""
    script = says({"code": 200, "index": index})
    assert isinstance(outcome_of(script, "append", 1), Info)
    assert isinstance(outcome_of(script, "read"), Fail)


@pytest.mark.parametrize(
    ("f", "value"),
    [
        ("write", 1),
        ("read", -1),
        ("read", "5"),
        ("read", True),
        ("read", [1]),
        ("read", [1, -2]),
        ("read", [1, 2, 3]),
        ("append", float("nan")),
        ("append", {1}),
    ],
)
def test_what_the_log_does_not_have_is_never_sent(f: str, value: Value) -> None:
    """An unsupported operation or value fails in the client."""
    log = Log()
    outcome = outcome_of(log, f, value)
    assert isinstance(outcome, Fail)
    assert outcome.error.startswith("unsupported: ")
    assert not log.bodies


def test_silence_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client leaves a silent node after one deadline: an append is info, a read fails."""
    monkeypatch.setattr("clusters.systems.dledger_log.client.ANSWER_TIMEOUT_S", 0.05)
    log = Log(*(entry_body(ONLY_KEY, number) for number in range(20)))

    def falls_silent(header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
        return b"" if header["code"] == GET and body["beginIndex"] > 9 else log(header, body)

    outcome = outcome_of(falls_silent, "read")
    assert isinstance(outcome, Fail)
    assert "did not answer in 0.05 s" in outcome.error
    assert outcome_of(lambda _header, _body: b"", "append", 1) == Info("no-answer: n1 did not answer in 0.05 s")


def test_a_connection_that_ends() -> None:
    """If the connection breaks after the request was sent, an append is info, and a read fails."""
    assert isinstance(outcome_of(lambda _header, _body: None, "append", 1), Info)
    assert isinstance(outcome_of(lambda _header, _body: None, "read"), Fail)


def test_the_remoting_layers_own_answers() -> None:
    """Only "busy" means that no processor was called; real servers answer PULL and an empty append with "system-error"."""
    assert outcome_of(says(None, status=1, remark="java.lang.NullPointerException"), "append", 1) == Info(
        "system-error: java.lang.NullPointerException"
    )
    assert outcome_of(says(None, status=2), "append", 1) == Fail("system-busy")
    assert outcome_of(says(None, status=1), "read", barrier=False) == Fail("system-error")
