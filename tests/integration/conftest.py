"""Fixtures on real nodes: one local cluster for all tests that leave it as they found it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Five local nodes, shared by the whole session; whoever breaks something heals it."""
    if os.geteuid() != 0:
        pytest.skip("local nodes need root, to make network namespaces")
    with LocalCluster.up(f"tests-{os.getpid()}") as made:
        yield made
