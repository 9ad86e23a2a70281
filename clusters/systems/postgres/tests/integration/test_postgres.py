"""A real primary of PostgreSQL and a hot standby: transactions, conflicts, a kill, what a standby answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit import conformance
from clusters.kit.answers import Refused
from clusters.systems.postgres.connection import Connection
from clusters.systems.postgres.options import Asks, PostgresOptions
from clusters.systems.postgres.outcomes import ROLLED_BACK
from clusters.systems.postgres.system import PACKAGES, PostgresSystem
from harness import readiness
from harness.op import Invocation, Ok
from tests.outcomes import asked
from tests.served import cluster_of, serving
from workloads.transactions.workload import ListAppendWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.local import LocalCluster
    from harness.op import Outcome, Value

pytestmark = pytest.mark.integration

READY_S = 60.0


cluster = cluster_of("PostgreSQL", PACKAGES.fetch, nodes=2)


@pytest.fixture(scope="module")
def system(cluster: LocalCluster) -> Iterator[PostgresSystem]:
    """A primary and a standby, serving."""
    made = system_of(cluster, "list-append")
    with serving(made, cluster.nodes, READY_S):
        yield made


def system_of(cluster: LocalCluster, workload: str, **more: Any) -> PostgresSystem:
    """The system for a workload; its processes are the same."""
    return PostgresSystem.made(cluster, PostgresOptions(**more), workload, ListAppendWorkload.Options())


async def transact(system: PostgresSystem, *transactions: list[list[Value]]) -> list[Outcome]:
    """Carries out transactions one after the other, by one client."""
    client = system.client(1, system.front().nodes[0])
    return await asked(client, (Invocation("txn", mops) for mops in transactions))


@pytest.mark.parametrize(("workload", "law"), conformance.cases(PostgresSystem.serves), ids=conformance.name)
def test_clients_keep_the_laws(
    cluster: LocalCluster, system: PostgresSystem, workload: str, law: conformance.Law
) -> None:
    """All ask the primary."""
    assert system.workload == "list-append"  # it runs the processes
    nodes = system.front().nodes
    asyncio.run(law(conformance.Bench(nodes=nodes, client=system_of(cluster, workload).client)))


def test_quotes_in_a_key_are_no_sql(system: PostgresSystem) -> None:
    """They are part of the name of its row."""
    assert asyncio.run(transact(system, [["append", "a'", 1], ["r", "a'", None]])) == [
        Ok([["append", "a'", 1], ["r", "a'", [1]]])
    ]


def test_each_row_of_the_table_is_what_postgresql_answers(cluster: LocalCluster, system: PostgresSystem) -> None:
    """A write skew is a conflict at level serializable, and two locks in two orders are a deadlock; nothing stays."""
    assert system.workload == "list-append"  # it runs the processes
    address = cluster.nodes[0].address

    async def race(level: str, first: list[str], second: list[str]) -> str | None:
        sessions = [Connection(address), Connection(address)]
        try:
            for session in sessions:
                await session.query(f"BEGIN ISOLATION LEVEL {level}")
            await sessions[0].query(first[0])
            await sessions[1].query(second[0])
            last = sessions[0].query(first[1]), sessions[1].query(second[1])
            done: list[object] = [*await asyncio.gather(*last, return_exceptions=True)]
            commits = (session.query("COMMIT") for session in sessions)
            done += await asyncio.gather(*commits, return_exceptions=True)
        finally:
            for session in sessions:
                await session.close()
        return next((outcome.code for outcome in done if isinstance(outcome, Refused)), None)

    def put(key: str) -> str:
        return f"INSERT INTO labrys VALUES ('{key}', '1') ON CONFLICT (key) DO UPDATE SET value = '2'"  # noqa: S608 - of this test

    def get(key: str) -> str:
        return f"SELECT value FROM labrys WHERE key = '{key}'"  # noqa: S608

    async def all_of_it() -> list[str | None]:
        await race("READ COMMITTED", [put("x"), get("y")], [put("y"), get("x")])
        return [
            await race("SERIALIZABLE", [get("x"), put("y")], [get("y"), put("x")]),
            await race("READ COMMITTED", [put("x"), put("y")], [put("y"), put("x")]),
        ]

    codes = asyncio.run(all_of_it())
    assert codes == ["40001", "40P01"]
    assert set(codes) <= set(ROLLED_BACK)


def test_a_commit_survives_a_kill_and_a_standby_has_it_later(cluster: LocalCluster, system: PostgresSystem) -> None:
    """The primary ends with all of its sessions, and a standby answers reads meanwhile."""
    reads = system_of(cluster, "list-append", reads_from=Asks.STANDBY)
    primary, standby = cluster.nodes

    async def until_there(key: str) -> None:
        for _ in range(200):
            if await transact(reads, [["r", key, None]]) == [Ok([["r", key, [7]]])]:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"the standby never got {key}")

    async def all_of_it() -> tuple[list[Outcome], list[Outcome], list[Outcome], list[Outcome]]:
        kept = await transact(system, [["append", "k", 7]])
        await until_there("k")
        await asyncio.to_thread(system.kill, primary)
        late = await transact(reads, [["r", "k", None]])
        refused = await transact(reads, [["append", "k", 8]])
        await asyncio.to_thread(system.start, primary)
        await readiness.until_ready(system, READY_S)
        again = await transact(system, [["r", "k", None], ["append", "k2", 7]])
        await until_there("k2")
        return kept, late, refused, again

    kept, late, [refused], again = asyncio.run(all_of_it())
    assert kept == [Ok([["append", "k", 7]])]
    assert late == [Ok([["r", "k", [7]]])]
    assert str(getattr(refused, "error", "")).startswith("not-connected")
    assert again == [Ok([["r", "k", [7]], ["append", "k2", 7]])]
    [status] = asyncio.run(system.services()[1].statuses(standby, 2.0))
    assert status.role == "follower"
    assert status.applied_index
