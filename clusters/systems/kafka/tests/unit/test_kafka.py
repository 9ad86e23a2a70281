"""The rules of Kafka's clients that need no broker: outcomes, records on the wire, options."""

from __future__ import annotations

import asyncio
import re
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from clusters.kit.answers import NoAnswer, NotSent
from clusters.systems.kafka import brokers, client, system, wire
from clusters.systems.kafka.library import Library
from clusters.systems.kafka.members import Members
from clusters.systems.kafka.options import Acks, KafkaOptions
from clusters.systems.kafka.outcomes import NEVER_APPENDED, name_of
from clusters.systems.kafka.queue import KafkaQueues
from harness.errors import InputError
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Outcome

NO_SERVER = "127.0.0.1"


def record(offset: int, value: bytes) -> bytes:
    """A record of a batch; its numbers are below 64, so each is one byte."""
    body = bytes([0, 0, offset * 2, 1, len(value) * 2]) + value + b"\0"
    return bytes([len(body) * 2]) + body


def batch(base: int, values: Sequence[bytes], *, attributes: int = 0, magic: int = 2) -> bytes:
    """A batch of records from an offset on."""
    records = b"".join(record(offset, value) for offset, value in enumerate(values))
    count = len(values)
    header = wire.BATCH_HEADER.pack(
        base, 49 + len(records), 0, magic, 0, attributes, count - 1, 0, 0, -1, -1, -1, count
    )
    return header + records


class OneAnswer(Library):
    """A library that says one thing of each record."""

    def __init__(self, answer: object) -> None:
        """Takes what it says."""
        super().__init__()
        self.answer = answer

    async def call(self, caller: str, handle: object, method: str, *arguments: object) -> object:
        """Says it."""
        return self.answer

    def end(self, caller: str, *names: str) -> None:
        """Ends nothing."""


def appended(answer: object, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Returns the outcome of an append of whose record the library says this."""
    node = Node(name="n1", address=NO_SERVER)
    monkeypatch.setattr(client, "PAUSE_S", 0.0)
    logs = client.KafkaLogs(
        node=node, nodes=[], library=OneAnswer(answer), options=KafkaOptions(), topic="labrys", pinned=False
    )
    return asyncio.run(logs.invoke(Invocation("append", 1)))


def test_only_a_record_that_is_too_large_is_certainly_in_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library and each leader refuse it, however often it is sent."""
    assert appended(["refused", "MSG_SIZE_TOO_LARGE", "text"], monkeypatch) == Fail("too-large: text")
    assert list(NEVER_APPENDED) == ["MSG_SIZE_TOO_LARGE"]


@pytest.mark.parametrize(
    "name",
    [
        *("NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PART", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        *("REQUEST_TIMED_OUT", "_MSG_TIMED_OUT", "_TRANSPORT", "KAFKA_STORAGE_ERROR", "an error of next year"),
    ],
)  # fmt: skip
def test_every_other_error_leaves_the_append_open(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that stops leading answers appended records with errors that look certain, and the library repeats records."""
    assert appended(["refused", name, "text"], monkeypatch) == Info(f"{name_of(name)}: text")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (("ok", 7), Ok(7, order=7)),
        (["ok", 7], Ok(7, order=7)),
        (["ok", None], Ok(None)),
        (["refused", "_TRANSPORT", "broken"], Info("transport: broken")),
        (["refused", "MSG_SIZE_TOO_LARGE", "large"], Fail("too-large: large")),
        (["not-sent", "_QUEUE_FULL", "full"], Fail("not-sent: full")),
        (["not-sent", "MSG_SIZE_TOO_LARGE", "large"], Fail("too-large: large")),
        (["aborted", "fenced"], Fail("aborted: fenced")),
        (["busy", "waits"], Fail("not-sent: waits")),
        (["unknown", "no-report", "none"], Info("no-report: none")),
        (["ok", "7"], Info("no-answer: expected what became of a record, found ['ok', '7']")),
        (None, Info("no-answer: expected what became of a record, found None")),
    ],
)
def test_an_answer_means_the_same_from_this_process_and_from_a_program(
    answer: object, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program answers with lists of JSON. What is no answer leaves the append open."""
    assert appended(answer, monkeypatch) == outcome


def test_the_records_of_whole_batches_have_their_offsets() -> None:
    """A batch of Kafka itself has no records for a reader, and a batch that is cut off is left out."""
    data = batch(5, [b"a", b"b"]) + batch(7, [b"marker"], attributes=wire.CONTROL) + batch(8, [b"c"])[:-1]
    assert list(wire._batches(data)) == [(7, [(5, b"a"), (6, b"b")]), (8, [])]


@pytest.mark.parametrize(
    "data",
    [
        batch(0, [b"a"], magic=1),
        batch(0, [b"a"], attributes=1),
        batch(0, [b"a"])[:57] + struct.pack(">i", 1000) + batch(0, [b"a"])[61:],
        struct.pack(">qi", 0, 0) + batch(0, [b"a"])[12:],
    ],
    ids=["old format", "compressed", "more records than bytes", "no length"],
)
def test_a_batch_that_is_not_readable_is_no_answer(data: bytes) -> None:
    """It never becomes a shorter list of records."""
    with pytest.raises(NoAnswer):
        list(wire._batches(data))


@pytest.mark.parametrize(("number", "data"), [(1, b"\x02"), (-1, b"\x01"), (64, b"\x80\x01"), (-150, b"\xab\x02")])
def test_numbers_of_records_have_their_sign_in_the_lowest_bit(number: int, data: bytes) -> None:
    """Seven bits are in each byte."""
    assert wire._varint(data, 0) == (number, len(data))


def test_a_broker_that_accepts_no_connection_got_nothing() -> None:
    """No port of that number is open here."""

    async def ask() -> None:
        await wire.Broker(NO_SERVER, 1).end("topic")

    with pytest.raises(NotSent):
        asyncio.run(ask())


CONTROLLERS_ANSWER = (
    struct.pack(">bihib", 0, 0, 0, 0, 2)  # no tags; throttle, no error, session; one topic
    + wire.METADATA_LOG
    + struct.pack(">bihqqqbib", 2, 0, 74, -1, -1, -1, 0, -1, 1)  # one partition, refused for its epoch; no records
    + struct.pack(">bbbiib", 1, wire.CURRENT_LEADER, 9, 1002, 7, 0)
    + bytes(2)
)


def asked(answer: bytes) -> wire.Quorum:
    """Asks a controller that gives this answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        request = await reader.readexactly(size)
        writer.write(struct.pack(">i", 4 + len(answer)) + request[4:8] + answer)
        await writer.drain()
        writer.close()

    async def ask() -> wire.Quorum:
        server = await asyncio.start_server(serve, NO_SERVER, 0)
        controller = wire.Controller(NO_SERVER, server.sockets[0].getsockname()[1])
        try:
            return await controller.quorum()
        finally:
            await controller.close()
            server.close()

    return asyncio.run(ask())


def test_a_controller_tells_leader_and_epoch_in_its_refusal() -> None:
    """Both are in one field, so they are of one moment."""
    assert asked(CONTROLLERS_ANSWER) == wire.Quorum(leader=1002, epoch=7)


@pytest.mark.parametrize(
    "answer",
    [CONTROLLERS_ANSWER[:size] for size in range(0, len(CONTROLLERS_ANSWER) - 1, 3)] + [b"\0" * 64, b"\xff" * 64],
)
def test_an_answer_of_a_controller_that_is_not_readable_is_no_answer(answer: bytes) -> None:
    """It is cut off, or has no leader, or has numbers without an end."""
    with pytest.raises(NoAnswer):
        asked(answer)


def test_the_processes_of_a_node_share_nothing() -> None:
    """Controllers are on the first three nodes; ids, ports and folders differ from those of the brokers."""
    nodes = [f"n{number}" for number in range(1, 6)]
    roles = system.KafkaSystem.roles(nodes, KafkaOptions(), "log")
    assert roles == {"controller": ("n1", "n2", "n3"), "broker": tuple(nodes)}


def test_only_a_queue_has_transactions() -> None:
    """A log reads records that are not committed too."""
    with pytest.raises(InputError, match="workload queue"):
        system.KafkaSystem.roles(["n1"], KafkaOptions(transactional=True), "log")


def test_a_node_without_partitions_gives_no_value() -> None:
    """A dequeue and a drain fail within their limits, also while the member of the node looks for a broker."""
    node = Node(name="n1", address=NO_SERVER)
    options = KafkaOptions(partitions=1)
    members = Members([node], ["labrys-q0"], Library(), options)

    async def ask() -> list[Outcome]:
        client = KafkaQueues(node=node, nodes=[node], members=members, options=options, topics={"q0": "labrys-q0"})
        try:
            return [await client.invoke(Invocation(f, None, "q0")) for f in ("dequeue", "drain", "peek")]
        finally:
            await client.close()

    errors = [outcome.error.partition(":")[0] for outcome in asyncio.run(ask()) if isinstance(outcome, Fail)]
    assert errors == ["not-assigned", "not-drained", "unsupported"]


def test_an_idempotent_producer_waits_for_all_replicas() -> None:
    """Kafka refuses the combination, so Labrys says so before a run."""
    with pytest.raises(InputError, match="acks=all"):
        KafkaOptions(idempotent=True, acks=Acks.LEADER)


def test_the_version_of_the_jars_is_the_default() -> None:
    """The build overrides that of the file, and both are the same."""
    match = re.search(r"<kafka\.version>(.*)</kafka", (system.MODULE / "pom.xml").read_text(encoding="utf-8"))
    assert match is not None
    assert match[1] == KafkaOptions().kafka_version


class BusyBroker:
    """A broker that tells who leads a partition, and gives no answer about its replica."""

    def __init__(self, address: str) -> None:
        """Takes any address."""

    async def partition(self, topic: str) -> wire.Partition:
        """Names the first broker as the leader."""
        return wire.Partition(leader=1, epoch=4, in_sync=[1, 2])

    async def end(self, topic: str, *, replica: int) -> int:
        """Gives no answer in time."""
        return await asyncio.Event().wait()

    async def close(self) -> None:
        """Closes nothing."""


def test_a_busy_broker_that_leads_is_known_as_the_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault at the leader needs no end of a log. So a status without it counts, with the ends unknown."""
    monkeypatch.setattr(brokers, "Broker", BusyBroker)
    nodes = [Node(name=f"n{number}", address=NO_SERVER) for number in (1, 2)]
    cluster = SimpleNamespace(nodes=nodes)
    kafka = system.KafkaSystem(cluster, KafkaOptions(), "log")
    first, second = (asyncio.run(kafka.front().statuses(node, 0.05)) for node in nodes)
    assert [(status.role, status.term, status.leader, status.applied_index) for status in (*first, *second)] == [
        ("leader", 4, "n1", None),
        ("follower", 4, "n1", None),
    ]


@pytest.mark.parametrize(
    ("line", "leads"),
    [
        (
            "Leader labrys-0 with topic id Some(s6zffr3b) starts at leader epoch 1 from offset 107 with partition epoch 1",
            True,
        ),
        (
            "Follower labrys-0 starts at leader epoch 1 from offset 105 with partition epoch 1. Current leader is 2.",
            False,
        ),
    ],
)
def test_the_trigger_leads_is_for_a_new_leader_alone(line: str, leads: bool) -> None:
    """Leaders and followers of a partition have similar lines, here from a broker of Kafka 4.1.2."""
    logged = f"2026-11-30T20:58:57.768+0000 [kafka-2-metadata] INFO state.change.logger - [Broker id=2] {line}"
    assert bool(re.search(system.LINES["leads"].pattern, logged)) == leads
