"""Three real plain servers of DLedger: clients read their appends, through every node as leader."""

from __future__ import annotations

import asyncio
import itertools
import os
from typing import TYPE_CHECKING, TypeVar

import pytest

from clusters.local import LocalCluster
from clusters.systems.dledger_log.options import DLedgerLogOptions, LogRead
from clusters.systems.dledger_log.system import DLedgerLogSystem
from clusters.systems.routing import Routing
from harness.cluster import on_all
from harness.op import Fail, Invocation, Ok
from harness.service import first_status
from tests.artifacts import built
from tests.outcomes import asked

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from harness.client import Client
    from harness.node import Node
    from harness.op import Outcome, Value

    T = TypeVar("T")

pytestmark = pytest.mark.integration

READY_S = 60.0
KEYS = (f"key-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Three nodes; the tests run where their addresses can be reached."""
    with LocalCluster.up(f"dledger-log-{os.getpid()}", nodes=3) as made, made.entered():
        yield made


@pytest.fixture(scope="module")
def installed(cluster: LocalCluster) -> DLedgerLogSystem:
    """The servers, on all nodes."""
    system = built(DLedgerLogSystem(cluster, DLedgerLogOptions(), "set"))
    on_all(cluster.nodes, system.install)
    return system


@pytest.fixture
def system(installed: DLedgerLogSystem, cluster: LocalCluster) -> DLedgerLogSystem:
    """The servers, serving."""
    on_all(cluster.nodes, installed.start)
    asyncio.run(installed.until_ready(cluster.nodes, READY_S))
    return installed


def run(main: Coroutine[None, None, T]) -> T:
    """Runs a coroutine in this thread, which is in the control namespace."""
    return asyncio.run(main)


async def ask(client: Client, *operations: tuple[str, str, Value]) -> list[Outcome]:
    """Carries out operations `(f, key, value)` one after the other."""
    return await asked(client, (Invocation(f, value, key) for f, key, value in operations))


def leader_of(system: DLedgerLogSystem, cluster: LocalCluster) -> Node:
    """The node that all nodes name as their leader, in one term."""
    statuses = [run(first_status(system, node, 2.0)) for node in cluster.nodes]
    ((leader, term),) = {(status.leader, status.term) for status in statuses if status is not None}
    assert term is not None
    assert term >= 0
    assert [status.role for status in statuses if status and status.node == leader] == ["leader"]
    return next(node for node in cluster.nodes if node.name == leader)


def test_a_log_at_its_leader(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """An append returns the offset of its entry in a single read, a range, and a read of all."""
    key, values = next(KEYS), [1, "two", [3, None], {"four": 4.5}]
    at_leader = system.client(0, leader_of(system, cluster), pinned=True)
    appended = run(ask(at_leader, *[("append", key, value) for value in values]))
    offsets = [outcome.value for outcome in appended if isinstance(outcome, Ok)]
    assert len(offsets) == len(values)
    assert offsets == sorted(set(offsets))
    reads = [("read", key, offset) for offset in offsets]
    first, last = offsets[0], offsets[-1]
    *alone, span, beyond, everything = run(
        ask(at_leader, *reads, ("read", key, [first, last + 50]), ("read", key, last + 50), ("read", key, None))
    )
    assert alone == [Ok(value) for value in values]
    assert span == Ok([[offset, value] for offset, value in zip(offsets, values, strict=True)])
    assert beyond == Ok(None)
    assert everything == Ok(values)


@pytest.mark.parametrize("log_read", LogRead)
def test_both_ways_to_read(system: DLedgerLogSystem, cluster: LocalCluster, log_read: LogRead) -> None:
    """Both modes read a thousand entries at the leader in one read; a follower refuses both."""
    key, leader = next(KEYS), leader_of(system, cluster)
    options = DLedgerLogOptions(log_read=log_read, routing=Routing.PINNED, gets_in_flight=200)
    reading = DLedgerLogSystem(cluster, options, "set")

    async def add(worker: int) -> None:
        adds = [("add", key, element) for element in range(worker, 1000, 10)]
        assert await ask(system.client(worker, leader, pinned=True), *adds) == [Ok(element) for _, _, element in adds]

    async def add_all() -> None:
        await asyncio.gather(*map(add, range(10)))

    run(add_all())
    (found,) = run(ask(reading.client(0, leader), ("read", key, None)))
    assert isinstance(found, Ok)
    assert sorted(found.value) == list(range(1000))
    follower = next(node for node in cluster.nodes if node != leader)
    refused = run(ask(reading.client(1, follower), ("read", key, None), ("add", key, -1)))
    assert refused == [Fail(f"not-leader: {leader.name} leads")] * 2


def test_a_following_client_goes_to_the_leader(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """A following client is refused once, and then served."""
    key, leader = next(KEYS), leader_of(system, cluster)
    follower = next(node for node in cluster.nodes if node != leader)
    following = DLedgerLogSystem(cluster, DLedgerLogOptions(routing=Routing.LEADER), "set").client(0, follower)
    assert run(ask(following, ("add", key, 1), ("add", key, 2), ("read", key, None)))[1:] == [Ok(2), Ok([2])]


def test_every_node_as_leader_has_the_log(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """Transfers work, and each node as leader returns the elements that were added through the others."""
    key = next(KEYS)
    for number, node in enumerate(cluster.nodes):
        assert run(system.lead(node, 40.0)), node.name
        assert leader_of(system, cluster) == node
        outcomes = run(ask(system.client(number, node, pinned=True), ("add", key, number), ("read", key, None)))
        assert outcomes == [Ok(number), Ok(list(range(number + 1)))]


def test_the_log_outlives_the_processes(system: DLedgerLogSystem, cluster: LocalCluster) -> None:
    """After kill -9 of all nodes and a restart, all answered entries are there."""
    key = next(KEYS)
    assert run(ask(system.client(0, leader_of(system, cluster), pinned=True), ("add", key, 42))) == [Ok(42)]
    on_all(cluster.nodes, system.kill)
    assert [system.process_state(node) for node in cluster.nodes] == [None] * 3
    on_all(cluster.nodes, system.start)
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    assert run(ask(system.client(0, leader_of(system, cluster), pinned=True), ("read", key, None))) == [Ok([42])]
