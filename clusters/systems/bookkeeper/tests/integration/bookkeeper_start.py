"""Starts BookKeeper for a test."""

from __future__ import annotations

import asyncio
import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING, Final

from clusters.local import LocalCluster
from clusters.systems.bookkeeper.bookies import AUTO_RECOVERY
from clusters.systems.bookkeeper.system import BookKeeperSystem
from harness.cluster import on_all
from tests.software import obtained
from workloads.ledger import LedgerOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clusters.systems.bookkeeper.options import BookKeeperOptions

READY_S: Final = 120.0


def start(system: BookKeeperSystem, cluster: LocalCluster) -> None:
    """Builds, installs and starts BookKeeper, and waits until it serves.

    Bookies and clients start together, unlike in a run. Auto-recovery ends itself if it comes before the first bookie, so it
    starts last.
    """
    system.artifact = BookKeeperSystem.build(system.options, print)
    on_all(cluster.nodes, system.install)
    metadata, *others = system.services()
    first = [service for service in others if service.role != AUTO_RECOVERY]
    last = [service for service in others if service.role == AUTO_RECOVERY]
    for services in ([metadata], first, last):
        for service in services:
            on_all(service.nodes, service.initialise)
            on_all(service.nodes, partial(system.start, role=service.role))
        for service in services:
            asyncio.run(service.until_ready(service.nodes, READY_S))
            asyncio.run(service.complete(READY_S))


@contextlib.contextmanager
def serving_ledgers(
    name: str, options: BookKeeperOptions, *, nodes: int, before: Callable[[LocalCluster], object] = lambda _: None
) -> Iterator[BookKeeperSystem]:
    """Yields BookKeeper for ledgers, serving on a cluster of its own.

    Args:
        name: The beginning of the name of the cluster.
        options: The options of the system.
        nodes: The number of nodes.
        before: Is called with the cluster before a process starts.
    """
    obtained("BookKeeper", lambda: BookKeeperSystem.build(options, print))
    with LocalCluster.up(f"{name}-{os.getpid()}", nodes=nodes) as cluster, cluster.entered():
        made = BookKeeperSystem.made(cluster, options, "ledger", LedgerOptions())
        before(cluster)
        start(made, cluster)
        yield made
        on_all(cluster.nodes, made.kill)
