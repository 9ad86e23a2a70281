"""Three real bookies, ZooKeeper, auto-recovery and two clients: logs, ledgers, take-overs, outcomes, and a wiped bookie."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from clusters.kit import conformance
from clusters.systems.bookkeeper.options import BookKeeperOptions
from clusters.systems.bookkeeper.process import Process
from clusters.systems.bookkeeper.system import BookKeeperSystem
from clusters.systems.bookkeeper.tests.integration.bookkeeper_start import READY_S, start
from harness.cluster import on_all
from harness.faults import PlannedFault
from harness.op import Fail, Info, Invocation, Ok
from harness.targets import Named
from nemesis.conductor import Conductor
from tests.outcomes import asked
from tests.served import cluster_of
from workloads.ledger import LedgerOptions
from workloads.ledger.inspection import inspection_of
from workloads.log import LogOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.local import LocalCluster
    from harness.client import Client
    from harness.node import Node
    from harness.op import Outcome, Value

pytestmark = pytest.mark.integration

FENCED_MS = 60_000
COPIED_S = 30.0
OPTIONS = BookKeeperOptions(
    ensemble=2,
    write_quorum=2,
    ack_quorum=2,
    take_over=0,
    auto_recovery=1,
    auto_recovery_grace_ms=100,
    zookeeper_timeout_ms=2000,
)


cluster = cluster_of("BookKeeper", lambda: BookKeeperSystem.build(OPTIONS, print), nodes=5)


@pytest.fixture(scope="module")
def logs(cluster: LocalCluster) -> Iterator[BookKeeperSystem]:
    """BookKeeper for logs, serving."""
    made = BookKeeperSystem.made(cluster, OPTIONS, "log", LogOptions())
    start(made, cluster)
    yield made
    on_all(cluster.nodes, made.kill)


@pytest.fixture(scope="module")
def ledgers(cluster: LocalCluster, logs: BookKeeperSystem) -> BookKeeperSystem:
    """The same processes for ledgers."""
    made = BookKeeperSystem.made(cluster, OPTIONS, "ledger", LedgerOptions())
    made.artifact = logs.artifact
    return made


async def ask(
    system: BookKeeperSystem, node: int, key: str | None, *operations: tuple[str, Value], final: bool = False
) -> list[Outcome]:
    """Carries out operations `(f, value)` on one key, one after the other, by one client of a node."""
    client = system.client(1, system.cluster.nodes[node], pinned=final)
    return await asked(client, (Invocation(f, value, key) for f, value in operations))


@pytest.mark.night
def test_auto_recovery_copies_what_a_wiped_bookie_had(logs: BookKeeperSystem) -> None:
    """The metadata name the third bookie then, which has the entry, and the wiped one reports `writable` on its empty disk."""
    bookies = {f"{node.address}:3181": node.name for node in logs.cluster.nodes[:3]}

    async def named(process: Process, ledger: int) -> list[str]:
        """Returns the nodes that the metadata name for the entries."""
        metadata = await process.ask("metadata", ledger=ledger)
        return [bookies[bookie] for bookie in metadata["ensembles"]["0"]]

    async def all_of_it() -> None:
        process = Process(logs.cluster.nodes[3])
        ledger = await process.ask("create", ensemble=2, write=2, ack=2)
        assert await process.ask("append", ledger=ledger, body="kept") == 0
        assert await process.ask("close", ledger=ledger) == 0
        before = await named(process, ledger)
        wiped = next(node for node in logs.cluster.nodes[:3] if node.name in before)
        (spare,) = {*bookies.values()} - {*before}
        fault = PlannedFault(id=0, kind="wipe", target=Named((wiped.name,)), start_s=0.0, end_s=10.0, role="bookie")
        conductor = Conductor(cluster=logs.cluster, system=logs)
        await conductor.begin(fault)
        try:
            proof = await conductor.prove(fault)
            assert proof.effective, proof.reason
            assert await logs.service("bookie").statuses(wiped, 1.0) == ()
            async with asyncio.timeout(COPIED_S):
                while wiped.name in await named(process, ledger):  # noqa: ASYNC110 - another process changes it
                    await asyncio.sleep(0.2)
        finally:
            await conductor.end(fault)
        await logs.service("bookie").until_ready([wiped], READY_S)
        async with asyncio.timeout(READY_S):
            while not (statuses := await logs.service("bookie").statuses(wiped, 1.0)):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.1)
        assert [status.role for status in statuses] == ["writable"]
        assert {*await named(process, ledger)} == {*before} - {wiped.name} | {spare}
        copies = await process.ask("copies", ledger=ledger, first=0, last=0, bookies=[*bookies])
        await process.close()
        by_bookie = {bookies[bookie]: (body, in_metadata) for _, bookie, body, _, in_metadata in copies}
        assert by_bookie.pop(wiped.name) == (None, False)
        assert [*by_bookie.values()] == [("kept", True)] * 2

    asyncio.run(all_of_it())


@pytest.mark.parametrize(
    "law",
    [law for workload, law in conformance.cases(BookKeeperSystem.serves) if workload == "log"],
    ids=conformance.name,
)
def test_clients_of_logs_keep_the_laws(logs: BookKeeperSystem, law: conformance.Law) -> None:
    """With reads from all bookies: another read lacks the last entry until the next one is there."""

    def client(process: int, node: Node) -> Client:
        return logs.client(process, node, pinned=True)

    asyncio.run(law(conformance.Bench(nodes=logs.service("client").nodes, client=client)))


def test_a_log_goes_on_after_its_writer_was_killed(logs: BookKeeperSystem) -> None:
    """The process of the other node recovers the first ledger, and appends to a second one; nothing is lost."""
    last = logs.cluster.nodes[-1]

    async def all_of_it() -> list[Outcome]:
        outcomes = await ask(logs, 4, None, ("append", 7), ("append", 8))
        await asyncio.to_thread(logs.kill, last, "client")
        outcomes += await ask(logs, 3, None, ("append", 9), ("append", 10), ("read", [0, 1999]))
        await asyncio.to_thread(logs.start, last, "client")
        await logs.service("client").until_ready([last], READY_S)
        return outcomes + await ask(logs, 4, None, ("read", [0, 999]), ("read", [1000, 1999]), final=True)

    *first, refused, second, read, old, new = asyncio.run(all_of_it())
    assert first == [Ok(0), Ok(1)]
    assert isinstance(refused, Fail)
    assert refused.error.startswith("not-connected: ")
    assert second == Ok(1000)
    assert read in (Ok([[0, 7], [1, 8]]), Ok([[0, 7], [1, 8], [1000, 10]]))  # the last entry may not be confirmed yet
    assert (old, new) == (Ok([[0, 7], [1, 8]]), Ok([[1000, 10]]))


@pytest.mark.parametrize(
    "law",
    [law for workload, law in conformance.cases(BookKeeperSystem.serves) if workload == "ledger"],
    ids=conformance.name,
)
def test_clients_of_ledgers_keep_the_laws(ledgers: BookKeeperSystem, law: conformance.Law) -> None:
    """By the client processes of both nodes."""
    asyncio.run(law(conformance.Bench(nodes=ledgers.service("client").nodes, client=ledgers.client)))


def test_a_recovery_fences_the_writer(ledgers: BookKeeperSystem) -> None:
    """Its next append is refused by the bookies, the one after by the library; both are info. Recoveries agree on the end."""

    async def all_of_it() -> list[Outcome]:
        outcomes = await ask(ledgers, 3, "l0", ("confirmed", None), ("append", 7), ("append", 8))
        outcomes += await ask(ledgers, 4, "l0", ("confirmed", None), ("recover", None))
        outcomes += await ask(ledgers, 3, "l0", ("append", 9), ("append", 10), ("recover", None))
        return outcomes + await ask(ledgers, 3, "l0", ("read", [0, 9]), ("inspect", None), final=True)

    absent, *before, fenced, closed, again, read, inspected = asyncio.run(all_of_it())
    assert isinstance(absent, Fail)
    assert absent.error.startswith("no-ledger: ")
    assert before == [Ok(0), Ok(1), Ok(0), Ok(1)]
    assert isinstance(fenced, Info)
    assert fenced.error.startswith("ledger-fenced: ")
    assert isinstance(closed, Info)
    assert closed.error.startswith("ledger-closed: ")
    assert (again, read) == (Ok(1), Ok([[0, 7], [1, 8]]))
    assert isinstance(inspected, Ok)
    inspection = inspection_of(inspected.value)
    assert inspection is not None
    ((_, ensemble),) = inspection.fragments
    assert (inspection.state, inspection.last, inspection.write, inspection.ack, inspection.unread) == (
        "CLOSED",
        1,
        2,
        2,
        [],
    )
    assert [(value, sorted(names)) for copies in inspection.entries.values() for value, names in copies.values] == [
        (7, sorted(ensemble)),
        (8, sorted(ensemble)),
    ]
    assert {(fence.bookie, fence.by) for fence in inspection.fences} == {(bookie, "n5") for bookie in ensemble}
    assert all(fence.ago_ms < FENCED_MS for fence in inspection.fences)


def test_metadata_name_the_bookies_of_each_fragment(logs: BookKeeperSystem) -> None:
    """The one fragment of a new ledger begins at entry 0, and has two of the three bookies."""

    async def all_of_it() -> object:
        process = Process(logs.cluster.nodes[3])
        try:
            ledger = await process.ask("create", ensemble=2, write=2, ack=2)
            return await process.ask("metadata", ledger=ledger)
        finally:
            await process.close()

    metadata = asyncio.run(all_of_it())
    bookies = {f"{node.address}:3181" for node in logs.cluster.nodes[:3]}
    assert isinstance(metadata, dict)
    assert (metadata["state"], metadata["ackQuorum"], list(metadata["ensembles"])) == ("OPEN", 2, ["0"])
    assert len({*metadata["ensembles"]["0"]} & bookies) == len(metadata["ensembles"]["0"]) == 2


def test_a_writer_closes_its_ledger_and_one_bookie_alone_takes_no_entry(ledgers: BookKeeperSystem) -> None:
    """A closed ledger has its end. With one bookie of three, a ledger of two takes no entry and none can be created."""
    bookies = ledgers.cluster.nodes[:2]

    async def all_of_it() -> tuple[list[Outcome], list[Outcome]]:
        closed = await ask(ledgers, 3, "l1", ("append", 7), ("close", None), ("confirmed", None), ("close", None))
        await asyncio.to_thread(
            on_all, bookies, lambda node: ledgers.kill(node, "bookie")
        )  # for good: it is the last test
        return closed, await ask(ledgers, 4, "l2", ("append", 7))

    (appended, end, confirmed, again), (refused,) = asyncio.run(all_of_it())
    assert (appended, end, confirmed) == (Ok(0), Ok(0), Ok(0))
    assert isinstance(again, Fail)
    assert again.error.startswith("no-handle: ")
    assert isinstance(refused, (Fail, Info))
    assert refused.error.split(":")[0] in {"not-enough-bookies", "bookie-not-available"}
