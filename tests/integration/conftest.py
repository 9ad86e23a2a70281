"""Fixtures for tests on real nodes: one local cluster for all tests that leave it unchanged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests that need real nodes if this user cannot make any."""
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("integration"):
                item.add_marker(pytest.mark.skip(reason="local nodes need root, to make network namespaces"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Five local nodes, shared by the whole session; a test must heal its faults."""
    with LocalCluster.up(f"tests-{os.getpid()}") as made:
        yield made
