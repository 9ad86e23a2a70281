"""Starts BookKeeper for a test."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from clusters.systems.bookkeeper.system import BookKeeperSystem
from harness.cluster import on_all

if TYPE_CHECKING:
    from clusters.local import LocalCluster

READY_S: Final = 120.0


def start(system: BookKeeperSystem, cluster: LocalCluster) -> None:
    """Builds, installs and starts BookKeeper, and waits until it serves.

    All services but ZooKeeper start together, which takes half the time of a run's start.
    """
    system.artifact = BookKeeperSystem.build(system.options, print)
    on_all(cluster.nodes, system.install)
    metadata, *others = system.services()
    for services in ([metadata], others):
        for service in services:
            on_all(service.nodes, service.initialise)
            on_all(service.nodes, partial(system.start, role=service.role))
        for service in services:
            asyncio.run(service.until_ready(service.nodes, READY_S))
            asyncio.run(service.complete(READY_S))
