"""PostgreSQL's client: the messages of its protocol, and what is known of a transaction that did not end well."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit.answers import NoAnswer, NotSent, Refused
from clusters.systems.postgres import connection as postgres
from clusters.systems.postgres.client import CLIENTS
from clusters.systems.postgres.connection import literal
from clusters.systems.postgres.options import Level
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok

if TYPE_CHECKING:
    from harness.op import Outcome

PRIMARY = Node(name="n1", address="127.0.0.1")
STANDBY = Node(name="n2", address="127.0.0.2")


def message(kind: str, content: bytes) -> bytes:
    """Returns a message of a server."""
    return kind.encode() + struct.pack("!i", len(content) + 4) + content


def row(*values: str | None) -> bytes:
    """Returns the message of a row."""
    columns = [b"\xff\xff\xff\xff" if v is None else struct.pack("!i", len(v)) + v.encode() for v in values]
    return message("D", struct.pack("!h", len(values)) + b"".join(columns))


READY = message("Z", b"I")
ERROR = message("E", b"SERROR\0C40001\0Mcould not serialize\0\0")


def answer(sent: bytes) -> Any:
    """Returns what the client understands of the bytes of a server, which then closes the connection."""

    async def read() -> Any:
        reader = asyncio.StreamReader()
        reader.feed_data(sent)
        reader.feed_eof()
        return await postgres._answer(reader)

    return asyncio.run(read())


def test_rows_tags_and_errors() -> None:
    """A value may be absent; an error does not end the connection, and unknown messages are passed over."""
    tag, rows = answer(message("T", b"??") + row("1,2", None) + row("") + message("C", b"SELECT 2\0") + READY)
    assert (tag, rows) == ("SELECT 2", [["1,2", None], [""]])
    with pytest.raises(Refused, match=r"^40001 could not serialize$") as caught:
        answer(message("N", b"") + ERROR + READY)
    assert caught.value.code == "40001"


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"", "the server ended the session"),
        (ERROR, "40001 could not serialize"),
        (b"D\0\0\0\3", "expected a message of at most"),
        (b"D\x7f\xff\xff\xff", "expected a message of at most"),
        (b"D\0\0\0\x09abc", "3 bytes read on a total of 5"),
        (message("D", b"\0\1\0\0\0\x09ab"), "expected a value of 9 bytes"),
        (message("D", b"\0\5"), "unpack_from requires"),
        (message("R", b"\0\0\0\5salt"), "asks for a password"),
    ],
)
def test_anything_else_is_no_answer(sent: bytes, problem: str) -> None:
    """Each is an error that `query` turns into `NoAnswer`."""
    with pytest.raises((OSError, EOFError, ValueError, struct.error), match=problem):
        answer(sent)


def test_a_literal_cannot_end_early() -> None:
    """Quotes are doubled."""
    assert literal("a'b\\'") == "'a''b\\'''"


class Session:
    """Answers statements by their beginning."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.closed = answers, 0
        self.asked: list[str] = []

    async def query(self, sql: str) -> tuple[str, list[list[str | None]]]:
        """Answers a statement."""
        self.asked.append(sql)
        word = sql.split(maxsplit=1)[0]
        reply = self.answers.get(word, (word, []))
        if isinstance(reply, Exception):
            raise reply
        tag, rows = reply
        return tag, rows

    async def close(self) -> None:
        """Counts."""
        self.closed += 1


def outcome(session: Session, *mops: list[Any], workload: str = "list-append", standby: bool = False) -> Outcome:
    """Carries out a transaction at level serializable."""
    client = CLIENTS[workload](node=PRIMARY, standby=STANDBY if standby else None, level=Level.SERIALIZABLE)
    client._sessions = {"n1": session, "n2": session}  # type: ignore[dict-item]
    return asyncio.run(client.invoke(Invocation("txn", list(mops), None)))


def test_a_transaction_is_a_statement_for_each_micro_operation() -> None:
    """Reads have the list or the value of the row; a transaction that only reads may run on a standby, at a lower level."""
    session = Session(SELECT=("SELECT 1", [["1,2"]]))
    assert outcome(session, ["append", "x", 3], ["r", "x", None]) == Ok([["append", "x", 3], ["r", "x", [1, 2]]])
    begin, insert, select, commit = session.asked
    assert begin == "BEGIN ISOLATION LEVEL SERIALIZABLE"
    assert "('only/x', '3') ON CONFLICT (key) DO UPDATE SET value = labrys.value || ',' || excluded.value" in insert
    assert select.endswith("WHERE key = 'only/x'")
    assert commit == "COMMIT"
    session = Session(SELECT=("SELECT 1", [["7"]]))
    assert outcome(session, ["r", "x", None], workload="rw-register", standby=True) == Ok([["r", "x", 7]])
    assert session.asked[0] == "BEGIN ISOLATION LEVEL REPEATABLE READ"
    assert outcome(Session(), ["r", "x", None]) == Ok([["r", "x", None]])


WRITE = ["append", "x", 1]


@pytest.mark.parametrize(
    ("answers", "mop", "expected", "code"),
    [
        ({"INSERT": Refused("40001", "")}, WRITE, Fail, "conflict"),
        ({"INSERT": Refused("53100", "53100 disk full")}, WRITE, Fail, "refused: 53100"),
        ({"INSERT": NoAnswer("gone")}, WRITE, Fail, "no-answer"),
        ({"BEGIN": NotSent("gone")}, WRITE, Fail, "not-connected"),
        ({"COMMIT": Refused("40P01", "")}, WRITE, Fail, "deadlock"),
        ({"COMMIT": ("ROLLBACK", [])}, WRITE, Fail, "rolled-back"),
        ({"COMMIT": Refused("53100", "53100 disk full")}, WRITE, Info, "refused: 53100"),
        ({"COMMIT": NoAnswer("gone")}, WRITE, Info, "no-answer"),
        ({"COMMIT": NoAnswer("gone")}, ["r", "x", None], Fail, "no-answer"),
    ],
)
def test_only_commit_has_an_effect(
    answers: dict[str, Any], mop: list[Any], expected: type[Fail | Info], code: str
) -> None:
    """Before COMMIT was sent, nothing happened; after that, only some errors say so. The session is closed."""
    session = Session(**answers)
    result = outcome(session, mop)
    assert isinstance(result, expected)
    assert result.error.startswith(code)
    assert session.closed == 1
