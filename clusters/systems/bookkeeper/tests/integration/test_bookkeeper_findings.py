"""A finding in BookKeeper (`findings`) that needs steps outside of a plan, on real bookies: two recoveries at once."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from clusters.kit.answers import NoAnswer
from clusters.kit.stored import entry_body
from clusters.systems.bookkeeper.fences import Fences
from clusters.systems.bookkeeper.options import BookKeeperOptions
from clusters.systems.bookkeeper.process import Process
from clusters.systems.bookkeeper.reads import inspected
from clusters.systems.bookkeeper.tests.integration.bookkeeper_start import serving_ledgers
from tests.unit.workloads.logs import in_turn
from workloads.ledger import LedgerWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from clusters.systems.bookkeeper.system import BookKeeperSystem
    from harness.node import Node

pytestmark = [pytest.mark.integration, pytest.mark.night]

KEY = "l0"
ACKNOWLEDGED = 4  # entries 0 to 3; entries 4 to 6 reach one bookie only
TAIL = (4, 5, 6)
FIRST = 10  # the value of entry 0
SENT_S = 0.4
OPENED_S = 0.7  # a recovery has the metadata after this time, and waits for bookies
ABSENT_S = 8.0  # the first recovery has asked for entry 4 after this time
WRITTEN_S = 7.0  # the second one has written entries 4 and 5; it waits 2 s for the paused bookie before each
ENDED_S = 90.0
OPTIONS = BookKeeperOptions(
    ensemble=4, write_quorum=4, ack_quorum=2, zookeeper_apart=True, client_nodes=4, zookeeper_timeout_ms=30_000
)


@pytest.fixture
def system() -> Iterator[BookKeeperSystem]:
    """ZooKeeper at n1, bookies at n2 to n5, and client processes at n6 to n9, serving."""
    with serving_ledgers("bookkeeper-two", OPTIONS, nodes=9) as made:
        yield made


async def ask(node: Node, what: str, **arguments: Any) -> Any:
    """Asks the client process of a node over a connection of its own."""
    process = Process(node)
    try:
        return await process.ask(what, **arguments)
    finally:
        await process.close()


async def between(system: BookKeeperSystem, one: Node, other: Node, change: str) -> None:
    """Adds (-A) or deletes (-D) the rules that drop all packets between two nodes."""
    for node, source in ((one, other), (other, one)):
        rule = f"iptables {change} INPUT -s {source.address} -j DROP"
        await asyncio.to_thread(system.cluster.remote(node).run, rule)


async def to_all(nodes: Sequence[Node], change: Callable[[Node, str], object]) -> None:
    """Pauses or resumes the bookies of some nodes."""
    for node in nodes:
        await asyncio.to_thread(change, node, "bookie")


async def written(system: BookKeeperSystem, names: Mapping[str, Node]) -> tuple[int, list[Node]]:
    """Creates a ledger whose last entries only its third bookie has. Returns its id, and its bookies."""
    writer = system.cluster.nodes[5]
    ledger = await ask(writer, "create", ensemble=4, write=4, ack=2)
    metadata = await ask(writer, "metadata", ledger=ledger)
    ensemble = [names[bookie] for bookie in metadata["ensembles"]["0"]]
    bodies = [entry_body(KEY, FIRST + entry).decode() for entry in range(ACKNOWLEDGED + len(TAIL))]
    for entry in range(ACKNOWLEDGED):
        assert await ask(writer, "append", ledger=ledger, body=bodies[entry]) == entry
    for bookie in (*ensemble[:2], *ensemble[3:]):
        await between(system, writer, bookie, "-A")
    tail = []
    for entry in TAIL:
        tail.append(asyncio.create_task(ask(writer, "append", ledger=ledger, body=bodies[entry])))
        await asyncio.sleep(SENT_S / len(TAIL))
    await asyncio.sleep(SENT_S)
    await asyncio.to_thread(system.kill, writer, "client")  # for good, and cut off, since its kernel would send on
    for answer in tail:
        with contextlib.suppress(NoAnswer):
            await answer
    return ledger, ensemble


async def told(system: BookKeeperSystem) -> list[tuple[str, Any, Any]]:
    """Carries the steps out. Returns what clients were told of the ledger, in this order, as operations."""
    zookeeper, *bookies = system.cluster.nodes[:5]
    first, second, reader = system.cluster.nodes[6:]
    names = {f"{node.address}:3181": node for node in bookies}
    ledger, (early, slow, holder, late) = await written(system, names)
    others = [early, slow, late]
    operations: list[tuple[str, Any, Any]] = [("append", FIRST + entry, entry) for entry in range(ACKNOWLEDGED)]

    # The first recovery does not hear the holder. It finds no entry 4, and its close does not reach ZooKeeper.
    await between(system, first, holder, "-A")
    await to_all(others, system.pause)
    ending = asyncio.create_task(ask(first, "recover", name=KEY, ledger=ledger))
    await asyncio.sleep(OPENED_S)
    await between(system, first, zookeeper, "-A")
    await to_all(others, system.resume)
    await asyncio.sleep(ABSENT_S)
    assert not ending.done()

    # The second one hears the holder, and writes entries 4 and 5 again. Its close does not reach ZooKeeper either.
    await to_all(others, system.pause)
    writing = asyncio.create_task(ask(second, "recover", name=KEY, ledger=ledger))
    await asyncio.sleep(OPENED_S)
    await between(system, second, zookeeper, "-A")
    await to_all([early, late], system.resume)
    await asyncio.sleep(WRITTEN_S)
    assert not writing.done()

    operations.append(("confirmed", None, await ask(reader, "confirmed", ledger=ledger)))
    await to_all([slow], system.resume)
    await between(system, first, zookeeper, "-D")
    async with asyncio.timeout(ENDED_S):
        operations.append(("recover", None, await ending))
    await between(system, second, zookeeper, "-D")
    async with asyncio.timeout(ENDED_S):
        operations.append(("recover", None, await writing))
    process = Process(reader)
    try:
        fences = Fences(system, bookies)
        answer = await inspected(process, KEY, ledger, {bookie: node.name for bookie, node in names.items()}, fences)
    finally:
        await process.close()
    return [*operations, ("inspect", None, answer)]


def test_a_reader_is_told_of_an_entry_that_the_ledger_does_not_have(system: BookKeeperSystem) -> None:
    """Finding 5: entry 4 or 5 is confirmed by one recovery, and the other one ends the ledger at entry 3."""
    operations = asyncio.run(told(system))
    *appends, confirmed, first, second = [result for _, _, result in operations[:-1]]
    assert (appends, first, second) == ([0, 1, 2, 3], 3, 3)
    assert confirmed in TAIL  # the last entry that the second recovery wrote is not confirmed
    judgement = LedgerWorkload().judge(of_operations(in_turn(*operations)))
    assert judgement.counts["confirmed-beyond-end"] == 1
    (anomaly,) = [candidate for candidate in judgement.anomalies if candidate.kind == "confirmed-beyond-end"]
    assert "with the last entry 3. The fragment from entry 0 on has the bookies" in anomaly.explanation, (
        anomaly.explanation
    )
