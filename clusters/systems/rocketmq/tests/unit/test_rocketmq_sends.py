"""Batches and transactions of RocketMQ's producers against a scripted master: requests, offsets and outcomes."""

from __future__ import annotations

import asyncio
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.kit.stored import entry_body
from clusters.systems.rocketmq import batches, brokers
from clusters.systems.rocketmq.batches import Batches
from clusters.systems.rocketmq.broker_options import RocketMQOptions, Sends
from clusters.systems.rocketmq.broker_outcomes import REFUSED
from clusters.systems.rocketmq.log_client import RocketMQLogs
from clusters.systems.rocketmq.producer import ROLLED_BACK_OF, Producer
from clusters.systems.rocketmq.system import HALF_TOPICS
from clusters.systems.rocketmq.tests.unit.test_rocketmq import REJECTED, made
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok
from tests.unit.clusters.remoting_script import frame, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.rocketmq.routes import Routes
    from harness.op import Outcome

MASTER = Node(name="n4", address="127.0.0.4")
PLACE = "0A370004" + "00002A9F" + "0000000000001000"  # address, port, and the place 4096


@dataclass
class Master:
    """A master that numbers messages.

    Attributes:
        answers: The code and the remark of an answer, by the request; success without one.
        silent: The requests after which it closes the connection.
        message: The id of a message.
        log: The bodies of the messages.
        asked: The requests with their fields.
    """

    answers: dict[int, tuple[int, str]] = field(default_factory=dict)
    silent: frozenset[int] = frozenset()
    message: str = PLACE
    log: list[bytes] = field(default_factory=list)
    asked: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)

    def answer(self, header: Mapping[str, Any], body: Any) -> bytes | None:
        """Answers a request."""
        code, fields = header["code"], header["extFields"]
        self.asked.append((code, fields))
        if code in self.silent:
            return None
        status, remark = self.answers.get(code, (0, ""))
        extension = {}
        if status == 0 and code in {310, 320}:
            extension = {"queueId": fields["e"], "queueOffset": str(len(self.log)), "msgId": self.message}
            self.log += _bodies(body.encode()) if code == 320 else [json.dumps(body).encode()]
        head = {"code": status, "opaque": header["opaque"], "flag": 1, "extFields": extension, "remark": remark}
        return frame(json.dumps(head).encode())


def _bodies(data: bytes) -> list[bytes]:
    """The bodies of a batch, as a broker reads them; see `MessageExtEncoder.encode`."""
    bodies = []
    while data:
        size, _, _, _, length = struct.unpack_from(">iiiii", data)
        bodies.append(data[20 : 20 + length])
        assert data[20 + length : size] == bytes(2)  # no properties
        data = data[size:]
    return bodies


class OneMaster:
    """A route that always has the master."""

    async def master(self, *, fresh: bool = False) -> Node:
        """Returns the master."""
        return MASTER


def sent(
    monkeypatch: pytest.MonkeyPatch, master: Master, bodies: Sequence[bytes], *, hold_s: float | None, at_once: bool
) -> list[Outcome]:
    """Sends messages by one producer each, at once or one after the other; in transactions, or in batches."""

    async def main() -> list[Outcome]:
        async with scripted(master.answer, MASTER.address) as node:
            monkeypatch.setattr(brokers, "PORT", node.port)
            shared = Batches(hold_s=0.05, certain=REFUSED) if hold_s is None else None
            producers = [
                Producer(node=MASTER, routes=cast("Routes", OneMaster()), follows=True, batches=shared, hold_s=hold_s)
                for _ in bodies
            ]
            clients = [
                RocketMQLogs(node=MASTER, producer=producer, topic="labrys", whole=False) for producer in producers
            ]
            appends = [Invocation("append", json.loads(body)["value"], "l0") for body in bodies]
            sends = [client.invoke(append) for client, append in zip(clients, appends, strict=True)]
            outcomes = await asyncio.gather(*sends) if at_once else [await send for send in sends]
            for client in clients:
                await client.close()
            return list(outcomes)

    return asyncio.run(main())


BODIES = [entry_body("l0", number) for number in range(4)]


def test_messages_of_one_moment_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own offset behind that of the first one; a later message is in the next batch."""
    master = Master(log=[b"before"])
    assert sent(monkeypatch, master, BODIES, hold_s=None, at_once=True) == [Ok(n, order=n) for n in (1, 2, 3, 4)]
    assert [(code, fields["m"]) for code, fields in master.asked] == [(320, "true")]
    assert master.log[1:] == BODIES
    assert sent(monkeypatch, master, BODIES[:2], hold_s=None, at_once=False) == [Ok(5, order=5), Ok(6, order=6)]
    assert len(master.asked) == 3


def test_a_full_batch_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither has more messages than the limit, and no message is left out."""
    monkeypatch.setattr(batches, "MOST_MESSAGES", 3)
    master = Master()
    outcomes = sent(monkeypatch, master, BODIES, hold_s=None, at_once=True)
    assert sorted(outcome.value for outcome in outcomes if isinstance(outcome, Ok)) == [0, 1, 2, 3]
    assert len(master.asked) == 2
    assert sorted(master.log) == sorted(BODIES)


@pytest.mark.parametrize(
    ("answer", "silent", "kind"),
    [((2, REJECTED), (), Fail), ((1, "in-sync replicas not enough"), (), Info), ((0, ""), (320,), Info)],
)
def test_the_outcome_of_a_batch_is_that_of_each_message(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str], silent: Sequence[int], kind: type[Fail | Info]
) -> None:
    """A refusal is certain for all of them, and everything else is open for all of them."""
    master = Master(answers={320: answer}, silent=frozenset(silent))
    outcomes = sent(monkeypatch, master, BODIES, hold_s=None, at_once=True)
    assert {type(outcome) for outcome in outcomes} == {kind}
    assert len(set(map(str, outcomes))) == 1


def body_that(*, commits: bool) -> bytes:
    """A body whose transaction is committed, or rolled back."""
    import zlib  # noqa: PLC0415 - only here

    return next(
        body
        for body in (entry_body("l0", number) for number in range(100))
        if (zlib.crc32(body) % ROLLED_BACK_OF != 0) is commits
    )


def in_transaction(monkeypatch: pytest.MonkeyPatch, master: Master, *, commits: bool) -> Outcome:
    """Sends one message in a transaction."""
    [outcome] = sent(monkeypatch, master, [body_that(commits=commits)], hold_s=0.0, at_once=False)
    return outcome


def test_a_commit_names_the_half_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its offset in the queue of half messages, its place in the commit log, and the id of the transaction."""
    master = Master(log=[b"a", b"b"])
    assert in_transaction(monkeypatch, master, commits=True) == Ok(None)
    (half, sent_fields), (end, fields) = master.asked
    assert (half, end) == (310, 37)
    assert sent_fields["f"] == "4"
    properties = dict(pair.split("\x01") for pair in sent_fields["i"].split("\x02") if pair)
    assert (properties["TRAN_MSG"], properties["PGROUP"]) == ("true", "labrys")
    assert fields == {
        "topic": "labrys",
        "producerGroup": "labrys",
        "tranStateTableOffset": "2",
        "commitLogOffset": "4096",
        "commitOrRollback": "8",
        "fromTransactionCheck": "false",
        "msgId": PLACE,
        "transactionId": properties["UNIQ_KEY"],
    }


def test_a_transaction_that_is_rolled_back_has_certainly_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the broker answers."""
    for master in (Master(), Master(answers={37: (1, "an error")}), Master(silent=frozenset({37}))):
        outcome = in_transaction(monkeypatch, master, commits=False)
        assert isinstance(outcome, Fail)
        assert outcome.error.startswith("rolled-back: ")
        assert master.asked[1][1]["commitOrRollback"] == "12"


@pytest.mark.parametrize("master", [Master(answers={310: (10, "")}), Master(silent=frozenset({310}))])
def test_a_half_message_without_a_commit_is_certainly_not_there(
    monkeypatch: pytest.MonkeyPatch, master: Master
) -> None:
    """Also if the half message may be in the log: only a commit makes it visible."""
    outcome = in_transaction(monkeypatch, master, commits=True)
    assert isinstance(outcome, Fail)
    assert outcome.error.startswith("half-message: ")
    assert [code for code, _ in master.asked] == [310]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((11, ""), Fail),  # a slave
        ((2, "[OVERLOAD]system busy, start flow control for a while"), Fail),
        ((1, "Find prepared transaction message failed"), Info),
        ((14, "Service not available now."), Info),
        ((604, ""), Info),
    ],
)
def test_refusals_of_a_commit(monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str], kind: type[Any]) -> None:
    """Only some are certain."""
    assert isinstance(in_transaction(monkeypatch, Master(answers={37: answer}), commits=True), kind)


def test_a_commit_without_an_answer_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker may have committed the message."""
    assert isinstance(in_transaction(monkeypatch, Master(silent=frozenset({37})), commits=True), Info)


@pytest.mark.parametrize("message", ["", "xyz", PLACE[:-1], PLACE + "00", "0x" + PLACE[2:]])
def test_an_id_that_is_none_commits_nothing(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    """Brokers write the ids, so they are hostile input."""
    master = Master(message=message)
    assert isinstance(in_transaction(monkeypatch, master, commits=True), Info)
    assert [code for code, _ in master.asked] == [310]


def test_the_system_gives_each_client_the_sends_of_the_option() -> None:
    """Clients that follow share batches, and pinned ones have none. Half messages are compared too."""
    system = made(sends=Sends.BATCHES)
    one, other = (system._producer(MASTER, follows=True) for _ in range(2))
    assert one._batches is other._batches is not None
    assert system._producer(MASTER, follows=False)._batches is None
    assert list(system.stored_topics()) == ["labrys"]
    system = made(sends=Sends.TRANSACTIONS, hold_ms=250)
    assert system._producer(MASTER, follows=True)._hold_s == 0.25
    assert list(system.stored_topics()) == ["labrys", *HALF_TOPICS]
    assert RocketMQOptions().sends is Sends.PLAIN
