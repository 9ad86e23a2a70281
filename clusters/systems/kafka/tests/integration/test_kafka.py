"""Three real nodes of Kafka: appends and reads, queues, the replica of each broker, the table of outcomes, statuses."""

from __future__ import annotations

import asyncio
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit import conformance
from clusters.kit.answers import NotDone
from clusters.systems.kafka import library, wire
from clusters.systems.kafka.client import TOPIC, KafkaLogs
from clusters.systems.kafka.library import Library, Producer, records
from clusters.systems.kafka.members import Members
from clusters.systems.kafka.options import KafkaOptions
from clusters.systems.kafka.queue import KafkaQueues
from clusters.systems.kafka.settings import BROKER, CONTROLLER
from clusters.systems.kafka.system import KafkaSystem
from clusters.systems.kafka.wire import DEBUGGER, PORT, Broker
from harness.cluster import on_all
from harness.op import Fail, Info, Invocation, Ok
from harness.service import first_status
from tests.served import cluster_of, serving
from workloads.queue import QueueOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from typing import TypeVar

    from clusters.local import LocalCluster
    from harness.client import Client
    from harness.node import Node
    from harness.op import Outcome, Value
    from harness.service import NodeStatus

    T = TypeVar("T")

pytestmark = pytest.mark.integration

READY_S = 90.0
QUEUE = "labrys-q0"
STRICT = "strict"  # a topic that needs all three replicas
MOVING = "moving"  # a topic whose leader changes
GONE = "gone"  # a topic that is deleted
SMALL = "small"  # a topic for small records
TOO_LARGE = "x" * 1_100_000
ELECT_LEADERS = (43, 1)


class Both(KafkaSystem):
    """Kafka with the topics of a log and of a queue."""

    def topics(self) -> Sequence[str]:
        """The log comes first, so the statuses are about its partition."""
        return TOPIC, QUEUE


cluster = cluster_of("Kafka", lambda: KafkaSystem.build(KafkaOptions(), print))


@pytest.fixture(scope="module")
def system(cluster: LocalCluster) -> Iterator[KafkaSystem]:
    """Kafka, serving on all nodes, with its topic."""
    options = KafkaOptions(session_ms=1500)
    made = Both.made(cluster, options, "log", QueueOptions(queues=1))
    made.artifact = KafkaSystem.build(options, print)
    with serving(made, cluster.nodes, READY_S):
        yield made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers that give up early."""
    monkeypatch.setattr(library, "REQUEST_MS", 1000)
    monkeypatch.setattr(library, "DELIVERY_MS", 1500)


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


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """Looks again and again until there is something; at most for 20 seconds."""
    async with asyncio.timeout(20.0):
        while not (result := await look()):  # noqa: ASYNC110 - a system tells nobody
            await asyncio.sleep(0.05)
    return result


async def led(node: Node, topic: str, *, by: int | None = None, in_sync: int = 3) -> None:
    """Waits until a broker knows of so many replicas in sync, under any leader or under one."""
    broker = Broker(node.address)

    async def looked() -> bool:
        partition = await broker.partition(topic)
        return partition is not None and by in {None, partition.leader} and len(partition.in_sync) == in_sync

    try:
        await until(looked)
    finally:
        await broker.close()


def administer(cluster: LocalCluster, change: Callable[[Any], Mapping[str, Future[Any]]]) -> None:
    """Changes topics with Kafka's own client for it."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - an extra

    admin = AdminClient({"bootstrap.servers": f"{cluster.nodes[0].address}:{PORT}", "log_level": 0})
    for future in change(admin).values():
        future.result(10.0)


def errors_of(outcomes: Sequence[Outcome]) -> list[str]:
    """The codes of errors; an empty text for an operation that succeeded."""
    return ["" if isinstance(outcome, Ok) else outcome.error.partition(":")[0] for outcome in outcomes]


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

    outcomes, replicas = asyncio.run(all_of_it())
    whole = Ok([[0, "a"], [1, "b"], [2, "c"]])
    assert outcomes == [Ok(0, order=0), Ok(1, order=1), Ok(2, order=2), whole, Ok("b"), Ok(None)]
    assert replicas == [whole] * 3


def test_an_idempotent_producer_appends_once(cluster: LocalCluster, system: KafkaSystem) -> None:
    """It has the same answers."""
    client = client_at(cluster, cluster.nodes[0], TOPIC, KafkaOptions(idempotent=True))
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
        statuses = [await first_status(system.front(), node, 2.0) for node in cluster.nodes]
        return {
            (status.leader, status.term, status.applied_index, status.committed_index) for status in statuses if status
        }

    ((leader, term, applied, committed),) = asyncio.run(views())
    assert leader in {node.name for node in cluster.nodes}
    assert (term, applied, committed) == (0, 4, 4)


def test_all_controllers_name_one_leader_in_one_epoch(cluster: LocalCluster, system: KafkaSystem) -> None:
    """The leader of the controllers dies, and the next one leads in a later epoch; no broker dies with it."""
    controllers = system.service(CONTROLLER)

    async def views() -> list[NodeStatus | None]:
        return [await first_status(controllers, node, 2.0) for node in cluster.nodes]

    before = asyncio.run(views())
    assert all(before)
    ((leader, term),) = {(status.leader, status.term) for status in before if status}
    assert leader is not None
    assert term is not None
    assert [status.node for status in before if status and status.role == "leader"] == [leader]
    gone = next(node for node in cluster.nodes if node.name == leader)
    others = [node for node in cluster.nodes if node != gone]
    system.kill(gone, CONTROLLER)
    assert system.process_state(gone, BROKER) is not None

    async def next_leader() -> NodeStatus | None:
        statuses = [await first_status(controllers, node, 2.0) for node in others]
        return next((status for status in statuses if status and status.role == "leader"), None)

    try:
        later = asyncio.run(until(next_leader))
    finally:
        system.start(gone, CONTROLLER)
    assert (later.term or 0) > term


@pytest.mark.parametrize(
    "options",
    [KafkaOptions(partitions=1), KafkaOptions(partitions=1, transactional=True)],
    ids=["plain", "transactional"],
)
def test_a_queue_delivers_each_value_until_its_offset_is_committed(
    cluster: LocalCluster, system: KafkaSystem, options: KafkaOptions
) -> None:
    """A dequeue takes one value, and a drain through another node has the others, perhaps also this one; then it is empty."""
    members = Members(cluster.nodes, [QUEUE], Library(), options)

    def client(index: int) -> KafkaQueues:
        nodes = cluster.nodes
        return KafkaQueues(node=nodes[index], nodes=nodes, members=members, options=options, topics={"q0": QUEUE})

    async def flow() -> tuple[list[Outcome], Outcome, Outcome, tuple[Outcome, Outcome]]:
        first = client(0)
        put = [await first.invoke(Invocation("enqueue", value, "q0")) for value in (1, [2, 3], "four")]
        taken = await until_ok(first, "dequeue", None, "q0")
        other = client(1)
        rest = await until_ok(other, "drain", None, "q0", stays=True)
        empty = await other.invoke(Invocation("dequeue", None, "q0"))
        third = client(2)

        async def one_has_the_partition() -> bool:
            outcomes = [await consumer.invoke(Invocation("dequeue", None, "q0")) for consumer in (other, third)]
            return set(errors_of(outcomes)) == {"nothing-came", "not-assigned"}

        await until(one_has_the_partition)
        await other.close()
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


LOG_LAWS = [law for workload, law in conformance.cases(KafkaSystem.serves) if workload == "log"]
QUEUE_LAWS = [law for workload, law in conformance.cases(KafkaSystem.serves) if workload == "queue"]


@pytest.mark.parametrize("law", LOG_LAWS, ids=conformance.name)
def test_clients_of_logs_keep_the_laws(cluster: LocalCluster, system: KafkaSystem, law: conformance.Law) -> None:
    """On a topic of its own."""
    topic = f"laws-{conformance.name(law)}"
    asyncio.run(system.create(topic, 2, 10.0))

    def client(_process: int, node: Node) -> KafkaLogs:
        return client_at(cluster, node, topic)

    asyncio.run(led(cluster.nodes[0], topic))
    asyncio.run(law(conformance.Bench(nodes=cluster.nodes, client=client)))


@pytest.mark.parametrize("law", QUEUE_LAWS, ids=conformance.name)
def test_clients_of_queues_keep_the_laws(cluster: LocalCluster, system: KafkaSystem, law: conformance.Law) -> None:
    """With one partition, once the group has assigned it to the node of the first client."""
    options = KafkaOptions(partitions=1)
    nodes = cluster.nodes
    members = Members(nodes, [QUEUE], Library(), options)

    def client(_process: int, node: Node) -> KafkaQueues:
        return KafkaQueues(node=node, nodes=nodes, members=members, options=options, topics={"q0": QUEUE})

    async def assigned() -> None:
        stays = client(0, nodes[0])
        try:
            await until_ok(stays, "drain", None, "q0", stays=True)
            bench = conformance.Bench(nodes=nodes, client=client, name=lambda _: "q0", empty="nothing-came")
            await law(bench)
        finally:
            await stays.close()

    assert system.workload == "log"  # it runs the processes
    asyncio.run(assigned())


def client_at(cluster: LocalCluster, node: Node, topic: str, options: KafkaOptions | None = None) -> KafkaLogs:
    """A client of a topic, which need not be the one of the workload."""
    return KafkaLogs(
        node=node, nodes=cluster.nodes, library=Library(), options=options or KafkaOptions(), topic=topic, pinned=False
    )


@pytest.mark.usefixtures("quick")
def test_too_few_replicas_in_sync_leave_an_append_open(cluster: LocalCluster, system: KafkaSystem) -> None:
    """Before the replica is out, the leader appends and gets no answer from it; then it refuses, and has nothing.

    The rows `REQUEST_TIMED_OUT` and `NOT_ENOUGH_REPLICAS`.
    """
    asyncio.run(system.create(STRICT, 3, 10.0))
    first, _, gone = cluster.nodes  # the first one leads all partitions

    async def appended() -> tuple[list[Outcome], Outcome]:
        client = client_at(cluster, first, STRICT)
        outcomes: list[Outcome] = []
        while len(outcomes) < 5 and "not-enough-replicas" not in errors_of(outcomes):
            outcomes.append(await client.invoke(Invocation("append", len(outcomes))))
        return outcomes, await until_ok(client, "read", [0, 9])

    asyncio.run(led(first, STRICT))
    system.pause(gone, BROKER)
    try:
        (*before, last), read = asyncio.run(appended())
    finally:
        system.resume(gone, BROKER)
    assert all(isinstance(outcome, Info) for outcome in (*before, last))
    assert errors_of([before[0], last]) == ["request-timed-out", "not-enough-replicas"]
    assert isinstance(read, Ok)
    assert len(before) not in [value for _, value in read.value]


def test_the_library_sends_again_what_a_leader_that_stops_leading_has(
    cluster: LocalCluster, system: KafkaSystem
) -> None:
    """The answer `NOT_LEADER_OR_FOLLOWER` to a record that the leader has appended: the library repeats the record.

    The first node leads by preference. It is away until the second one leads. Then both followers pause, so an append waits for
    them, and Kafka moves the leadership back. If this takes too long, the followers are out of sync, and there is another try.
    """
    asyncio.run(system.create(MOVING, 1, 10.0))
    first, second, third = cluster.nodes

    async def moved() -> tuple[bool, Outcome]:
        client, broker, asking = client_at(cluster, second, MOVING), Broker(second.address), Broker(second.address)
        try:
            assert isinstance(await until_ok(client, "append", 0, stays=True), Ok)
            on_all([first, third], lambda node: system.pause(node, BROKER))
            end = await broker.end(MOVING, replica=DEBUGGER)
            append = asyncio.create_task(client.invoke(Invocation("append", 1)))

            async def has_it() -> bool:
                return await broker.end(MOVING, replica=DEBUGGER) > end

            await until(has_it)
            await asking._ask(
                ELECT_LEADERS, struct.pack(">bi", 0, 1) + wire._text(MOVING) + struct.pack(">iii", 1, 0, 1000)
            )

            async def knows_the_next() -> bool:
                partition = await broker.partition(MOVING)
                return append.done() or (partition is not None and partition.leader == 1)

            await until(knows_the_next)
            waits = not append.done()
            on_all([first, third], lambda node: system.resume(node, BROKER))
            return waits, await append
        finally:
            on_all([first, third], lambda node: system.resume(node, BROKER))
            for opened in (client, broker, asking):
                await opened.close()

    for _ in range(5):
        asyncio.run(led(second, MOVING))
        system.pause(first, BROKER)
        try:
            asyncio.run(led(second, MOVING, by=2, in_sync=2))
        finally:
            system.resume(first, BROKER)
        asyncio.run(led(second, MOVING, by=2))
        waited, appended = asyncio.run(moved())
        if waited:
            break
    assert waited
    assert isinstance(appended, Ok)
    asyncio.run(led(first, MOVING, by=1))
    assert asyncio.run(until_ok(client_at(cluster, first, MOVING), "read", appended.value)) == Ok(1)


@pytest.mark.usefixtures("quick")
def test_the_library_does_not_report_that_the_topic_is_gone(cluster: LocalCluster, system: KafkaSystem) -> None:
    """The answer `UNKNOWN_TOPIC_OR_PARTITION`: the library repeats the record until its time is over, so the append is open."""

    async def appended() -> list[Outcome]:
        client = client_at(cluster, cluster.nodes[0], GONE)
        try:
            outcomes = [await until_ok(client, "append", 0, stays=True)]
            await asyncio.to_thread(administer, cluster, lambda admin: admin.delete_topics([GONE]))
            while len(outcomes) < 50 and isinstance(outcomes[-1], Ok):
                outcomes.append(await client.invoke(Invocation("append", len(outcomes))))
        finally:
            await client.close()
        return outcomes

    asyncio.run(system.create(GONE, 2, 10.0))
    last = asyncio.run(appended())[-1]
    assert isinstance(last, Info)
    assert last.error.startswith("msg-timed-out: ")


def test_a_record_that_the_broker_finds_too_large_is_in_no_log(cluster: LocalCluster, system: KafkaSystem) -> None:
    """The row `MSG_SIZE_TOO_LARGE` by the leader. The library demands the abort of a transaction with it: `aborted`."""
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415 - an extra

    new = NewTopic(SMALL, num_partitions=1, replica_assignment=[[1, 2, 3]], config={"max.message.bytes": "1000"})
    administer(cluster, lambda admin: admin.create_topics([new]))
    asyncio.run(led(cluster.nodes[0], SMALL))
    first = cluster.nodes[0]
    options = KafkaOptions(transactional=True)
    by_transaction = records("small", node=first, nodes=cluster.nodes, options=options, transactions="small")

    async def transacted() -> list[str]:
        clients = Library()
        producer = Producer(clients, "small", by_transaction)
        errors = []
        for body in (b"x" * 5000, b"1", b"1", b"1"):
            try:
                errors.append("" if await producer.send(SMALL, body, 0) is None else "an offset")
            except NotDone as error:
                errors.append(error.code)
        clients.end("small", by_transaction.name)
        return errors

    async def appended() -> tuple[Outcome, Outcome]:
        client = client_at(cluster, first, SMALL)
        refused = await client.invoke(Invocation("append", "x" * 5000))
        return refused, await until_ok(client, "read", [0, 9])

    aborted, *later = asyncio.run(transacted())
    refused, read = asyncio.run(appended())
    assert isinstance(refused, Fail)
    assert [*errors_of([refused]), aborted] == ["too-large", "aborted"]
    assert later == ["aborted", "", ""]  # the library also gives up the transaction after that
    assert isinstance(read, Ok)
    assert [value for _, value in read.value] == ["not an entry of this test: b'1'"] * 2


@pytest.mark.usefixtures("quick")
def test_without_brokers_an_append_is_open_and_a_read_fails(cluster: LocalCluster, system: KafkaSystem) -> None:
    """The row `_MSG_TIMED_OUT`: the library does not say whether it sent the record."""
    on_all(cluster.nodes, system.kill)
    appended, read = asyncio.run(ask(system.client(0, cluster.nodes[0]), ("append", 1), ("read", 0)))
    assert isinstance(appended, Info)
    assert appended.error.startswith("msg-timed-out: ")
    assert isinstance(read, Fail)
