"""An isolated leader: it refuses linearizable reads, and answers unsafe reads with stale values."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster
from clusters.systems.dledger.options import DLedgerOptions, ReadMode
from clusters.systems.dledger.system import DLedgerSystem
from harness.cluster import on_all
from harness.op import Fail, Info, Invocation, Ok
from tests.artifacts import built
from tests.outcomes import without_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.node import Node
    from harness.op import Outcome

pytestmark = pytest.mark.integration

READY_S = 60.0
ELECTION_S = 30.0
AFTERWARDS_S = 1.0


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """Three nodes; the test runs where their addresses can be reached."""
    with LocalCluster.up(f"isolation-{os.getpid()}", nodes=3) as made, made.entered():
        yield made


async def reads_until(system: DLedgerSystem, node: Node, over: asyncio.Event) -> list[Outcome]:
    """The results of a pinned client's reads at a node until the end, and shortly after."""
    client = system.client(0, node, pinned=True)
    outcomes = []
    while not over.is_set():
        outcomes.append(without_order(await client.invoke(Invocation("read", None, "k"))))
        await asyncio.sleep(0.01)
    await client.close()
    return outcomes


async def write_on_the_other_side(system: DLedgerSystem, nodes: list[Node]) -> None:
    """Writes 2 through the new leader among these nodes."""
    deadline_s = time.monotonic() + ELECTION_S
    while True:
        for node in nodes:
            client = system.client(1, node, pinned=True)
            outcome = without_order(await client.invoke(Invocation("write", 2, "k")))
            await client.close()
            if outcome == Ok(2):
                return
        assert time.monotonic() < deadline_s, "the majority elected nobody"


def test_an_isolated_leader(cluster: LocalCluster) -> None:
    """After a new leader's write, the old leader never answers a safe read with the old value, but an unsafe one."""
    modes = {mode: DLedgerSystem(cluster, DLedgerOptions(read_mode=mode), "register") for mode in ReadMode}
    system = built(modes[ReadMode.READ_INDEX])
    on_all(cluster.nodes, system.install)
    on_all(cluster.nodes, system.start)
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    old, others = cluster.nodes[0], list(cluster.nodes[1:])

    async def reads_once(reading: DLedgerSystem) -> Outcome:
        client = reading.client(0, old, pinned=True)
        try:
            return without_order(await client.invoke(Invocation("read", None, "k")))
        finally:
            await client.close()

    async def main() -> dict[str, list[Outcome]]:
        assert await system.lead(old, 40.0)
        writer = system.client(0, old, pinned=True)
        assert without_order(await writer.invoke(Invocation("write", 1, "k"))) == Ok(1)
        over = asyncio.Event()
        before = {mode: await reads_once(reading) for mode, reading in modes.items()}
        assert before == dict.fromkeys(modes, Ok(1))
        sources = ",".join(node.address for node in others)
        await asyncio.to_thread(cluster.remote(old).run, f"iptables -w -A INPUT -s {sources} -j DROP")
        async with asyncio.TaskGroup() as tasks:
            # Reads from now on begin while the old leader still believes that it leads, and continue after the write.
            reading = {mode: tasks.create_task(reads_until(modes[mode], old, over)) for mode in modes}
            isolated = tasks.create_task(writer.invoke(Invocation("write", 9, "k")))
            await write_on_the_other_side(system, others)
            await asyncio.sleep(AFTERWARDS_S)
            over.set()
        await writer.close()
        assert isinstance(await isolated, Info), "a write at an isolated leader may still be committed"
        return {mode: await task for mode, task in reading.items()}

    read = asyncio.run(main())
    # The cut is in place before the first of these reads, so none of them can reach a quorum.
    for mode in ("read-index", "raft-log"):
        assert read[mode]
        assert all(isinstance(outcome, Fail) for outcome in read[mode]), (mode, read[mode])
    assert read["unsafe"][-1] == Ok(1), "the old leader should still answer what it had"

    cluster.remote(old).run("iptables -w -F INPUT")
    asyncio.run(system.until_ready(cluster.nodes, READY_S))

    async def look_again() -> Outcome:
        assert await system.lead(old, 40.0)
        return await reads_once(system)

    assert asyncio.run(look_again()) == Ok(2)
