"""Three real nodes of etcd: the operations of each workload, each row of the table of outcomes, leadership, replicas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit import conformance
from clusters.kit.answers import Refused
from clusters.systems.etcd.gateway import Gateway, encoded
from clusters.systems.etcd.options import EtcdOptions, Reads
from clusters.systems.etcd.outcomes import WRITE_NEVER_HAPPENED
from clusters.systems.etcd.releases import PACKAGES
from clusters.systems.etcd.system import EtcdSystem
from harness.cluster import on_all
from harness.op import Fail, Info, Invocation, Ok
from harness.service import first_status
from tests.outcomes import asked, without_order
from tests.served import cluster_of, serving
from tests.transacting import assert_that_all_nodes_act_on_the_same_keys
from workloads.lock.workload import LockWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clusters.local import LocalCluster
    from harness.node import Node
    from harness.op import Outcome, Value

pytestmark = pytest.mark.integration

READY_S = 30.0
LEASE_S = 2.0  # etcd has no shorter leases with its default election timeout
TOO_LARGE = 1_700_000


cluster = cluster_of("etcd", PACKAGES.fetch)


@pytest.fixture(scope="module")
def system(cluster: LocalCluster) -> Iterator[EtcdSystem]:
    """etcd, serving on all nodes."""
    made = system_of(cluster, "register")
    with serving(made, cluster.nodes, READY_S):
        yield made


def system_of(cluster: LocalCluster, workload: str, **more: Any) -> EtcdSystem:
    """The system for a workload; its processes are the same."""
    options = LockWorkload.Options(sessions=False, lease_s=LEASE_S)
    return EtcdSystem.made(cluster, EtcdOptions(**more), workload, options)


async def ask(system: EtcdSystem, node: Node, *operations: tuple[str, Value]) -> list[Outcome]:
    """Carries out operations `(f, value)` on one key, one after the other, by one client."""
    key = f"{system.workload}-key"
    return await asked(system.client(1, node), (Invocation(f, value, key) for f, value in operations))


@pytest.mark.parametrize(("workload", "law"), conformance.cases(EtcdSystem.serves), ids=conformance.name)
def test_clients_keep_the_laws(cluster: LocalCluster, system: EtcdSystem, workload: str, law: conformance.Law) -> None:
    """Whichever node answers."""
    assert system.workload == "register"  # it runs the processes
    asyncio.run(law(conformance.Bench(nodes=cluster.nodes, client=system_of(cluster, workload).client)))


def test_transactions_of_all_nodes_act_on_the_same_keys(cluster: LocalCluster, system: EtcdSystem) -> None:
    """Appends through three nodes are all in both lists, in the same order, and a transaction reads its own writes."""
    assert system.workload == "register"  # it runs the processes
    assert_that_all_nodes_act_on_the_same_keys(system_of(cluster, "list-append"), cluster.nodes)


def test_a_watch_shows_each_append_once_in_order_and_goes_on_after_a_kill(
    cluster: LocalCluster, system: EtcdSystem
) -> None:
    """A reader goes on where it was: on the same watch, and after its node was killed, on a new one."""
    assert system.workload == "register"  # it runs the processes
    logs = system_of(cluster, "log")
    status = asyncio.run(first_status(system, cluster.nodes[0], 2.0))
    assert status is not None
    near, far = [node for node in cluster.nodes if node.name != status.leader]

    async def all_of_it() -> tuple[list[Value], list[Value]]:
        reader, writer = logs.client(1, near), logs.client(2, far)
        appended: list[Value] = []
        shown: list[Value] = []

        async def append(*values: int) -> None:
            for value in values:
                done = await writer.invoke(Invocation("append", value, "log"))
                assert isinstance(done, Ok)
                appended.append([done.value, value])

        async def read() -> None:
            first = shown[-1][0] + 1 if shown else 0
            for _ in range(100):
                done = await reader.invoke(Invocation("read", [first, first + 999], "log"))
                if isinstance(done, Ok):
                    shown.extend(done.value)
                    break

        try:
            await read()
            await append(1, 2)
            await read()
            await append(3)
            await read()
            await append(4)
            await asyncio.to_thread(system.kill, near)
            await append(5)
            await asyncio.to_thread(system.start, near)
            await read()
            middle = await reader.invoke(Invocation("read", [appended[1][0], appended[3][0]], "log"))
        finally:
            await reader.close()
            await writer.close()
        assert middle == Ok(appended[1:4])
        return appended, shown

    appended, shown = asyncio.run(all_of_it())
    assert shown == appended


@pytest.mark.parametrize("fencing", [True, False])
def test_a_lock_has_one_holder_until_its_release_or_the_end_of_its_lease(
    cluster: LocalCluster, system: EtcdSystem, *, fencing: bool
) -> None:
    """A second acquire fails, a stray release fails, and an acquire after the lease succeeds with a larger token."""
    assert system.workload == "register"  # it runs the processes
    locks = system_of(cluster, "lock", fencing=fencing)
    first, second, _ = cluster.nodes

    async def all_of_it() -> tuple[list[Outcome], Outcome, Outcome]:
        holder, other = locks.client(1, first), locks.client(2, second)
        key = f"lock-{fencing}"
        try:
            taken = await holder.invoke(Invocation("acquire", None, key))
            assert isinstance(taken, Ok)
            refused = await other.invoke(Invocation("acquire", None, key))
            stray = await other.invoke(Invocation("release", 1 if fencing else None, key))
            freed = await holder.invoke(Invocation("release", taken.value, key))
            again = await holder.invoke(Invocation("acquire", None, key))
            late: Outcome = Fail("not-tried")
            for _ in range(100):
                late = await other.invoke(Invocation("acquire", None, key))
                if not isinstance(late, Fail):
                    break
                await asyncio.sleep(LEASE_S / 10)
        finally:
            await holder.close()
            await other.close()
        return [refused, stray, without_order(freed)], again, late

    (refused, stray, freed), again, late = asyncio.run(all_of_it())
    assert refused == Fail("held: another client holds it")
    assert stray == Fail("not-held: the lock is free, or another client holds it")
    assert isinstance(freed, Ok)
    assert isinstance(again, Ok)
    assert isinstance(late, Ok)
    assert (late.value > again.value) if fencing else (late.value is None)


# For each row of the table: the request that etcd refuses with it.
REFUSED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "etcdserver: request is too large": ("kv/put", {"key": encoded("row"), "value": encoded("x" * TOO_LARGE)}),
    "etcdserver: duplicate key given in txn request": (
        "kv/txn",
        {"success": [{"requestPut": {"key": encoded("row"), "value": encoded(value)}} for value in ("1", "2")]},
    ),
    "etcdserver: requested lease not found": (
        "kv/put",
        {"key": encoded("row"), "value": encoded("1"), "lease": "4711"},
    ),
}


def test_each_row_of_the_table_is_what_etcd_answers_and_changes_nothing(
    cluster: LocalCluster, system: EtcdSystem
) -> None:
    """Each row names a request that etcd refuses with its message, and no node has the key afterwards."""
    assert system.workload == "register"  # it runs the processes
    assert set(REFUSED) == set(WRITE_NEVER_HAPPENED)

    async def all_of_it() -> int:
        gateway = Gateway(cluster.nodes[0].address)
        try:
            for message, (method, request) in REFUSED.items():
                with pytest.raises(Refused) as caught:
                    await gateway.call(method, request)
                assert caught.value.code == message
            return len((await gateway.call("kv/range", {"key": encoded("row")})).entries())
        finally:
            await gateway.close()

    assert asyncio.run(all_of_it()) == 0


def test_a_node_says_what_it_believes_and_a_transfer_moves_the_leadership(
    cluster: LocalCluster, system: EtcdSystem
) -> None:
    """All nodes name one leader in one term; after a transfer, the other node leads in a later term."""

    async def views() -> set[tuple[str | None, int | None]]:
        statuses = [await first_status(system, node, 2.0) for node in cluster.nodes]
        return {(status.leader, status.term) for status in statuses if status is not None}

    ((leader, term),) = asyncio.run(views())
    other = next(node for node in cluster.nodes if node.name != leader)
    assert asyncio.run(system.lead(other, 10.0))
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    ((new, later),) = asyncio.run(views())
    assert term is not None
    assert later is not None
    assert new == other.name
    assert later > term


def test_the_replicas_are_equal_at_one_revision(cluster: LocalCluster, system: EtcdSystem) -> None:
    """Every node dumps the same keys and values from its own state."""

    async def dumps() -> list[tuple[int | None, Any]]:
        await asyncio.sleep(0.5)  # followers apply the last write
        states = [await system.replica(node, 5.0) for node in cluster.nodes]
        return [(state.applied_index, state.state) for state in states if state is not None]

    first, *others = asyncio.run(dumps())
    assert len(others) == 2
    assert all(dump == first for dump in others)
    assert first[1]


def test_without_a_quorum_a_write_is_indeterminate_and_a_serializable_read_answers(
    cluster: LocalCluster, system: EtcdSystem
) -> None:
    """With two nodes gone: no connection is a `fail`, a write without an answer is `info`, and an old state can be read."""
    alive, *gone = cluster.nodes
    asyncio.run(ask(system, alive, ("write", 4)))
    on_all(gone, system.kill)
    old = system_of(cluster, "register", etcd_reads=Reads.SERIALIZABLE)

    async def all_of_it() -> tuple[Outcome, Outcome, Outcome, Outcome]:
        (unreachable,) = await ask(system, gone[0], ("write", 1))
        client = system.client(1, alive)
        try:
            written = await client.invoke(Invocation("write", 9, "register-key"))  # etcd gives up after seven seconds
            read = await client.invoke(Invocation("read", None, "register-key"))
        finally:
            await client.close()
        (stale,) = await ask(old, alive, ("read", None))
        return unreachable, written, read, stale

    try:
        unreachable, written, read, stale = asyncio.run(all_of_it())
    finally:
        on_all(gone, system.start)
    assert isinstance(unreachable, Fail)
    assert unreachable.error.startswith("not-connected")
    assert isinstance(written, Info)
    assert isinstance(read, Fail)
    assert stale == Ok(4)
