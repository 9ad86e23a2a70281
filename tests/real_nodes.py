"""Fixtures for tests on real nodes: one local cluster for all tests that leave it unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.local import LocalCluster
from tools import default_system

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
BUILD_TIMEOUT_S = 1200.0


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


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a wheel of Labrys, with the default system as `make dist` does."""
    out = tmp_path_factory.mktemp("dist")
    default_system.package()
    subprocess.run(
        [Path(sys.executable).with_name("maturin"), "build", "--quiet", "--release", "--out", out],
        cwd=ROOT,
        check=True,
        timeout=BUILD_TIMEOUT_S,
    )
    (built,) = out.glob("labrys-*.whl")
    return built
