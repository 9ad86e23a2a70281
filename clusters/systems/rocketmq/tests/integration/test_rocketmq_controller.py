"""Three real controllers of RocketMQ on each consensus: every answer agrees with the specification."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from clusters.kit.routing import Routing
from clusters.systems.dledger.remoting import Answer
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.heartbeats import Heartbeats, accepted
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from clusters.systems.rocketmq.tests.catches.controllers import request
from clusters.systems.rocketmq.workloads.group import Group, respond
from harness.cluster import on_all
from harness.op import Fail, Invocation, Ok
from harness.service import first_status
from tests.artifacts import built
from tests.served import cluster_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.local import LocalCluster
    from harness.node import Node

    T = TypeVar("T")

pytestmark = pytest.mark.integration

READY_S = 90.0
ANSWER_S = 10.0
OPERATIONS = int(os.environ.get("LABRYS_CONTROLLER_OPERATIONS", "2000"))
OPERATIONS_PER_GROUP = 40
NEVER_MS = 86_400_000  # no elections of the controllers themselves
KEYS = (f"b{number}" for number in itertools.count())


cluster = cluster_of("controller")


@pytest.fixture(scope="module", params=Consensus)
def system(cluster: LocalCluster, request: pytest.FixtureRequest) -> Iterator[RocketMQController]:
    """Controllers on one consensus, serving."""
    options = ControllerOptions(consensus=request.param, routing=Routing.LEADER, scan_interval_ms=NEVER_MS)
    made = built(RocketMQController(cluster, options, "broker-id"))
    on_all(cluster.nodes, made.install)
    on_all(cluster.nodes, made.start)
    try:
        asyncio.run(made.until_ready(cluster.nodes, READY_S))
        yield made
    finally:
        on_all(cluster.nodes, made.stop)
        on_all(cluster.nodes, made.wipe)


def leader_of(system: RocketMQController) -> Node:
    """The controller that all name as their leader."""
    statuses = [asyncio.run(first_status(system, node, 2.0)) for node in system.controllers.nodes]
    (leader,) = {status.leader for status in statuses if status is not None}
    assert [status.node for status in statuses if status and status.role == "leader"] == [leader]
    return next(node for node in system.controllers.nodes if node.name == leader)


def drawn(draws: random.Random, group: Group) -> tuple[str, Any]:
    """A random request; sometimes one that removes the group."""
    if draws.random() < 0.04:
        return "elect", {"id": -1, "designate": draws.random() < 0.5}
    if draws.random() < 0.02:
        return "clean", {"ids": draws.sample([1, 2, 3], draws.randint(0, 2)), "living": draws.random() < 0.3}
    return request(draws, group)


async def compare(system: RocketMQController, leader: Node, seed: int) -> dict[str, int]:
    """Compares answers to random requests with the specification. Returns the number of each code for each function."""
    draws, counts = random.Random(seed), dict[str, int]()
    heartbeats = Heartbeats(system.controllers)
    client = system.client(0, leader, pinned=True)
    try:
        for _ in range(OPERATIONS // OPERATIONS_PER_GROUP):
            name, group = next(KEYS), Group()
            asked: list[Any] = []
            for _ in range(OPERATIONS_PER_GROUP):
                f, argument = drawn(draws, group)
                group, expected = respond(group, f, argument)
                asked.append((f, argument))
                if f == "heartbeat":
                    answers = await heartbeats.beat(name, argument, ANSWER_S)
                    assert accepted(answers) == {"code": 0}
                    assert all(isinstance(answer, Answer) for answer in answers.values()), answers
                    continue
                async with asyncio.timeout(ANSWER_S):
                    outcome = await client.invoke(Invocation(f, argument, name))
                assert outcome == Ok(expected), (seed, name, asked)
                counts[f"{f} {expected['code']}"] = counts.get(f"{f} {expected['code']}", 0) + 1
            await heartbeats.leave(name)
    finally:
        await heartbeats.close()
        await client.close()
    return counts


def test_every_answer_is_that_of_the_specification(system: RocketMQController) -> None:
    """Two thousand sequential requests of every kind, refused and successful, show no difference."""
    counts = asyncio.run(compare(system, leader_of(system), seed=17))
    assert len(counts) > 20, counts


def test_followers_refuse_and_name_the_leader(system: RocketMQController) -> None:
    """A pinned client stays and is refused; a following one is refused once."""
    leader = leader_of(system)
    follower = next(node for node in system.controllers.nodes if node != leader)

    async def ask(*functions: str, pinned: bool) -> list[Any]:
        client = system.client(1, follower, pinned=pinned)
        try:
            return [await client.invoke(Invocation(f, None, "absent")) for f in functions]
        finally:
            await client.close()

    refused = Fail(f"not-leader: {leader.name} leads")
    assert asyncio.run(ask("next", "state", pinned=True)) == [refused] * 2
    assert asyncio.run(ask("next", "next", pinned=False)) == [refused, Ok({"code": 0, "next": 1})]


def test_what_was_answered_outlives_the_processes(system: RocketMQController) -> None:
    """After kill -9 of all controllers and a restart, they have the given ids."""
    key, nodes = next(KEYS), system.controllers.nodes

    async def ask(node: Node, f: str, argument: Any) -> Any:
        client = system.client(0, node, pinned=True)
        try:
            return await client.invoke(Invocation(f, argument, key))
        finally:
            await client.close()

    assert asyncio.run(ask(leader_of(system), "apply", {"id": 1, "check": "a;1"})) == Ok({"code": 0})
    on_all(nodes, system.kill)
    assert [system.process_state(node) for node in nodes] == [None] * 3
    on_all(nodes, system.start)
    asyncio.run(system.until_ready(nodes, READY_S))
    assert asyncio.run(ask(leader_of(system), "apply", {"id": 1, "check": "b;1"})) == Ok({"code": 2014})
    assert asyncio.run(ask(leader_of(system), "next", None)) == Ok({"code": 0, "next": 2})
