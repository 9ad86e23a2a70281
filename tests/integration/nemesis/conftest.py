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
def bench() -> Iterator[Bench]:
    """Five nodes with the system on each."""
    with LocalCluster.up(f"test-nemesis-{os.getpid()}") as cluster, cluster.entered():
        ready = Bench(cluster)
        for node in cluster.nodes:
            ready.system.install(node)
            ready.system.start(node)
        asyncio.run(ready.system.until_ready(cluster.nodes, 10))
        yield ready
