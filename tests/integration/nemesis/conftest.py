"""The nodes that all tests of faults share."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster
from tests.integration.nemesis.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def started() -> Iterator[Bench]:
    """Five nodes with the system on each."""
    with LocalCluster.up(f"test-nemesis-{os.getpid()}") as cluster:
        with cluster.entered():
            ready = Bench(cluster)
            for node in cluster.nodes:
                ready.system.install(node)
                ready.system.start(node)
            asyncio.run(ready.system.until_ready(cluster.nodes, 10))
        yield ready


@pytest.fixture
def bench(started: Bench) -> Iterator[Bench]:
    """The nodes, for a test in their network. Between two tests the process leaves it, because it leads nowhere else."""
    with started.cluster.entered():
        yield started
