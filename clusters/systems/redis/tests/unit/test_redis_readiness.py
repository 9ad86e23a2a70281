"""When servers and sentinels of Redis are ready: each server follows the one master, and has its changes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from clusters.systems.redis import system
from clusters.systems.redis.options import RedisOptions
from harness.errors import NotServing
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS = "192.0.2.{}"
MASTER = {
    "ip": ADDRESS.format(1),
    "flags": "master",
    "num-other-sentinels": "2",
    "num-slaves": "2",
    "config-epoch": "0",
}


def ready(monkeypatch: pytest.MonkeyPatch, offsets: Iterator[int], *, timeout_s: float) -> None:
    """Waits for a group whose third server has these offsets, one for each look, and whose master has 12,057."""

    async def answer(node: Node, port: int, timeout_s: float, *words: str) -> object:
        if words[0] == "SENTINEL":
            return [text for pair in MASTER.items() for text in pair]
        if node.name == "n1":
            return ["master", 12_057, []]
        return ["slave", ADDRESS.format(1), 6379, "connected", 12_057 if node.name == "n2" else next(offsets)]

    monkeypatch.setattr(system, "answer_of", answer)
    nodes = [Node(name=f"n{number}", address=ADDRESS.format(number)) for number in (1, 2, 3)]
    redis = system.RedisSystem(SimpleNamespace(nodes=nodes), RedisOptions(), "set")
    sentinels = redis.service("sentinel")
    asyncio.run(sentinels.until_ready(nodes, timeout_s))


def test_a_replica_that_lacks_changes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """After lost packets, the stream of replication stands still until a retransmission."""
    offsets = iter([100, 100, 12_057])
    ready(monkeypatch, offsets, timeout_s=30)
    assert list(offsets) == []


def test_a_replica_that_never_catches_up_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names it, and what it lacks."""
    with pytest.raises(NotServing, match="n3 is a replica with 100 of 12,057 bytes of changes"):
        ready(monkeypatch, iter(lambda: 100, None), timeout_s=0.01)
