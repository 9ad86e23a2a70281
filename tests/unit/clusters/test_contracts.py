"""What an answer, a refusal and a silence become in the history, for each workload."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from clusters.kit import contracts
from clusters.kit.answers import InDoubt, NoAnswer, NotDone, NotSent, Refused, RefusedByCode
from clusters.kit.contracts import Done, Entries, Seen
from harness.clock import run_virtual
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Outcome, Value

NODE = Node(name="n1", address="127.0.0.1")


async def said(client: Scripted, *_: object) -> Any:
    """Says what the script says."""
    if isinstance(client.says, Exception):
        raise client.says
    if client.says == "silence":
        await asyncio.sleep(1e6)
    return client.says


SAID: Any = said


class Scripted:
    """A client whose system says one thing, or raises it."""

    serves = "as the script says"
    never_happened: ClassVar[Mapping[Any, str]] = {"READONLY": "read-only", -8: "bad-arguments"}
    read_timeout_s: float | None = 2.0

    def __init__(self, says: Any) -> None:
        self.node = NODE
        self.says = says

    async def close(self) -> None:
        """Has no connection."""


class Registers(Scripted, contracts.Registers):
    """A register."""

    read = write = cas = SAID


class Locks(Scripted, contracts.Locks):
    """A lock."""

    fencing = True
    acquire = release = SAID


class Logs(Scripted, contracts.Logs):
    """A log."""

    append = read = SAID


class Ledgers(Scripted, contracts.Ledgers):
    """A ledger."""

    append = read = last_confirmed = inspect = recover = end = SAID


class Queues(Scripted, contracts.Queues):
    """A queue."""

    enqueue = dequeue = drain = SAID


class Counters(Scripted, contracts.Counters):
    """A counter."""

    add = read = SAID


class Sets(Scripted, contracts.Sets):
    """A set."""

    add = read = SAID


class Transactions(Scripted, contracts.Transactions):
    """Transactions."""

    carry_out = SAID


def outcome(client: Any, f: str, value: Value = None, *, limit_s: float = 10.0) -> Outcome:
    """Carries out an operation in virtual time; `Info("timeout")` after the time of the caller."""

    async def carried_out() -> Outcome:
        try:
            async with asyncio.timeout(limit_s):
                result: Outcome = await client.invoke(Invocation(f, value, "k"))
        except TimeoutError:
            return Info("timeout")
        return result

    return run_virtual(carried_out())


@pytest.mark.parametrize(
    ("says", "of_read", "of_write"),
    [
        (NotSent("refused"), Fail("not-connected: refused"), Fail("not-connected: refused")),
        (NoAnswer("reset"), Fail("no-answer: reset"), Info("no-answer: reset")),
        (Refused("READONLY", "READONLY no"), Fail("read-only: READONLY no"), Fail("read-only: READONLY no")),
        (Refused("LOADING", "LOADING it"), Fail("refused: LOADING it"), Info("refused: LOADING it")),
        (RefusedByCode(-8), Fail("bad-arguments: error -8"), Fail("bad-arguments: error -8")),
        (RefusedByCode(-4), Fail("refused: error -4"), Info("refused: error -4")),
        (NotDone("conflict", "others"), Fail("conflict: others"), Fail("conflict: others")),
        (NotDone("no-leader", ""), Fail("no-leader"), Fail("no-leader")),
        (InDoubt("not-complete", "half"), Info("not-complete: half"), Info("not-complete: half")),
        ("silence", Fail("no-answer: n1 did not answer in 2 s"), Info("timeout")),
    ],
    ids=str,
)
def test_an_error_of_a_change_is_a_fail_only_if_it_never_happens(
    says: Any, of_read: Outcome, of_write: Outcome
) -> None:
    """A read without an answer has no effect; a change may have one."""
    assert outcome(Registers(says), "read") == of_read
    assert outcome(Registers(says), "write", 1) == of_write
    assert outcome(Registers(says), "cas", [1, 2]) == of_write
    assert [outcome(Ledgers(says), f) for f in ("confirmed", "inspect")] == [of_read] * 2
    assert [outcome(Ledgers(says), f) for f in ("recover", "close", "append")] == [of_write] * 3
    assert outcome(Transactions(says), "txn", [["r", "x", None]]) == of_read
    assert outcome(Transactions(says), "txn", [["r", "x", None], ["append", "x", 1]]) == of_write


def test_a_change_with_a_time_limit_is_in_doubt_unless_it_was_not_sent() -> None:
    """The node may have got the request in time, and have carried it out."""
    limited = Registers("silence")
    limited.change_timeout_s = 3.0
    assert outcome(limited, "write", 1) == Info("no-answer: n1 did not answer in 3 s")
    limited.was_sent = lambda: False  # type: ignore[method-assign]
    assert outcome(limited, "write", 1) == Fail("no-answer: n1 did not answer in 3 s")


def test_a_refusal_of_what_changes_nothing_is_a_fail() -> None:
    """E.g. of a statement before the COMMIT of its transaction. It keeps the name that the system has for it."""
    client = Registers(Refused("LOADING", "LOADING it"))
    client.name_of = str.lower  # type: ignore[assignment, method-assign]
    assert outcome(client, "write", 1) == Info("loading: LOADING it")
    client.was_sent = lambda: False  # type: ignore[method-assign]
    assert outcome(client, "write", 1) == Fail("loading: LOADING it")


@pytest.mark.parametrize(
    ("client", "f", "value", "expected"),
    [
        (Registers(Seen(5, 7)), "read", None, Ok(5, order=7)),
        (Registers(Done(7)), "write", 5, Ok(5, order=7)),
        (Registers(Done(7)), "cas", [4, 5], Ok([4, 5], order=7)),
        (Registers(None), "cas", [4, 5], Fail("cas-mismatch: it does not hold 4")),
        (Locks(Seen(9, 9)), "acquire", None, Ok(9, order=9)),
        (Locks(None), "acquire", None, Fail("held: another client holds it")),
        (Locks(Done()), "release", 9, Ok(9)),
        (Locks(None), "release", 9, Fail("not-held: the lock is free, or another client holds it")),
        (Logs(Seen(3, 3)), "append", "a", Ok(3, order=3)),
        (Logs(Entries([(3, "a")], 9)), "read", 3, Ok("a", order=9)),
        (Logs(Entries([])), "read", 3, Ok(None)),
        (Logs(Entries([(3, "a"), (4, "b")], 9)), "read", [3, 9], Ok([[3, "a"], [4, "b"]], order=9)),
        (Ledgers(Seen(3, 3)), "append", "a", Ok(3, order=3)),
        (Ledgers(Entries([(3, "a")])), "read", [3, 9], Ok([[3, "a"]])),
        (Ledgers(7), "confirmed", None, Ok(7)),
        (Ledgers({"last": 7}), "inspect", None, Ok({"last": 7})),
        (Ledgers(7), "recover", None, Ok(7)),
        (Ledgers(7), "close", None, Ok(7)),
        (Queues(Done()), "enqueue", 1, Ok(1)),
        (Queues(Seen(1)), "dequeue", None, Ok(1)),
        (Queues(None), "dequeue", None, Fail("empty: the queue has no value")),
        (Queues(Seen([1, 2])), "drain", None, Ok([1, 2])),
        (Counters(Done(2)), "add", 5, Ok(5, order=2)),
        (Counters(Seen(None)), "read", None, Ok(0)),
        (Sets(Done()), "add", 1, Ok(1)),
        (Sets(Seen([1], 2)), "read", None, Ok([1], order=2)),
        (Transactions(Seen([["r", "x", 1]], 4)), "txn", [["r", "x", None]], Ok([["r", "x", 1]], order=4)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Scripted) else str(value),
)
def test_an_answer_becomes_the_outcome_of_its_workload(client: Any, f: str, value: Value, expected: Outcome) -> None:
    """A mismatch, a held lock and an empty queue are answers of a working system."""
    assert outcome(client, f, value) == expected


@pytest.mark.parametrize(
    "client", [kind(None) for kind in (Registers, Locks, Logs, Ledgers, Queues, Counters, Sets, Transactions)]
)
def test_an_unknown_function_is_a_fail(client: Any) -> None:
    """The client sends nothing."""
    assert outcome(client, "fly", 1) == Fail("unsupported: fly of 1")


def test_a_lock_without_fencing_tells_no_token() -> None:
    """The order of the operation stays."""
    client = Locks(Seen(9, 9))
    client.fencing = False
    assert outcome(client, "acquire") == Ok(None, order=9)
