"""Three real nodes of Nacos: reads and writes, each row of the table of outcomes, status, replicas, and a node that is gone."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit import conformance
from clusters.kit.answers import Refused
from clusters.systems.nacos.naming import Naming
from clusters.systems.nacos.options import Asks, NacosOptions, Writes
from clusters.systems.nacos.outcomes import WRITE_NEVER_HAPPENED
from clusters.systems.nacos.system import NacosSystem
from harness.cluster import on_all
from harness.op import Fail, Info, Invocation, Ok
from harness.service import first_status
from tests.outcomes import asked
from tests.served import cluster_of
from workloads.register.workload import RegisterOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clusters.local import LocalCluster
    from harness.node import Node
    from harness.op import Outcome, Value

pytestmark = pytest.mark.integration

READY_S = 90.0


cluster = cluster_of("Nacos", lambda: NacosSystem.build(NacosOptions(), print))


@pytest.fixture(scope="module")
def errors(cluster: LocalCluster) -> dict[str, str]:
    """The errors of the table that the nodes gave, by their code; each test adds its own."""
    assert cluster.nodes
    return {}


@pytest.fixture(scope="module")
def system(cluster: LocalCluster, errors: dict[str, str]) -> Iterator[NacosSystem]:
    """Nacos, serving on all nodes. The first node starts alone, so it refuses a write: it knows no leader."""
    made = system_of(cluster)
    made.artifact = NacosSystem.build(NacosOptions(), print)
    on_all(cluster.nodes, made.install)
    first, *others = cluster.nodes
    made.start(first)
    errors["no-leader"] = asyncio.run(first_refusal(first))
    on_all(others, made.start)
    asyncio.run(made.until_ready(cluster.nodes, READY_S))
    yield made
    on_all(cluster.nodes, made.kill)


async def first_refusal(node: Node) -> str:
    """Returns the error of the table that a node gives for a write, once it answers at all."""
    deadline_s = time.monotonic() + READY_S
    while time.monotonic() < deadline_s:
        naming = Naming(node.address)
        try:
            await naming.write("labrys-row", "1")
        except Refused as error:
            if error.code in WRITE_NEVER_HAPPENED:
                return error.code
        except Exception:  # noqa: BLE001, S110 - it starts
            pass
        finally:
            await naming.close()
        await asyncio.sleep(0.2)
    raise AssertionError


def system_of(cluster: LocalCluster, **more: Any) -> NacosSystem:
    """The system with some options; its processes are the same."""
    return NacosSystem.made(cluster, NacosOptions(**more), "register", RegisterOptions(mix="2:1:0"))


async def ask(system: NacosSystem, node: Node, *operations: tuple[str, Value], key: str = "a/b~c") -> list[Outcome]:
    """Carries out operations `(f, value)` on one key, one after the other, by one client."""
    return await asked(system.client(1, node), (Invocation(f, value, key) for f, value in operations))


@pytest.mark.parametrize(
    "law", [law for _, law in conformance.cases(["register"]) if law is not conformance.a_register_is_one_object]
)
def test_clients_that_follow_the_leader_keep_the_laws(
    cluster: LocalCluster, system: NacosSystem, law: conformance.Law
) -> None:
    """All but that of one object: the other nodes learn of a write later, and there is no compare-and-set."""
    assert system.workload == "register"  # it runs the processes
    following = system_of(cluster, nacos_asks=Asks.LEADER)
    asyncio.run(law(conformance.Bench(nodes=cluster.nodes, client=following.client)))


def test_a_register_is_a_service_whichever_node_answers(cluster: LocalCluster, system: NacosSystem) -> None:
    """A write through any node is in the reads of all nodes, once they are at rest; there is no compare-and-set."""
    first, second, third = cluster.nodes

    async def all_of_it() -> list[Outcome]:
        done = await ask(system, first, ("read", None), ("write", [1, "x,y=z"]))
        await asyncio.sleep(0.5)
        done += await ask(system, second, ("read", None), ("write", 3), ("cas", [3, 4]))
        await asyncio.sleep(0.5)
        following = system_of(cluster, nacos_asks=Asks.LEADER)
        return [*done, *await ask(system, third, ("read", None)), *await ask(following, third, ("read", None))]

    assert asyncio.run(all_of_it()) == [
        Ok(None),
        Ok([1, "x,y=z"]),
        Ok([1, "x,y=z"]),
        Ok(3),
        Fail("unsupported: Nacos has no compare-and-set"),
        Ok(3),
        Ok(3),
    ]


async def refusal(node: Node, service: str) -> str:
    """Returns the code of the error that a node gives for a write."""
    naming = Naming(node.address)
    try:
        with pytest.raises(Refused) as caught:
            await naming.write(service, "1")
    finally:
        await naming.close()
    return str(caught.value.code)


async def switch(node: Node, *, forbidden: bool) -> None:
    """Allows or forbids writes on one node."""
    naming = Naming(node.address)
    entry = {"entry": "disableAddIP", "disableAddIP": str(forbidden).lower(), "debug": "true"}
    try:
        await naming._call("POST", "api/updateSwitch", data=entry)
    finally:
        await naming.close()


def test_each_row_of_the_table_is_what_nacos_answers_and_changes_nothing(
    cluster: LocalCluster, system: NacosSystem, errors: Mapping[str, str]
) -> None:
    """Nacos refuses a write with each text of the table, and no node has the service afterwards."""
    assert system.workload == "register"  # it runs the processes

    async def all_of_it() -> dict[str, list[str]]:
        refusals = {
            "no-leader": [errors["no-leader"]],
            "no-service": [await refusal(node, "labrys-row") for node in cluster.nodes],
        }
        for node in cluster.nodes:
            await switch(node, forbidden=True)
        refusals["forbidden"] = [await refusal(node, "labrys-row") for node in cluster.nodes]
        for node in cluster.nodes:
            await switch(node, forbidden=False)
        return refusals

    refusals = asyncio.run(all_of_it())
    assert {code: {WRITE_NEVER_HAPPENED.get(error) for error in of_nodes} for code, of_nodes in refusals.items()} == {
        code: {code} for code in WRITE_NEVER_HAPPENED.values()
    }
    states = [asyncio.run(system.replica(node, 5.0)) for node in cluster.nodes]
    assert all(state is not None and "labrys-row" not in state.state for state in states)


def test_the_nodes_name_one_leader_and_their_replicas_are_equal(cluster: LocalCluster, system: NacosSystem) -> None:
    """Every node names the leader, and has the value and the number of changes of each service."""

    async def views() -> set[str | None]:
        statuses = [await first_status(system, node, 2.0) for node in cluster.nodes]
        return {status.leader for status in statuses if status is not None}

    assert len(asyncio.run(views())) == 1
    states = [asyncio.run(system.replica(node, 5.0)) for node in cluster.nodes]
    first = states[0]
    assert first is not None
    assert first.state["labrys-a:2Fb:7Ec"] == [2, "3"]
    assert all(
        state == type(first)(node=state.node, applied_index=None, state=first.state) for state in states if state
    )


def test_with_one_node_of_three_gone_the_leader_changes_itself_and_acknowledges_nothing(
    cluster: LocalCluster, system: NacosSystem
) -> None:
    """The leader waits for two followers, so a write is `info`, and reads show it; without the wait it is acknowledged."""
    leader = asyncio.run(first_status(system, cluster.nodes[0], 2.0))
    assert leader is not None
    gone = next(node for node in cluster.nodes if node.name != leader.leader)
    at = next(node for node in cluster.nodes if node.name == leader.leader)
    quick = system_of(cluster, nacos_writes=Writes.LEADER)

    async def all_of_it() -> list[Outcome]:
        done = await ask(quick, at, ("write", 1), key="quick")
        await asyncio.to_thread(system.kill, gone)
        done += await ask(quick, at, ("write", 2), key="quick")
        done += await ask(system, gone, ("write", 4))
        return [*done, *await ask(system, at, ("write", 5)), *await ask(system, at, ("read", None))]

    *quickly, unreachable, written, read = asyncio.run(all_of_it())
    assert quickly == [Ok(1), Ok(2)]
    assert isinstance(unreachable, Fail)
    assert unreachable.error.startswith("not-connected: ")
    assert isinstance(written, Info)
    assert written.error.startswith("refused: data publish failed")
    assert read == Ok(5)
