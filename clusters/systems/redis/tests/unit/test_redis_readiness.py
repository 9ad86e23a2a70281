"""When servers and sentinels of Redis are ready: each server follows the one master, and has its changes."""

from __future__ import annotations

import asyncio
from itertools import repeat
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from clusters.systems.redis import system
from clusters.systems.redis.options import RedisOptions
from harness.errors import NotServing
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ADDRESS = "192.0.2.{}"
MASTER = {
    "ip": ADDRESS.format(1),
    "flags": "master",
    "num-other-sentinels": "2",
    "num-slaves": "2",
    "config-epoch": "0",
}


def ready(
    monkeypatch: pytest.MonkeyPatch,
    offsets: Iterator[int],
    *,
    timeout_s: float,
    listed: Sequence[int] = (2, 3),
    sentinels: bool = True,
    of: Sequence[int] = (1, 2, 3),
) -> None:
    """Waits for a group whose third server has these offsets, one for each look, and whose master has 12,057.

    Args:
        monkeypatch: Replaces the answers of servers and sentinels.
        offsets: The offsets.
        timeout_s: The time limit.
        listed: The replicas that the master lists.
        sentinels: Whether sentinels answer.
        of: The servers that have to be ready.
    """

    async def answer(node: Node, port: int, timeout_s: float, *words: str) -> object:
        if words[0] == "SENTINEL":
            return [text for pair in MASTER.items() for text in pair] if sentinels else None
        if node.name == "n1":
            return ["master", 12_057, [[ADDRESS.format(number), "6379", "12057"] for number in listed]]
        return ["slave", ADDRESS.format(1), 6379, "connected", 12_057 if node.name == "n2" else next(offsets)]

    monkeypatch.setattr(system, "answer_of", answer)
    nodes = [Node(name=f"n{number}", address=ADDRESS.format(number)) for number in (1, 2, 3)]
    redis = system.RedisSystem(SimpleNamespace(nodes=nodes), RedisOptions(), "set")
    asyncio.run(redis.front().until_ready([nodes[number - 1] for number in of], timeout_s))


def test_a_replica_that_lacks_changes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """After lost packets, the stream of replication stands still until a retransmission."""
    offsets = iter([100, 100, 12_057])
    ready(monkeypatch, offsets, timeout_s=30)
    assert list(offsets) == []


def test_a_replica_that_never_catches_up_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names it, and what it lacks."""
    with pytest.raises(NotServing, match="n3 is a replica with 100 of 12,057 bytes of changes"):
        ready(monkeypatch, iter(lambda: 100, None), timeout_s=0.01)


def test_a_replica_that_its_master_does_not_list_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The master has dropped the connection, and its reset was lost: the replica takes it for alive."""
    with pytest.raises(NotServing, match="n3 is a replica that n1 does not list"):
        ready(monkeypatch, repeat(12_057), timeout_s=0.01, listed=[2])


def test_nobody_waits_for_a_server_that_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are ready without it."""
    ready(monkeypatch, repeat(100), timeout_s=0.01, of=(1, 2))


def test_servers_only_answer_before_the_sentinels_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart of all, only sentinels can tell who the master is."""
    ready(monkeypatch, repeat(100), timeout_s=0.01, sentinels=False)
