"""Fixtures of the tests of one system on real nodes: the nodes, and the system that serves on them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from clusters.local import LocalCluster
from harness import readiness
from harness.cluster import on_all
from tests.software import obtained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.node import Node
    from harness.system import OneServiceSystem, System

S = TypeVar("S", bound="System")
One = TypeVar("One", bound="OneServiceSystem")


def cluster_of(name: str, get: Callable[[], object] | None = None, *, nodes: int = 3) -> Any:
    """Returns the fixture `cluster` of a module: nodes of its own, which all its tests share.

    The tests run where the addresses of the nodes can be reached, and nothing else can.

    Args:
        name: The name of the system.
        get: Gets its software before; if it cannot be had, the tests are skipped. None: nothing is got.
        nodes: The number of nodes.
    """

    @pytest.fixture(scope="module", name="cluster")
    def made() -> Iterator[LocalCluster]:
        if get is not None:
            obtained(name, get)
        with LocalCluster.up(f"{name.lower()}-{os.getpid()}", nodes=nodes) as cluster, cluster.entered():
            yield cluster

    return made


@contextlib.contextmanager
def serving(system: S, nodes: Sequence[Node], ready_s: float) -> Iterator[S]:
    """Installs a system on the nodes, and starts it as a run does. Yields it when it serves, and kills it at the end."""
    on_all(nodes, system.install)
    asyncio.run(readiness.bring_up(system, ready_s, first=True))
    yield system
    on_all(nodes, system.kill)


def started(system: One, nodes: Sequence[Node], ready_s: float) -> One:
    """Starts an installed system again, where it does not run. Returns it when it serves."""
    on_all(nodes, system.start)
    asyncio.run(system.until_ready(nodes, ready_s))
    return system
