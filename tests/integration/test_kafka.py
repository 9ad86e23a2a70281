"""Three real nodes of Kafka: appends and reads, queues, the replica of each broker, the table of outcomes, statuses."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster
from clusters.systems.kafka.client import TOPIC, KafkaClient
from clusters.systems.kafka.consumer import Members
from clusters.systems.kafka.options import KafkaOptions
from clusters.systems.kafka.queue import KafkaQueueClient
from clusters.systems.kafka.settings import BROKER, CONTROLLER
from clusters.systems.kafka.system import KafkaSystem
from clusters.systems.kafka.wire import Broker
from harness import readiness
from harness.cluster import on_all
from harness.op import Fail, Info, Invocation, Ok
from harness.service import first_status
from workloads.queue import QueueOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.client import Client
    from harness.node import Node
    from harness.op import Outcome, Value
    from harness.service import NodeStatus

pytestmark = pytest.mark.integration

READY_S = 90.0
QUEUE = "labrys-q0"
STRICT = "strict"  # a topic that needs all three replicas
TOO_LARGE = "x" * 1_100_000


class Both(KafkaSystem):
    """Kafka with the topics of a log and of a queue."""

    def topics(self) -> Sequence[str]:
        """The log comes first, so the statuses are about its partition."""
        return TOPIC, QUEUE


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Three nodes; the tests run where their addresses can be reached."""
    with LocalCluster.up(f"kafka-{os.getpid()}", nodes=3) as made, made.entered():
        yield made


@pytest.fixture(scope="module")
def system(cluster: LocalCluster) -> Iterator[KafkaSystem]:
    """Kafka, serving on all nodes, with its topic."""
    options = KafkaOptions(session_ms=1500)
    made = Both.made(cluster, options, "log", QueueOptions(queues=1))
    made.artifact = KafkaSystem.build(options, print)
    on_all(cluster.nodes, made.install)
    asyncio.run(readiness.bring_up(made, READY_S, first=True))
    yield made
    on_all(cluster.nodes, made.kill)


async def ask(client: Client, *operations: tuple[str, Value]) -> list[Outcome]:
    """Carries out operations `(f, value)`, one after the other."""
    try:
        return [await client.invoke(Invocation(f, value)) for f, value in operations]
    finally:
        await client.close()


async def until_ok(client: Client, f: str, value: Value, key: str | None = None, *, stays: bool = False) -> Outcome:
    """Carries out an operation until it succeeds; at most for ten seconds. Then it closes the client, unless it stays."""
    deadline_s = time.monotonic() + 10.0
    while True:
        outcome = await client.invoke(Invocation(f, value, key))
        if isinstance(outcome, Ok) or time.monotonic() > deadline_s:
            break
    if not stays:
        await client.close()
    return outcome


def test_appends_have_the_next_offset_and_every_replica_has_them(cluster: LocalCluster, system: KafkaSystem) -> None:
    """The offset is the order of an append; a range, an offset and an offset beyond the end read what is there."""
    first, second, third = cluster.nodes

    async def all_of_it() -> tuple[list[Outcome], list[Outcome]]:
        one = await ask(system.client(0, first), ("append", "a"), ("append", "b"))
        other = await ask(system.client(1, second), ("append", "c"), ("read", [0, 9]), ("read", 1), ("read", 7))
        replicas = [
            await until_ok(system.client(2, node, pinned=True), "read", [0, 9]) for node in (first, second, third)
        ]
        return [*one, *other], replicas

    found, replicas = asyncio.run(all_of_it())
    whole = Ok([[0, "a"], [1, "b"], [2, "c"]])
    assert found == [Ok(0, order=0), Ok(1, order=1), Ok(2, order=2), whole, Ok("b"), Ok(None)]
    assert replicas == [whole] * 3


def test_an_idempotent_producer_appends_once(cluster: LocalCluster, system: KafkaSystem) -> None:
    """It has the same answers."""
    client = KafkaClient(
        node=cluster.nodes[0], nodes=cluster.nodes, options=KafkaOptions(idempotent=True), topic=TOPIC, pinned=False
    )
    appended, read = asyncio.run(ask(client, ("append", "d"), ("read", 3)))
    assert appended == Ok(3, order=3)
    assert read == Ok("d")


def test_a_record_that_is_too_large_is_not_sent(cluster: LocalCluster, system: KafkaSystem) -> None:
    """The row `MSG_SIZE_TOO_LARGE` of the table."""
    refused, beyond = asyncio.run(
        ask(system.client(0, cluster.nodes[0]), ("append", TOO_LARGE), ("read", [4, 9])),
    )
    assert isinstance(refused, Fail)
    assert refused.error.startswith("too-large: ")
    assert beyond == Ok([])


def test_all_brokers_name_one_leader_and_say_how_far_their_replicas_are(
    cluster: LocalCluster, system: KafkaSystem
) -> None:
    """The epoch is the term, the end of the log is what is applied, and the high watermark what is committed."""

    async def views() -> set[tuple[str | None, int | None, int | None, int | None]]:
        await asyncio.sleep(1.0)  # followers learn the high watermark with their next fetch
        found = [await first_status(system.front(), node, 2.0) for node in cluster.nodes]
        return {(each.leader, each.term, each.applied_index, each.committed_index) for each in found if each}

    ((leader, term, applied, committed),) = asyncio.run(views())
    assert leader in {node.name for node in cluster.nodes}
    assert (term, applied, committed) == (0, 4, 4)


def test_all_controllers_name_one_leader_in_one_epoch(cluster: LocalCluster, system: KafkaSystem) -> None:
    """A controller that dies is no leader any more, and the next one leads in a later epoch."""
    controllers = system.service(CONTROLLER)

    async def views() -> list[NodeStatus | None]:
        return [await first_status(controllers, node, 2.0) for node in cluster.nodes]

    before = asyncio.run(views())
    assert all(before)
    ((leader, term),) = {(each.leader, each.term) for each in before if each}
    assert leader is not None
    assert term is not None
    assert [each.node for each in before if each and each.role == "leader"] == [leader]
    gone = next(node for node in cluster.nodes if node.name == leader)
    system.kill(gone, CONTROLLER)
    try:
        assert system.process_state(gone, BROKER) is not None
        deadline_s = time.monotonic() + 10.0
        while not (led := [each for each in asyncio.run(views()) if each and each.role == "leader"]):
            assert time.monotonic() < deadline_s
        assert led[0].node != leader
        assert (led[0].term or 0) > term
    finally:
        system.start(gone, CONTROLLER)
    asyncio.run(controllers.until_ready(cluster.nodes, 20.0))


@pytest.mark.parametrize(
    "options",
    [KafkaOptions(partitions=1), KafkaOptions(partitions=1, transactional=True)],
    ids=["plain", "transactional"],
)
def test_a_queue_delivers_each_value_until_its_offset_is_committed(
    cluster: LocalCluster, system: KafkaSystem, options: KafkaOptions
) -> None:
    """A dequeue takes one value, and a drain through another node has the others, perhaps also this one; then it is empty."""
    members = Members(cluster.nodes, [QUEUE], options)

    def client(place: int) -> KafkaQueueClient:
        nodes = cluster.nodes
        return KafkaQueueClient(node=nodes[place], nodes=nodes, members=members, options=options, topics={"q0": QUEUE})

    async def flow() -> tuple[list[Outcome], Outcome, Outcome, tuple[Outcome, Outcome]]:
        first = client(0)
        put = [await first.invoke(Invocation("enqueue", value, "q0")) for value in (1, [2, 3], "four")]
        taken = await until_ok(first, "dequeue", None, "q0")
        other = client(1)
        rest = await until_ok(other, "drain", None, "q0", stays=True)
        empty = await other.invoke(Invocation("dequeue", None, "q0"))
        await other.close()
        third = client(2)
        nothing = await until_ok(third, "drain", None, "q0")
        return put, taken, rest, (empty, nothing)

    put, taken, rest, (empty, nothing) = asyncio.run(flow())
    assert put == [Ok(1), Ok([2, 3]), Ok("four")]
    assert isinstance(taken, Ok)
    assert isinstance(rest, Ok)
    assert {repr(value) for value in [taken.value, *rest.value]} == {"'four'", "1", "[2, 3]"}
    assert isinstance(empty, Fail)
    assert empty.error.startswith("nothing-came: ")
    assert nothing == Ok([])


def test_too_few_replicas_in_sync_refuse_an_append_for_certain(cluster: LocalCluster, system: KafkaSystem) -> None:
    """Before the replica is out, an append is `info`; then it is `fail`, and no replica has it.

    The rows `REQUEST_TIMED_OUT` and `NOT_ENOUGH_REPLICAS`.
    """
    system.create(STRICT, 3, 10.0)

    def client() -> KafkaClient:
        alive = next(node for node in cluster.nodes if node != gone)
        return KafkaClient(node=alive, nodes=cluster.nodes, options=KafkaOptions(), topic=STRICT, pinned=False)

    async def idle() -> Node:
        """Returns a node that leads neither topic."""
        leaders = set()
        for topic in (TOPIC, STRICT):
            partition = await Broker(cluster.nodes[0].address).partition(topic)
            assert partition is not None
            leaders.add(partition.leader)
        return next(node for place, node in enumerate(cluster.nodes, 1) if place not in leaders)

    async def appended() -> tuple[list[Outcome], Outcome]:
        outcomes: list[Outcome] = []
        while len(outcomes) < 5 and not any(isinstance(each, Fail) for each in outcomes):
            outcomes += await ask(client(), ("append", len(outcomes)))
        return outcomes, await until_ok(client(), "read", [0, 9])

    time.sleep(1.0)  # all brokers know the new topic
    gone = asyncio.run(idle())
    system.kill(gone, BROKER)
    try:
        (*before, last), read = asyncio.run(appended())
    finally:
        system.start(gone, BROKER)
    assert all(isinstance(each, Info) for each in before)
    assert isinstance(before[0], Info)
    assert before[0].error.startswith("request-timed-out: ")
    assert isinstance(last, Fail)
    assert last.error.startswith("not-enough-replicas: ")
    assert isinstance(read, Ok)
    assert len(before) not in [value for _, value in read.value]


def test_without_brokers_an_append_is_open_and_a_read_fails(cluster: LocalCluster, system: KafkaSystem) -> None:
    """The row `_MSG_TIMED_OUT`: the library does not say whether it sent the record."""
    on_all(cluster.nodes, system.kill)
    appended, read = asyncio.run(ask(system.client(0, cluster.nodes[0]), ("append", 1), ("read", 0)))
    assert isinstance(appended, Info)
    assert appended.error.startswith("msg-timed-out: ")
    assert isinstance(read, Fail)
