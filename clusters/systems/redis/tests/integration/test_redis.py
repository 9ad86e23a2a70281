"""Three real servers of Redis with three sentinels: the operations of each workload, the table of outcomes, a failover."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit import conformance
from clusters.kit.answers import Refused
from clusters.systems.redis import client as redis_client
from clusters.systems.redis.connection import Connection
from clusters.systems.redis.options import Asks, QueueBy, RedisOptions, TransactionsBy
from clusters.systems.redis.outcomes import WRITE_NEVER_HAPPENED
from clusters.systems.redis.system import PACKAGES, RedisSystem
from harness import readiness
from harness.op import Fail, Info, Invocation, Ok
from harness.service import first_status
from tests.served import cluster_of, serving
from workloads.lock.workload import LockWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.local import LocalCluster
    from harness.node import Node
    from harness.op import Outcome, Value

pytestmark = pytest.mark.integration

READY_S = 60.0
LEASE_S = 0.5


cluster = cluster_of("Redis", PACKAGES.fetch)


@pytest.fixture(scope="module")
def system(cluster: LocalCluster) -> Iterator[RedisSystem]:
    """Servers and sentinels, serving."""
    made = system_of(cluster, "register")
    with serving(made, cluster.nodes, READY_S):
        yield made


def system_of(cluster: LocalCluster, workload: str, **more: Any) -> RedisSystem:
    """The system for a workload; its processes are the same."""
    return RedisSystem.made(
        cluster, RedisOptions(**more), workload, LockWorkload.Options(sessions=False, lease_s=LEASE_S)
    )


async def ask(system: RedisSystem, node: Node, *operations: tuple[str, Value], pinned: bool = False) -> list[Outcome]:
    """Carries out operations `(f, value)` on one key, one after the other, by one client."""
    client = system.client(1, node, pinned=pinned)
    try:
        return [await client.invoke(Invocation(f, value, f"{system.workload}-key")) for f, value in operations]
    finally:
        await client.close()


@pytest.mark.parametrize(("workload", "law"), conformance.cases(RedisSystem.serves), ids=conformance.name)
def test_clients_keep_the_laws(cluster: LocalCluster, system: RedisSystem, workload: str, law: conformance.Law) -> None:
    """Clients of all nodes find the master."""
    assert system.workload == "register"  # it runs the processes
    asyncio.run(law(conformance.Bench(nodes=cluster.nodes, client=system_of(cluster, workload).client)))


def test_a_transaction_is_one_script_or_several_commands(cluster: LocalCluster, system: RedisSystem) -> None:
    """Reads of a transaction see its own writes, keys hold lists or values, and absent keys are null."""
    assert system.workload == "register"  # it runs the processes
    node = cluster.nodes[1]

    async def all_of_it(by: TransactionsBy) -> list[Outcome]:
        lists = system_of(cluster, "list-append", transactions_by=by)
        registers = system_of(cluster, "rw-register", transactions_by=by)
        appends = [["r", f"{by}", None], ["append", f"{by}", 1], ["append", f"{by}", 2], ["r", f"{by}", None]]
        writes = [["w", "a", 5], ["r", "a", None], ["r", "b", None]]
        return [*await ask(lists, node, ("txn", appends)), *await ask(registers, node, ("txn", writes))]

    for by in TransactionsBy:
        assert asyncio.run(all_of_it(by)) == [
            Ok([["r", f"{by}", []], ["append", f"{by}", 1], ["append", f"{by}", 2], ["r", f"{by}", [1, 2]]]),
            Ok([["w", "a", 5], ["r", "a", 5], ["r", "b", None]]),
        ]


def test_a_stream_delivers_again_what_nobody_acknowledged(
    cluster: LocalCluster, system: RedisSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values leave a stream in their order; a consumer that is gone leaves its value to others, and to a drain."""
    assert system.workload == "register"  # it runs the processes
    monkeypatch.setattr(redis_client, "IDLE_MS", 300)
    queue = system_of(cluster, "queue", queue_by=QueueBy.STREAM)
    node = cluster.nodes[0]
    key = "queue-stream"

    async def all_of_it() -> tuple[list[Outcome], list[Outcome]]:
        client = queue.client(1, node)

        async def ask_each(*operations: tuple[str, Value]) -> list[Outcome]:
            return [await client.invoke(Invocation(f, value, key)) for f, value in operations]

        try:
            first = await ask_each(
                ("dequeue", None), ("enqueue", "a"), ("enqueue", 2), ("enqueue", [3]), ("enqueue", 4), ("dequeue", None)
            )
            gone = Connection(node.address)
            await gone.call("XREADGROUP", "GROUP", redis_client.GROUP, "gone", "COUNT", 2, "STREAMS", key, ">")
            await gone.close()
            later = await ask_each(("dequeue", None), ("dequeue", None))
            await asyncio.sleep(0.4)
            later += await ask_each(
                ("dequeue", None), ("drain", None), ("dequeue", None), ("enqueue", 5), ("dequeue", None)
            )
        finally:
            await client.close()
        return first, later

    first, later = asyncio.run(all_of_it())
    empty = Fail("empty: the queue has no value that no other consumer has")
    assert first == [empty, Ok("a"), Ok(2), Ok([3]), Ok(4), Ok("a")]
    assert later == [Ok(4), empty, Ok(2), Ok([[3]]), empty, Ok(5), Ok(5)]


@pytest.mark.parametrize("fencing", [True, False])
def test_a_lock_has_one_holder_until_its_release_or_the_end_of_its_lease(
    cluster: LocalCluster, system: RedisSystem, *, fencing: bool
) -> None:
    """A second acquire fails, a stray release fails, and an acquire after the lease succeeds with a larger token."""
    assert system.workload == "register"  # it runs the processes
    locks = system_of(cluster, "lock", fencing=fencing)
    first, second, _ = cluster.nodes
    key = f"lock-{fencing}"

    async def all_of_it() -> list[Outcome]:
        holder, other = locks.client(1, first), locks.client(2, second)
        try:
            taken = await holder.invoke(Invocation("acquire", None, key))
            assert isinstance(taken, Ok)
            refused = await other.invoke(Invocation("acquire", None, key))
            stray = await other.invoke(Invocation("release", taken.value, key))
            freed = await holder.invoke(Invocation("release", taken.value, key))
            again = await holder.invoke(Invocation("acquire", None, key))
            await asyncio.sleep(LEASE_S + 0.2)
            return [refused, stray, freed, again, await other.invoke(Invocation("acquire", None, key))]
        finally:
            await holder.close()
            await other.close()

    refused, stray, freed, again, late = asyncio.run(all_of_it())
    assert refused == Fail("held: another client holds it")
    assert stray == Fail("not-held: the lock is free, or another client holds it")
    assert isinstance(freed, Ok)
    assert isinstance(again, Ok)
    assert isinstance(late, Ok)
    assert (late.value > again.value) if fencing else (late.value is None)


def test_each_row_of_the_table_is_what_redis_answers_and_changes_nothing(
    cluster: LocalCluster, system: RedisSystem
) -> None:
    """Redis refuses a write with each code of the table, and the key keeps its value."""
    assert system.workload == "register"  # it runs the processes

    async def refusal(connection: Connection, *words: str | int) -> str:
        with pytest.raises(Refused) as caught:
            await connection.call(*words)
        return caught.value.code

    async def all_of_it() -> set[str]:
        statuses = {node.name: await first_status(system.front(), node, 2.0) for node in cluster.nodes}
        roles = {name: status.role for name, status in statuses.items() if status is not None}
        master = Connection(next(node.address for node in cluster.nodes if roles[node.name] == "leader"))
        replica = Connection(next(node.address for node in cluster.nodes if roles[node.name] == "follower"))
        refusals = set()
        try:
            await master.call("SET", "row", "before")
            refusals.add(await refusal(replica, "SET", "row", "after"))
            refusals.add(await refusal(master, "SADD", "row", "after"))
            refusals.add(await refusal(master, "XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", "none", ">"))
            await master.call("CONFIG", "SET", "min-replicas-to-write", 8)
            refusals.add(await refusal(master, "SET", "row", "after"))
            await master.call("CONFIG", "SET", "min-replicas-to-write", 0)
            await replica.call("CONFIG", "SET", "replica-serve-stale-data", "no")
            await replica.call("REPLICAOF", "127.0.0.2", 1)  # no server is there
            refusals.add(await refusal(replica, "GET", "row"))
            await replica.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
            assert await master.call("GET", "row") == "before"
        finally:
            await master.close()
            await replica.close()
        return refusals

    assert asyncio.run(all_of_it()) == set(WRITE_NEVER_HAPPENED)


def test_a_failover_loses_what_no_replica_had(cluster: LocalCluster, system: RedisSystem) -> None:
    """After the master is killed, a client finds another one, and `--replicas-acknowledge` says what a replica has."""
    asyncio.run(readiness.until_ready(system, READY_S))
    careful = system_of(cluster, "register", replicas_acknowledge=2)
    leaders = {
        status.node
        for node in cluster.nodes
        if (status := asyncio.run(first_status(system.front(), node, 2.0))) is not None and status.role == "leader"
    }
    (master,) = leaders
    killed = next(node for node in cluster.nodes if node.name == master)

    async def all_of_it() -> tuple[Outcome, list[Outcome]]:
        (kept,) = await ask(careful, killed, ("write", 7))
        await asyncio.to_thread(system.kill, killed, "redis")
        client = careful.client(1, killed)
        seen: list[Outcome] = []
        try:
            async with asyncio.timeout(30):
                while not seen or not isinstance(seen[-1], Ok):
                    seen.append(await client.invoke(Invocation("read", None, "register-key")))
            seen.append(await client.invoke(Invocation("write", 8, "register-key")))
        finally:
            await client.close()
        return kept, seen

    try:
        kept, (*refusals, read, written) = asyncio.run(all_of_it())
    finally:
        system.start(killed, "redis")
    assert kept == Ok(7)
    assert refusals
    assert all(isinstance(refusal, Fail) for refusal in refusals)
    assert read == Ok(7)
    assert written == Info("not-acknowledged: 1 of 2 replicas have it")


def test_a_pinned_client_reads_from_its_own_replica(cluster: LocalCluster, system: RedisSystem) -> None:
    """With `--asks own`, and in the final reads, a replica answers reads itself and refuses writes."""
    asyncio.run(readiness.until_ready(system, READY_S))
    own = system_of(cluster, "register", asks=Asks.OWN)
    outcomes = [asyncio.run(ask(own, node, ("read", None), ("write", 9))) for node in cluster.nodes]
    writes = [write for _, write in outcomes]
    assert sum(isinstance(write, Ok) for write in writes) == 1
    assert sum(isinstance(write, Fail) and write.error.startswith("read-only: ") for write in writes) == 2
