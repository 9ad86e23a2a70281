"""Outcomes of a client of the simulated Raft: answers, missing answers, and repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.errors import Broken, Refused
from clusters.systems.sim_raft.client import SimRaftClient
from clusters.systems.sim_raft.messages import Answer, Command, Query
from clusters.systems.sim_raft.options import SimRaftOptions
from harness.clock import run_virtual
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok

if TYPE_CHECKING:
    from harness.op import Outcome

SILENCE = object()


class Scripted:
    """A connection with given answers."""

    name = "c"

    def __init__(self, *answers: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answers = list(answers)

    async def ask(self, node: str, body: object, timeout_s: float | None) -> object:
        """Answers, raises, or does not answer."""
        self.asked.append((node, body))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is SILENCE:
            raise TimeoutError  # the world raises this after `timeout_s`
        return answer


def client(connection: Scripted, *, follows: bool = True, closes: bool = False, patience_ms: int = 0) -> SimRaftClient:
    """Returns a client at n1 of three nodes."""
    return SimRaftClient(
        connection=connection,
        node=Node(name="n1", address="10.0.0.1"),
        nodes=["n1", "n2", "n3"],
        options=SimRaftOptions(patience_ms=patience_ms),
        follows=follows,
        closes=closes,
    )


def outcome(connection: Scripted, f: str = "write", value: Any = 5, *, follows: bool = True) -> Outcome:
    """Carries out one operation."""
    return run_virtual(client(connection, follows=follows).invoke(Invocation(f, value, "k")))


LEADER = Answer("not-leader", leader="n3")
# The answers to the attempts of a write, the outcome of the write, and the outcome of a read.
CASES: list[tuple[list[Any], Outcome, Outcome]] = [
    ([Answer("ok", 5, 7)], Ok(5, order=7), Ok(5, order=7)),
    ([LEADER], Fail("not-leader: n3 leads"), Fail("not-leader: n3 leads")),
    ([Answer("no-leader")], Fail("no-leader"), Fail("no-leader")),
    ([Refused("n1")], Fail("not-connected"), Fail("not-connected")),
    ([SILENCE, Answer("ok", 5, 7)], Ok(5, order=7), Ok(5, order=7)),
    ([SILENCE, SILENCE, SILENCE], Info("no-answer"), Fail("no-answer")),
    ([Broken("n1"), LEADER, LEADER], Info("no-answer"), Fail("no-answer")),
    ([SILENCE, Refused("n2"), Answer("no-leader")], Info("no-answer"), Fail("no-answer")),
    ([Answer("leadership-lost"), LEADER, Answer("ok", 5, 9)], Ok(5, order=9), Ok(5, order=9)),
    ([Answer("leadership-lost"), LEADER, LEADER], Info("leadership-lost"), Fail("leadership-lost")),
    ([SILENCE, Answer("cas-mismatch", 3), SILENCE], Fail("cas-mismatch: holds 3"), Fail("no-answer")),
    (["no answer of ours", SILENCE, SILENCE], Info("no-answer"), Fail("no-answer")),
    ([Answer("of no table"), SILENCE, SILENCE], Info("no-answer"), Fail("no-answer")),
]


@pytest.mark.parametrize(("answers", "written", "read"), CASES)
def test_what_becomes_of_an_operation(answers: list[Any], written: Outcome, read: Outcome) -> None:
    """A refusal is a fail only if no earlier attempt can have reached a log."""
    assert outcome(Scripted(*answers)) == written
    assert outcome(Scripted(*answers), "read", None) == read


def test_repetitions_are_one_request() -> None:
    """All repetitions have one number, and the next operation has another."""
    connection = Scripted(SILENCE, SILENCE, Answer("ok", 5, 7), Answer("ok", 6, 8))
    one = client(connection)

    async def both() -> None:
        await one.invoke(Invocation("write", 5, "k"))
        await one.invoke(Invocation("write", 6, "k"))

    run_virtual(both())
    assert [body.sequence for _, body in connection.asked] == [1, 1, 1, 2]
    assert {body.session for _, body in connection.asked} == {"c"}


def test_a_patient_client_repeats_refused_requests() -> None:
    """A refusal is no attempt while the patience lasts. An earlier attempt without an answer stays indeterminate."""
    refusals = [LEADER] * 5
    write = Invocation("write", 5, "k")
    assert run_virtual(client(Scripted(*refusals, Answer("ok", 5, 7)), patience_ms=500).invoke(write)) == Ok(5, order=7)
    assert run_virtual(client(Scripted(*refusals), patience_ms=70).invoke(write)) == Fail("not-leader: n3 leads")
    lost = Scripted(SILENCE, *[LEADER] * 6)
    assert run_virtual(client(lost, patience_ms=70).invoke(write)) == Info("no-answer")


def test_who_follows_goes_where_the_leader_is() -> None:
    """Without a named leader it tries the next node; a pinned client stays."""
    answers = (SILENCE, LEADER, Answer("ok", 5, 7))
    following, staying = Scripted(*answers), Scripted(*answers)
    outcome(following)
    outcome(staying, follows=False)
    assert [node for node, _ in following.asked] == ["n1", "n2", "n3"]
    assert [node for node, _ in staying.asked] == ["n1", "n1", "n1"]


def test_what_is_sent() -> None:
    """An object without a key has a fixed name; unsupported requests are not sent."""
    connection = Scripted(Answer("ok"), Answer("ok"))
    one = client(connection)

    async def go() -> list[Outcome]:
        await one.invoke(Invocation("read", None, None))
        await one.invoke(Invocation("cas", [None, 3], "k"))
        unfit = [("write", "text"), ("write", 2**63), ("add", None), ("cas", 3)]
        return [await one.invoke(Invocation(f, value, "k")) for f, value in unfit]

    assert all(isinstance(result, Fail) for result in run_virtual(go()))
    assert [body for _, body in connection.asked] == [
        Query("read", "only", None),
        Command("c", 1, "cas", "k", [None, 3]),
    ]


def test_a_lock_client_says_good_bye_to_each_node() -> None:
    """The leader frees its locks; the others refuse. Clients of other workloads send nothing."""
    connection, other = Scripted(LEADER, Broken("n2"), Answer("ok")), Scripted()
    run_virtual(client(connection, closes=True).close())
    run_virtual(client(other).close())
    assert [(node, body.f) for node, body in connection.asked] == [("n1", "close"), ("n2", "close"), ("n3", "close")]
    assert other.asked == []
