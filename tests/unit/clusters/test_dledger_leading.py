"""How a leadership of DLedger is moved, and what controllers on it say beside: their term, and whether they can hand over."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.systems.dledger import leading
from clusters.systems.dledger.leading import move_leadership
from clusters.systems.dledger.outcomes import UNEXPECTED_ARGUMENT
from clusters.systems.dledger.requests import LEADERSHIP_TRANSFER
from clusters.systems.rocketmq import controller
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from clusters.systems.rocketmq.requests import METADATA
from harness.node import Node
from harness.system import NodeStatus
from tests.unit.clusters.remoting_script import frame, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.cluster import Cluster

HOST = "127.0.0.1"


def leads(node: str, term: int | None) -> NodeStatus:
    """A leader that serves."""
    return NodeStatus(node=node, role="leader", term=term, leader=node)


@pytest.mark.parametrize(
    ("seen", "asked", "moved"),
    [
        ([leads("n2", 1)], [], True),
        ([leads("n1", 1), None, leads("n2", 2)], [("n1", 1)], True),
        # The old leader is elected again in a later term: it is asked once more.
        ([leads("n1", 1), leads("n1", 3), leads("n2", 4)], [("n1", 1), ("n1", 3)], True),
        # A leader that tells no term cannot be asked.
        ([leads("n1", None)] * 3, [], False),
    ],
)
def test_a_leadership_is_moved(
    monkeypatch: pytest.MonkeyPatch, seen: list[NodeStatus | None], asked: list[tuple[str, int]], moved: bool
) -> None:
    """The present leader is asked for its present term, until the node leads or the time is over."""
    monkeypatch.setattr(leading, "POLL_S", 0.0)
    coming, transfers = list(seen), list[tuple[str, int]]()

    async def serving() -> NodeStatus | None:
        if not coming:
            await asyncio.sleep(1.0)  # past the deadline
        return coming.pop(0) if coming else None

    async def transfer(at: str, term: int, limit_s: float) -> None:
        assert 0 < limit_s <= 0.5
        transfers.append((at, term))

    assert asyncio.run(move_leadership("n2", 0.5, serving=serving, transfer=transfer)) is moved
    assert transfers == asked


@pytest.mark.parametrize("consensus", Consensus)
def test_what_a_controller_says(monkeypatch: pytest.MonkeyPatch, consensus: Consensus) -> None:
    """On dledger a refused transfer tells the term, and the leadership can be moved; on jraft there is neither."""

    def script(header: Mapping[str, Any], _: Any) -> bytes:
        head: dict[str, Any] = {"code": 0, "opaque": header["opaque"], "flag": 1}
        if header["code"] == METADATA:
            head["extFields"] = {"isLeader": "true", "controllerLeaderAddress": f"{HOST}:{ports[0]}"}
            return frame(json.dumps(head).encode())
        assert header["code"] == LEADERSHIP_TRANSFER
        return frame(json.dumps(head).encode(), json.dumps({"code": UNEXPECTED_ARGUMENT, "term": 7}).encode())

    ports: list[int] = []

    async def main() -> None:
        async with scripted(script) as node:
            ports.append(node.port)
            monkeypatch.setattr(controller, "PORT", node.port)
            cluster = cast("Cluster", SimpleNamespace(nodes=[Node(name="n1", address=HOST)]))
            made = RocketMQController(cluster, ControllerOptions(consensus=consensus), "broker-id")
            status = await made.status(cluster.nodes[0], 5.0)
            assert status is not None
            is_dledger = consensus is Consensus.DLEDGER
            assert (status.role, status.leader, status.term) == ("leader", "n1", 7 if is_dledger else None)
            assert made.moves_leadership is is_dledger
            if not is_dledger:
                assert await made.lead(cluster.nodes[0], 5.0) is False
                assert [header["code"] for header, _ in node.requests] == [METADATA]

    asyncio.run(main())
