"""Findings in DLedger (docs/findings) that need steps outside of a plan, on real nodes."""

from __future__ import annotations

import asyncio
import itertools
import os
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.system import DLedgerSystem
from clusters.systems.routing import Routing
from harness.cluster import on_all
from harness.faults import PlannedFault
from harness.leaders import LEADER
from harness.op import Invocation, Ok
from harness.service import first_status
from nemesis.conductor import Conductor
from tests.artifacts import built

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.client import Client
    from harness.node import Node
    from harness.service import NodeStatus

pytestmark = [pytest.mark.integration, pytest.mark.night]

READY_S = 60.0
ANSWER_S = 2.0
ELECTED_S = 30
SNAPSHOT_ENTRIES = 50
BEFORE = 5
TRIES = 100


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """Three nodes; the test runs where their addresses can be reached."""
    with LocalCluster.up(f"dledger-findings-{os.getpid()}", nodes=3) as made, made.entered():
        yield made


async def written(client: Client, values: Iterator[int], count: int) -> None:
    """Writes so many values, each until it is acknowledged."""
    for value in itertools.islice(values, count):
        for _ in range(TRIES):
            if isinstance(await client.invoke(Invocation(f="write", value=value, key="key")), Ok):
                break
        else:
            raise AssertionError(f"the write of {value} was not acknowledged in {TRIES} tries")


async def statuses(system: DLedgerSystem, nodes: tuple[Node, ...]) -> dict[str, NodeStatus]:
    """What the nodes report that answer, by name."""
    found = {node.name: await first_status(system, node, ANSWER_S) for node in nodes}
    return {name: status for name, status in found.items() if status is not None}


async def leads_without_writes(system: DLedgerSystem, cluster: LocalCluster) -> bool:
    """Finding 12: a follower misses acknowledged writes. Another one has them in its snapshot, and votes for it."""
    await system.until_ready(cluster.nodes, READY_S)
    client, values = system.client(0, cluster.nodes[0]), itertools.count()
    await written(client, values, BEFORE)
    leader = next(name for name, seen in (await statuses(system, cluster.nodes)).items() if seen.role == LEADER)
    first = system.node(leader)
    old, voter = (node for node in cluster.nodes if node != first)
    conductor = Conductor(cluster=cluster, system=system)
    cut = PlannedFault(id=0, kind="partition-random-node", target=[old.name], start_s=0.0, end_s=10.0)
    await conductor.begin(cut)
    try:
        # A write that is tried twice may be two entries.
        while ((await statuses(system, (first,)))[leader].applied_index or 0) < SNAPSHOT_ENTRIES - 1:
            await written(client, values, 1)
        await asyncio.sleep(2.0)
        full = (await statuses(system, (voter,)))[voter.name]
        assert full.applied_index == SNAPSHOT_ENTRIES - 1
        for node in (first, voter):
            system.kill(node)
        assert (await conductor.prove(cut)).effective
    finally:
        await conductor.end(cut)
        await client.close()
    system.start(voter)
    for _ in range(ELECTED_S):
        await asyncio.sleep(1.0)
        leaders = [seen for seen in (await statuses(system, (old, voter))).values() if seen.role == LEADER]
        if leaders:
            (found,) = leaders
            assert found.applied_index is not None
            return found.node == old.name and found.applied_index < SNAPSHOT_ENTRIES - 1
    raise AssertionError(f"no leader was elected in {ELECTED_S} s")


@pytest.mark.parametrize(("mend", "leads"), [("", True), ("12", False)])
def test_a_node_that_lacks_acknowledged_writes_leads(cluster: LocalCluster, mend: str, leads: bool) -> None:
    """It happens with the released library, and not with the mended one."""
    options = DLedgerOptions(routing=Routing.LEADER, snapshot_threshold=SNAPSHOT_ENTRIES, mend=mend)
    system = built(DLedgerSystem(cluster, options, "register"))
    on_all(cluster.nodes, system.install)
    on_all(cluster.nodes, system.start)
    try:
        assert asyncio.run(leads_without_writes(system, cluster)) is leads
    finally:
        on_all(cluster.nodes, system.stop)
