"""Three real plain servers of DLedger: clients read their appends, through every node as leader."""

from __future__ import annotations

import asyncio
import base64
import itertools
from typing import TYPE_CHECKING, TypeVar

import pytest

from clusters.kit import conformance
from clusters.kit.routing import Routing
from clusters.kit.stored import entry_body
from clusters.systems.dledger.outcomes import NEVER_HAPPENED, refusal
from clusters.systems.dledger.protocol import APPEND, SUCCESS
from clusters.systems.dledger_log.options import DLedgerLogOptions, LogRead
from clusters.systems.dledger_log.system import DLedgerLogSystem
from harness.cluster import on_all
from harness.op import Fail, Ok
from harness.service import first_status
from tests.artifacts import built
from tests.outcomes import asked_by_key
from tests.served import cluster_of, started

if TYPE_CHECKING:
    from clusters.local import LocalCluster
    from clusters.systems.dledger.protocol import Peer
    from clusters.systems.dledger.remoting import Answer
    from harness.node import Node
    from harness.op import Value

    T = TypeVar("T")

pytestmark = pytest.mark.integration

READY_S = 60.0
KEYS = (f"key-{number}" for number in itertools.count())


cluster = cluster_of("dledger-log")


@pytest.fixture(scope="module")
def installed(cluster: LocalCluster) -> DLedgerLogSystem:
    """The servers, on all nodes."""
    system = built(DLedgerLogSystem(cluster, DLedgerLogOptions(), "set"))
    on_all(cluster.nodes, system.install)
    return system


@pytest.fixture
def system(installed: DLedgerLogSystem, cluster: LocalCluster) -> DLedgerLogSystem:
    """The servers, serving."""
    return started(installed, cluster.nodes, READY_S)


def leader_of(system: DLedgerLogSystem, cluster: LocalCluster) -> Node:
    """The node that all nodes name as their leader, in one term."""
    statuses = [asyncio.run(first_status(system, node, 2.0)) for node in cluster.nodes]
    ((leader, term),) = {(status.leader, status.term) for status in statuses if status is not None}
    assert term is not None
    assert term >= 0
    assert [status.role for status in statuses if status and status.node == leader] == ["leader"]
    return next(node for node in cluster.nodes if node.name == leader)


@pytest.mark.parametrize(("workload", "law"), conformance.cases(DLedgerLogSystem.serves), ids=conformance.name)
def test_clients_keep_the_laws(
    system: DLedgerLogSystem, cluster: LocalCluster, workload: str, law: conformance.Law
) -> None:
    """At the leader: a follower refuses them."""
    client = DLedgerLogSystem(cluster, DLedgerLogOptions(), workload).client
    asyncio.run(law(conformance.Bench(nodes=[leader_of(system, cluster)], client=client)))


@pytest.mark.parametrize("log_read", LogRead)
def test_both_ways_to_read(system: DLedgerLogSystem, cluster: LocalCluster, log_read: LogRead) -> None:
    """Both modes read a thousand entries at the leader in one read; a follower refuses both."""
    key, leader = next(KEYS), leader_of(system, cluster)
    options = DLedgerLogOptions(log_read=log_read, routing=Routing.PINNED, gets_in_flight=200)
    reading = DLedgerLogSystem(cluster, options, "set")

    async def add(worker: int) -> None:
        adds = [("add", key, element) for element in range(worker, 1000, 10)]
        assert await asked_by_key(system.client(worker, leader, pinned=True), *adds) == [
            Ok(element) for _, _, element in adds
        ]

    async def add_all() -> None:
        await asyncio.gather(*map(add, range(10)))

    asyncio.run(add_all())
    (outcome,) = asyncio.run(asked_by_key(reading.client(0, leader), ("read", key, None)))
    assert isinstance(outcome, Ok)
    assert sorted(outcome.value) == list(range(1000))
    follower = next(node for node in cluster.nodes if node != leader)
    refused = asyncio.run(asked_by_key(reading.client(1, follower), ("read", key, None), ("add", key, -1)))
    assert refused == [Fail(f"not-leader: {leader.name} leads")] * 2


def test_a_following_client_goes_to_the_leader(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """A following client is refused once, and then served."""
    key, leader = next(KEYS), leader_of(system, cluster)
    follower = next(node for node in cluster.nodes if node != leader)
    following = DLedgerLogSystem(cluster, DLedgerLogOptions(routing=Routing.LEADER), "set").client(0, follower)
    assert asyncio.run(asked_by_key(following, ("add", key, 1), ("add", key, 2), ("read", key, None)))[1:] == [
        Ok(2),
        Ok([2]),
    ]


def test_an_append_that_a_node_refuses_is_in_no_log(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """The rows 401, 400, 404 and 506 of the table. For 506, the leader gives its leadership to a node that is paused."""
    key, leader = next(KEYS), leader_of(system, cluster)
    follower = next(node for node in cluster.nodes if node != leader)
    status = asyncio.run(first_status(system, leader, 2.0))
    assert status is not None

    async def code(node: Node, to: str, **changed: Value) -> Value:
        entry = entry_body(to, 1)

        async def append(peer: Peer) -> Answer:
            request = {**peer._ids, "body": base64.b64encode(entry).decode(), **changed}
            return await peer._connection.call(APPEND, request, extension={})

        answer = await system.ask(node, 5.0, append)
        return None if answer is None else answer.body.get("code")

    async def codes() -> list[Value]:
        answered = [
            await code(leader, key, remoteId=system.group.members.id_of(follower.name)),
            await code(leader, key, group="another"),
            await code(follower, key),
        ]
        await asyncio.to_thread(system.pause, follower)
        transfer = asyncio.create_task(system.transfer(leader, status.term, follower, 5.0))
        try:
            async with asyncio.timeout(5.0):
                while await code(leader, next(KEYS)) == SUCCESS:
                    pass
            return [*answered, await code(leader, key)]
        finally:
            await asyncio.to_thread(system.resume, follower)
            await transfer

    answered = asyncio.run(codes())
    assert answered == [401, 400, 404, 506]
    assert all(refusal(answer).code in NEVER_HAPPENED for answer in answered if isinstance(answer, int))
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    assert asyncio.run(
        asked_by_key(system.client(0, leader_of(system, cluster), pinned=True), ("read", key, None))
    ) == [Ok([])]


def test_every_node_as_leader_has_the_log(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """Transfers work, and each node as leader returns the elements that were added through the others."""
    key = next(KEYS)
    for number, node in enumerate(cluster.nodes):
        assert asyncio.run(system.lead(node, 40.0)), node.name
        assert leader_of(system, cluster) == node
        outcomes = asyncio.run(
            asked_by_key(system.client(number, node, pinned=True), ("add", key, number), ("read", key, None))
        )
        assert outcomes == [Ok(number), Ok(list(range(number + 1)))]


def test_the_log_outlives_the_processes(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """After kill -9 of all nodes and a restart, all answered entries are there."""
    key = next(KEYS)
    assert asyncio.run(asked_by_key(system.client(0, leader_of(system, cluster), pinned=True), ("add", key, 42))) == [
        Ok(42)
    ]
    on_all(cluster.nodes, system.kill)
    assert [system.process_state(node) for node in cluster.nodes] == [None] * 3
    on_all(cluster.nodes, system.start)
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    assert asyncio.run(
        asked_by_key(system.client(0, leader_of(system, cluster), pinned=True), ("read", key, None))
    ) == [Ok([42])]
