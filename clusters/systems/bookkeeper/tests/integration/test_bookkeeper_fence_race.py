"""A finding in BookKeeper (`findings`): an append passes the fence, if both are the first requests for their ledger."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from clusters.kit.answers import RefusedByCode
from clusters.kit.stored import entry_body
from clusters.systems.bookkeeper.bookies import BOOKIE
from clusters.systems.bookkeeper.fences import Fences
from clusters.systems.bookkeeper.options import BookKeeperOptions
from clusters.systems.bookkeeper.process import Process
from clusters.systems.bookkeeper.reads import inspected
from clusters.systems.bookkeeper.system import BookKeeperSystem
from clusters.systems.bookkeeper.tests.integration.bookkeeper_start import serving_ledgers
from clusters.systems.bookkeeper.tests.integration.test_bookkeeper_findings import ask
from nemesis import threadholds
from tests.held_threads import HeldThreads
from tests.unit.workloads.logs import in_turn
from workloads.ledger import LedgerWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clusters.local import LocalCluster
    from clusters.systems.bookkeeper.system import BookKeeperSystem
    from harness.node import Node

pytestmark = [pytest.mark.integration, pytest.mark.night]

KEY = "l0"
VALUE = 10
PORT = 9390
BETWEEN = (
    "org.apache.bookkeeper.bookie.HandleFactoryImpl.getHandle:63"  # it has made a descriptor, and has not stored it
)
FENCES = "org.apache.bookkeeper.bookie.LedgerDescriptorImpl.fenceAndLogInJournal:93"  # the ledger is not fenced yet
CHECKED = (
    "org.apache.bookkeeper.bookie.BookieImpl.addEntry:1103"  # the ledger is not fenced, and the entry is not added yet
)
BLOCKED_S = 3.0
ENDED_S = 30.0
HEALTHY_S = 90.0
OPTIONS = BookKeeperOptions(
    ensemble=2, write_quorum=2, ack_quorum=2, zookeeper_apart=True, client_nodes=2, zookeeper_timeout_ms=30_000
)


@pytest.fixture
def system() -> Iterator[BookKeeperSystem]:
    """ZooKeeper at n1, bookies at n2 and n3, and client processes at n4 and n5, serving. n2 has a debugger."""

    def with_debugger(cluster: LocalCluster) -> None:
        threadholds.prepare(cluster.remote(cluster.nodes[1]), {BOOKIE: PORT})

    with serving_ledgers("bookkeeper-fence", OPTIONS, nodes=5, before=with_debugger) as made:
        yield made


def body(entry: int) -> str:
    """Returns the body of an entry."""
    return entry_body(KEY, VALUE + entry).decode()


async def created(writer: Node) -> int:
    """Creates a ledger as soon as the writer takes both bookies for healthy."""
    async with asyncio.timeout(HEALTHY_S):
        while True:
            with contextlib.suppress(RefusedByCode):
                return int(await ask(writer, "create", ensemble=2, write=2, ack=2))
            await asyncio.sleep(1)


async def inspection(system: BookKeeperSystem, reader: Node, bookies: Sequence[Node], ledger: int) -> Any:
    """Asks all bookies for all entries."""
    process = Process(reader)
    try:
        names = {f"{node.address}:3181": node.name for node in bookies}
        return await inspected(process, KEY, ledger, names, Fences(system, bookies))
    finally:
        await process.close()


async def race(system: BookKeeperSystem, threads: HeldThreads) -> list[tuple[str, Any, Any]]:
    """Lets the append of entry 0 and a recovery race at n2. Returns what clients were told, as operations."""
    first, second, writer, other = system.cluster.nodes[1:]
    ledger = await created(writer)
    between = threads.at(BETWEEN)
    append = asyncio.create_task(ask(writer, "append", ledger=ledger, body=body(0)))
    adding = await threads.next(between)
    await asyncio.sleep(1)  # n3 has the entry, and has answered
    await asyncio.to_thread(system.pause, second, BOOKIE)
    recovery = asyncio.create_task(ask(other, "recover", name=KEY, ledger=ledger))
    fencing = await threads.next(between)
    threads.no_more_at(between)
    fences = threads.at(FENCES)
    threads.go_on(fencing)  # first, so the bookie keeps its descriptor: reads of a recovery fence too
    fencing = await threads.next(fences)
    threads.no_more_at(fences)
    checked = threads.at(CHECKED)
    threads.go_on(adding)
    adding = await threads.next(checked)
    threads.no_more_at(checked)
    threads.go_on(fencing)
    async with asyncio.timeout(ENDED_S):
        last = await recovery
        assert not append.done()
        threads.go_on(adding)
        acknowledged = await append
    await asyncio.to_thread(system.resume, second, BOOKIE)
    answer = await inspection(system, other, [first, second], ledger)
    return [("recover", None, last), ("append", VALUE, acknowledged), ("inspect", None, answer)]


async def no_race(system: BookKeeperSystem, threads: HeldThreads) -> tuple[bool, int, int]:
    """The same with entry 1, so the bookie has a descriptor.

    Returns whether the recovery waited, its last entry, and that of the append.
    """
    _, second, writer, other = system.cluster.nodes[1:]
    ledger = await created(writer)
    assert await ask(writer, "append", ledger=ledger, body=body(0)) == 0
    checked = threads.at(CHECKED)
    append = asyncio.create_task(ask(writer, "append", ledger=ledger, body=body(1)))
    adding = await threads.next(checked)
    await asyncio.sleep(1)
    await asyncio.to_thread(system.pause, second, BOOKIE)
    recovery = asyncio.create_task(ask(other, "recover", name=KEY, ledger=ledger))
    await asyncio.sleep(BLOCKED_S)
    waited = not recovery.done()
    threads.no_more_at(checked)
    threads.go_on(adding)
    async with asyncio.timeout(ENDED_S):
        acknowledged = await append
        await asyncio.to_thread(system.resume, second, BOOKIE)
        return waited, await recovery, acknowledged


def test_an_append_passes_the_fence(system: BookKeeperSystem) -> None:
    """Entry 0 is acknowledged after a recovery has ended the ledger without it. If there is a descriptor, the fence waits."""
    remote = system.cluster.remote(system.cluster.nodes[1])
    debugger = threadholds.connect(remote, PORT)
    try:
        threads = HeldThreads(debugger)
        assert asyncio.run(no_race(system, threads)) == (True, 1, 1)
        operations = asyncio.run(race(system, threads))
    finally:
        debugger.close()
    assert [result for _, _, result in operations[:-1]] == [-1, 0]
    judgement = LedgerWorkload().judge(of_operations(in_turn(*operations)))
    assert judgement.counts["beyond-end"] == 1
