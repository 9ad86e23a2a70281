"""Three real nodes of RocketMQ: sends, batches, transactions and pulls, each broker's log, statuses, and a killed master.

The brokers are in controller mode first, and then have a commit log on DLedger.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from clusters.kit import conformance
from clusters.kit.answers import NotDone
from clusters.kit.routing import Routing
from clusters.local import LocalCluster
from clusters.systems.dledger.remoting import Answer
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.broker_options import Mode, RocketMQOptions, Sends
from clusters.systems.rocketmq.broker_outcomes import END_REFUSED, REFUSED, refusal
from clusters.systems.rocketmq.brokers import ROLE, connect
from clusters.systems.rocketmq.system import RocketMQSystem
from harness import readiness
from harness.cluster import on_all
from harness.leaders import LEADER
from harness.op import Fail, Invocation, Ok
from harness.service import first_status
from tests.served import cluster_of, serving
from workloads.queue import QueueOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.client import Client
    from harness.node import Node
    from harness.op import Outcome, Value
    from harness.service import NodeStatus

pytestmark = pytest.mark.integration

READY_S = 120.0
AGAIN_S = 60.0
SETTLED_S = 2.0
UPDATE_CONFIGURATION: Final = 25
OPTIONS = RocketMQOptions(routing=Routing.LEADER, route_interval_s=0.5)


cluster = cluster_of("RocketMQ", lambda: RocketMQSystem.build(OPTIONS, print))


@pytest.fixture(scope="module")
def system(cluster: LocalCluster) -> Iterator[RocketMQSystem]:
    """RocketMQ, with three members in the sync set, and its topic."""
    made = RocketMQSystem(cluster, OPTIONS, "log")
    made.artifact = RocketMQSystem.build(OPTIONS, print)
    with serving(made, cluster.nodes, READY_S):
        yield made


async def ask(client: Client, *operations: tuple[str, Value]) -> list[Outcome]:
    """Carries out operations `(f, value)`, one after the other, and closes the client."""
    try:
        return [await client.invoke(Invocation(f, value)) for f, value in operations]
    finally:
        await client.close()


async def until_ok(client: Client, f: str, value: Value, limit_s: float) -> Outcome:
    """Carries out an operation until it succeeds, and closes the client."""
    deadline_s = time.monotonic() + limit_s
    try:
        while True:
            outcome = await client.invoke(Invocation(f, value))
            if isinstance(outcome, Ok) or time.monotonic() > deadline_s:
                return outcome
    finally:
        await client.close()


async def views(system: RocketMQSystem) -> dict[str, NodeStatus | None]:
    """What each broker says of itself."""
    service = system.front()
    return {node.name: await first_status(service, node, 2.0) for node in service.nodes}


def master(system: RocketMQSystem) -> Node:
    """The node of the master."""
    statuses = asyncio.run(views(system))
    [name] = [name for name, status in statuses.items() if status is not None and status.role == LEADER]
    return next(node for node in system.front().nodes if node.name == name)


def test_sends_have_the_next_offset_and_every_replica_has_them(cluster: LocalCluster, system: RocketMQSystem) -> None:
    """A range, an offset and an offset beyond the end read what is there, and each broker reads its own log."""
    first, second, _ = cluster.nodes

    async def all_of_it() -> tuple[list[Outcome], list[Outcome]]:
        outcomes = await ask(system.client(0, first), ("append", "a"), ("append", [1, 2]))
        outcomes += await ask(system.client(1, second), ("append", None))
        await until_ok(system.client(0, first), "read", 2, 5.0)
        outcomes += await ask(system.client(1, second), ("read", 1), ("read", 7))
        whole = [await until_ok(system.client(2, node, pinned=True), "read", [0, 9], 10.0) for node in cluster.nodes]
        return outcomes, whole

    outcomes, whole = asyncio.run(all_of_it())
    assert outcomes == [Ok(0, order=0), Ok(1, order=1), Ok(2, order=2), Ok([1, 2]), Ok(None)]
    assert whole == [Ok([[0, "a"], [1, [1, 2]], [2, None]])] * 3


def test_a_slave_refuses_for_certain(cluster: LocalCluster, system: RocketMQSystem) -> None:
    """A pinned client of a slave gets the refusal before the put, and no log has the message."""
    lead = master(system)
    slave = next(node for node in cluster.nodes if node != lead)
    [append] = asyncio.run(ask(system.client(0, slave, pinned=True), ("append", "never")))
    assert isinstance(append, Fail)
    assert append.error.startswith("not-master: system-busy: [REJECTREQUEST]")
    [read] = asyncio.run(ask(system.client(0, lead), ("read", [0, 9])))
    assert isinstance(read, Ok)
    assert "never" not in [value for _, value in read.value]


def test_refusals_that_are_certain_leave_no_message(system: RocketMQSystem) -> None:
    """A topic that nobody created (17), a broker that may not be written to (16), and a commit at a slave (11)."""
    lead = master(system)
    slave = next(node for node in system.front().nodes if node != lead)

    async def asked() -> tuple[list[Answer], int, int]:
        connection, other = await connect(lead, 2.0), await connect(slave, 2.0)
        before = await broker_requests.commit_log_end(connection)
        answers = [await broker_requests.send(connection, "nowhere", 0, b"1", 0)]
        fields = {"topic": "ordered", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6", "order": "true"}
        defaults = {"defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0"}
        await connection.call(broker_requests.CREATE_TOPIC, None, extension=fields | defaults)
        await connection.call_bytes(UPDATE_CONFIGURATION, b"brokerPermission=4", extension={})
        answers.append(await broker_requests.send(connection, "ordered", 0, b"1", 0))
        await connection.call_bytes(UPDATE_CONFIGURATION, b"brokerPermission=6", extension={})
        half = Answer(status=0, remark="", body={}, extension={"msgId": "0" * 32, "queueOffset": "0"})
        answers.append(await broker_requests.end_transaction(other, "labrys", half, "none", commits=True))
        return answers, before, await broker_requests.commit_log_end(connection)

    (unknown, forbidden, at_slave), before, after = asyncio.run(asked())
    for answer, table in [(unknown, REFUSED), (forbidden, REFUSED), (at_slave, END_REFUSED)]:
        assert type(refusal(answer.status, answer.remark, table)) is NotDone, answer
    assert [unknown.status, forbidden.status, at_slave.status] == [17, 16, 11]
    assert after == before


def test_batches_and_transactions(cluster: LocalCluster, system: RocketMQSystem) -> None:
    """Messages of one batch have successive offsets. What is committed is there, and what is rolled back is not."""
    node = cluster.nodes[0]
    made = {
        sends: RocketMQSystem(cluster, replace(OPTIONS, sends=sends, hold_ms=100), "log")
        for sends in (Sends.BATCHES, Sends.TRANSACTIONS)
    }

    async def at_once(sends: Sends, values: Sequence[Value]) -> list[Outcome]:
        clients = [made[sends].client(index, node) for index in range(len(values))]
        outcomes = await asyncio.gather(
            *(client.invoke(Invocation("append", value)) for client, value in zip(clients, values, strict=True))
        )
        for client in clients:
            await client.close()
        return list(outcomes)

    batch = asyncio.run(at_once(Sends.BATCHES, ["b0", "b1", "b2"]))
    placed = {
        outcome.value: value
        for value, outcome in zip(["b0", "b1", "b2"], batch, strict=True)
        if isinstance(outcome, Ok)
    }
    first = min(placed)
    assert sorted(placed) == [first, first + 1, first + 2], batch
    values = [f"t{number}" for number in range(30)]  # their bodies decide which are rolled back
    ended = asyncio.run(at_once(Sends.TRANSACTIONS, values))
    committed = [value for value, outcome in zip(values, ended, strict=True) if outcome == Ok(None)]
    assert 0 < len(committed) < len(values), ended
    assert {outcome.error.partition(":")[0] for outcome in ended if isinstance(outcome, Fail)} == {"rolled-back"}
    last = first + 2 + len(committed)
    asyncio.run(until_ok(system.client(0, node), "read", last, 5.0))
    [whole] = asyncio.run(ask(system.client(0, node), ("read", [first, first + 99])))
    assert isinstance(whole, Ok)
    assert whole.value[:3] == [[offset, placed[offset]] for offset in sorted(placed)]
    assert sorted(value for _, value in whole.value[3:]) == sorted(committed)


@pytest.mark.parametrize(("workload", "law"), conformance.cases(RocketMQSystem.serves), ids=conformance.name)
def test_clients_keep_the_laws(
    cluster: LocalCluster, system: RocketMQSystem, workload: str, law: conformance.Law
) -> None:
    """A queue has one message queue. A broker gives a message to consumers a moment after it is in the log."""
    assert system.workload == "log"  # it runs the processes
    made = RocketMQSystem.made(cluster, replace(OPTIONS, message_queues=1), workload, QueueOptions(queues=1))
    asyncio.run(made.front().complete(READY_S))
    bench = conformance.Bench(nodes=made.front().nodes, client=made.client, settled_s=SETTLED_S)
    if workload == "queue":
        bench = replace(bench, name=lambda _: "q0", empty="nothing-came")
    asyncio.run(law(bench))


def test_all_brokers_name_one_master_in_one_epoch(cluster: LocalCluster, system: RocketMQSystem) -> None:
    """The epoch is the term, and the end of the log is what is applied."""
    statuses = asyncio.run(views(system))
    [(leader, term, end)] = {
        (status.leader, status.term, status.applied_index) for status in statuses.values() if status
    }
    assert len(statuses) == 3
    assert leader == master(system).name
    assert term == 1
    assert end


def test_a_new_master_has_everything_and_goes_on(cluster: LocalCluster, system: RocketMQSystem) -> None:
    """The master is killed. The controllers elect another one in a later epoch, and sends go on behind what is there."""
    gone = master(system)
    before = asyncio.run(until_ok(system.client(0, gone), "read", [0, 99], 5.0))
    assert isinstance(before, Ok)
    system.kill(gone, ROLE)
    try:
        deadline_s = time.monotonic() + 20.0
        while not (
            led := [status for status in asyncio.run(views(system)).values() if status and status.role == LEADER]
        ):
            assert time.monotonic() < deadline_s
        assert led[0].node != gone.name
        assert led[0].term is not None
        assert led[0].term >= 2, led  # a busy machine can make the controllers elect twice
    finally:
        system.start(gone, ROLE)
    alive = next(node for node in cluster.nodes if node != gone)
    sent = asyncio.run(until_ok(system.client(0, alive), "append", "after", AGAIN_S))
    assert isinstance(sent, Ok)
    assert sent.value >= len(before.value)
    read = asyncio.run(until_ok(system.client(0, alive), "read", sent.value, 5.0))
    assert read == Ok("after")
    whole = asyncio.run(until_ok(system.client(0, gone, pinned=True), "read", [0, 99], 20.0))
    assert isinstance(whole, Ok)
    assert whole.value[: len(before.value)] == before.value
    assert [sent.value, "after"] in whole.value


@pytest.mark.night
def test_a_commit_log_on_dledger(system: RocketMQSystem) -> None:
    """The leader of the group is the master. It is killed, and the next one has everything."""
    on_all(system.cluster.nodes, system.kill)
    options = replace(OPTIONS, mode=Mode.DLEDGER_COMMITLOG)
    with LocalCluster.up(f"rmqd-{os.getpid()}", nodes=3) as cluster, cluster.entered():
        on = RocketMQSystem(cluster, options, "log")
        on.artifact = system.artifact
        on_all(cluster.nodes, on.install)
        try:
            asyncio.run(readiness.bring_up(on, READY_S, first=True))
            lead = master(on)
            before = asyncio.run(ask(on.client(0, lead), ("append", "a"), ("append", "b")))
            assert before == [Ok(0, order=0), Ok(1, order=1)]
            [at_slave] = asyncio.run(
                ask(
                    on.client(0, next(node for node in cluster.nodes if node != lead), pinned=True), ("append", "never")
                )
            )
            assert isinstance(at_slave, Fail)
            on.kill(lead, ROLE)
            alive = next(node for node in cluster.nodes if node != lead)
            sent = asyncio.run(until_ok(on.client(0, alive), "append", "after", AGAIN_S))
            assert sent == Ok(2, order=2)
            on.start(lead, ROLE)
            terms = {status.term for status in asyncio.run(views(on)).values() if status and status.role == LEADER}
            assert len(terms) == 1
            for node in cluster.nodes:
                whole = asyncio.run(until_ok(on.client(0, node, pinned=True), "read", [0, 9], 30.0))
                assert whole == Ok([[0, "a"], [1, "b"], [2, "after"]])
        finally:
            on_all(cluster.nodes, on.kill)
