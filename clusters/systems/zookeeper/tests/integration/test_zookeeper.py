"""Three real nodes of ZooKeeper: the operations of each workload, each row of the table of outcomes, status, replicas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit import conformance
from clusters.kit.answers import RefusedByCode
from clusters.systems.zookeeper.clients import EPHEMERAL, SEQUENCE
from clusters.systems.zookeeper.connection import Connection
from clusters.systems.zookeeper.options import Reads, ZooKeeperOptions
from clusters.systems.zookeeper.outcomes import WRITE_NEVER_HAPPENED
from clusters.systems.zookeeper.system import ZooKeeperSystem
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

READY_S = 60.0
SESSION_MS = 4000
TRIES = 5


cluster = cluster_of("ZooKeeper", lambda: ZooKeeperSystem.build(ZooKeeperOptions(), print))


@pytest.fixture(scope="module")
def system(cluster: LocalCluster) -> Iterator[ZooKeeperSystem]:
    """ZooKeeper, serving on all nodes."""
    made = system_of(cluster, "register")
    made.artifact = ZooKeeperSystem.build(ZooKeeperOptions(), print)
    with serving(made, cluster.nodes, READY_S):
        yield made


def system_of(cluster: LocalCluster, workload: str, **more: Any) -> ZooKeeperSystem:
    """The system for a workload; its processes are the same."""
    return ZooKeeperSystem.made(cluster, ZooKeeperOptions(**more), workload, LockWorkload.Options())


async def ask(system: ZooKeeperSystem, node: Node, *operations: tuple[str, Value]) -> list[Outcome]:
    """Carries out operations `(f, value)` on one key, one after the other, by one client."""
    key = f"{system.workload}-key"
    return await asked(system.client(1, node), (Invocation(f, value, key) for f, value in operations))


@pytest.mark.parametrize("reads", [Reads.SYNC, Reads.QUORUM])
@pytest.mark.parametrize(("workload", "law"), conformance.cases(ZooKeeperSystem.serves), ids=conformance.name)
def test_clients_keep_the_laws(
    cluster: LocalCluster, system: ZooKeeperSystem, workload: str, law: conformance.Law, reads: Reads
) -> None:
    """Whichever node answers."""
    assert system.workload == "register"  # it runs the processes
    client = system_of(cluster, workload, zookeeper_reads=reads).client
    asyncio.run(law(conformance.Bench(nodes=cluster.nodes, client=client)))


def test_transactions_of_all_nodes_act_on_the_same_keys(cluster: LocalCluster, system: ZooKeeperSystem) -> None:
    """Appends through three nodes are all in both lists, in the same order, and a transaction reads its own writes."""
    assert system.workload == "register"  # it runs the processes
    assert_that_all_nodes_act_on_the_same_keys(system_of(cluster, "list-append"), cluster.nodes)


@pytest.mark.parametrize("fencing", [True, False])
def test_a_lock_has_one_holder_until_its_release_or_the_end_of_its_session(
    cluster: LocalCluster, system: ZooKeeperSystem, *, fencing: bool
) -> None:
    """A second acquire fails, a stray release fails, and an acquire after the end of the session has a larger token."""
    assert system.workload == "register"  # it runs the processes
    locks = system_of(cluster, "lock", fencing=fencing)
    first, second, _ = cluster.nodes

    async def all_of_it() -> tuple[list[Outcome], Outcome, Outcome]:
        holder, other = locks.client(1, first), locks.client(2, second)
        acquire = Invocation("acquire", None, f"lock-{fencing}")
        try:
            taken = await holder.invoke(acquire)
            assert isinstance(taken, Ok)
            refused = await other.invoke(acquire)
            stray = await other.invoke(acquire._replace(f="release", value=taken.value))
            freed = await holder.invoke(acquire._replace(f="release", value=taken.value))
            again = await holder.invoke(acquire)
            await holder.close()
            late: Outcome = Fail("not-tried")
            async with asyncio.timeout(10):
                while isinstance(late, Fail):
                    late = await other.invoke(acquire)
        finally:
            await holder.close()
            await other.close()
        return [refused, stray, without_order(freed)], again, late

    (refused, stray, freed), again, late = asyncio.run(all_of_it())
    assert refused == Fail("held: another client holds it")
    assert stray == Fail("not-held: this client has no child with this token")
    assert isinstance(freed, Ok)
    assert isinstance(again, Ok)
    assert isinstance(late, Ok)
    assert (late.value > again.value) if fencing else (late.value is None)


def test_each_row_of_the_table_is_what_zookeeper_answers_and_changes_nothing(
    cluster: LocalCluster, system: ZooKeeperSystem
) -> None:
    """Each row names an error with which ZooKeeper refuses a change, and the tree is the same afterwards."""
    from kazoo.protocol.serialization import Create, Delete, GetChildren, SetData  # noqa: PLC0415 - an extra
    from kazoo.security import OPEN_ACL_UNSAFE  # noqa: PLC0415

    assert system.workload == "register"  # it runs the processes
    requests: Mapping[int, Any] = {
        -8: Create("no-slash", b"", OPEN_ACL_UNSAFE, 0),
        -101: SetData("/rows/absent", b"", -1),
        -103: SetData("/rows", b"new", 7),
        -108: Create("/rows/ephemeral/child", b"", OPEN_ACL_UNSAFE, 0),
        -110: Create("/rows", b"", OPEN_ACL_UNSAFE, SEQUENCE - 2),
        -111: Delete("/rows", -1),
        -114: Create("/rows/unowned", b"", [], 0),
    }
    assert set(requests) == set(WRITE_NEVER_HAPPENED)

    async def all_of_it() -> list[str]:
        connection = Connection(cluster.nodes[0].address, session_ms=SESSION_MS)
        try:
            await connection.call(Create("/rows", b"old", OPEN_ACL_UNSAFE, 0))
            await connection.call(Create("/rows/ephemeral", b"", OPEN_ACL_UNSAFE, EPHEMERAL))
            for code, request in requests.items():
                with pytest.raises(RefusedByCode) as caught:
                    await connection.call(request)
                assert caught.value.code == code
            return list(await connection.call(GetChildren("/rows", False)))  # noqa: FBT003
        finally:
            await connection.close()

    assert asyncio.run(all_of_it()) == ["ephemeral"]
    assert -118 not in WRITE_NEVER_HAPPENED  # a session that moved


def test_one_node_leads_in_an_epoch_and_the_replicas_are_equal(cluster: LocalCluster, system: ZooKeeperSystem) -> None:
    """One node says that it leads, all have applied changes of its epoch, and they dump the same znodes."""

    async def views() -> tuple[list[tuple[str, int | None]], list[Any]]:
        await asyncio.sleep(0.5)  # followers apply the last write
        statuses = [await first_status(system, node, 2.0) for node in cluster.nodes]
        states = [await system.replica(node, 5.0) for node in cluster.nodes]
        return [(status.role, status.term) for status in statuses if status is not None], [
            state.state for state in states if state is not None
        ]

    roles, states = asyncio.run(views())
    assert sorted(role for role, _ in roles) == ["follower", "follower", "leader"]
    assert {term for _, term in roles} == {1}
    assert len(states) == 3
    assert states[0]
    assert all(state == states[0] for state in states)


def test_without_a_quorum_a_write_is_indeterminate_and_nobody_connects(
    cluster: LocalCluster, system: ZooKeeperSystem
) -> None:
    """A write that is under way when the others die is `info`; afterwards no node gives a session, which is a `fail`.

    A node gives up two seconds after it has lost the others. If the pause takes as long, there is another try.
    """
    alive, *gone = cluster.nodes

    async def all_of_it() -> tuple[Outcome, Outcome, Outcome]:
        client = system.client(1, alive)
        try:
            await client.invoke(Invocation("write", 8, "register-key"))
            await asyncio.to_thread(on_all, gone, system.pause)
            waiting = asyncio.create_task(client.invoke(Invocation("write", 9, "register-key")))
            await asyncio.sleep(0.3)
            await asyncio.to_thread(on_all, gone, system.kill)
            written = await waiting
            refused_session = await client.invoke(Invocation("write", 10, "register-key"))
            (unreachable,) = await ask(system, gone[0], ("read", None))
        finally:
            await client.close()
        return written, refused_session, unreachable

    for _ in range(TRIES):
        try:
            written, refused_session, unreachable = asyncio.run(all_of_it())
        finally:
            on_all(gone, system.start)
        assert not isinstance(written, Ok)
        if isinstance(written, Info):
            break
        asyncio.run(system.until_ready(cluster.nodes, READY_S))
    assert isinstance(written, Info)
    assert written.error.startswith("no-answer")
    for outcome in (refused_session, unreachable):
        assert isinstance(outcome, Fail)
        assert outcome.error.startswith("not-connected")
