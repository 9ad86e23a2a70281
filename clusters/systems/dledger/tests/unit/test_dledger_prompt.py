"""For the final reads, a node of DLedger is asked to take over promptly, before the leadership moves to it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.systems.dledger.members import Members
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.protocol import LEADERSHIP_TRANSFER, USER_DEFINED
from clusters.systems.dledger.routing import Group
from clusters.systems.dledger.system import DLedgerSystem
from harness.node import Node
from tests.unit.clusters.remoting_script import answer, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.cluster import Cluster

NODES = (Node(name="n1", address="127.0.0.1"), Node(name="n2", address="127.0.0.1"))
STATUS, PROMPT = "2", "4"


class Pair:
    """Answers as two nodes of a group. n1 leads until it gets a transfer.

    Attributes:
        asked: The requests other than those for a status: the node and the kind.
    """

    def __init__(self, *, knows_prompt: bool) -> None:
        self.leader = "n1"
        self.asked: list[tuple[str, str]] = []
        self._knows_prompt = knows_prompt

    def __call__(self, header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes | None:
        """Answers a request."""
        node = body["remoteId"]
        if header["code"] == LEADERSHIP_TRANSFER:
            self.asked.append((node, "transfer"))
            self.leader = body["transfereeId"]
            return answer(header["opaque"], {"code": 200})
        assert header["code"] == USER_DEFINED
        kind = header["extFields"]["requestTypeCode"]
        if kind == PROMPT:
            self.asked.append((node, "prompt"))
            return answer(header["opaque"], {"code": 200}) if self._knows_prompt else None
        assert kind == STATUS
        role = "leader" if node == self.leader else "follower"
        said = {
            "role": role,
            "term": 1,
            "leaderId": self.leader,
            "appliedIndex": 1,
            "committedIndex": 1,
            "snapshotIndex": -1,
            "ledgerEndIndex": 1,
            "readyTerm": 1,
        }
        return answer(header["opaque"], {"code": 200, **said})


@pytest.mark.parametrize("knows_prompt", [True, False])
@pytest.mark.parametrize("promptly", [True, False])
def test_only_final_reads_make_a_node_prompt(promptly: bool, knows_prompt: bool) -> None:
    """A fault moves the leadership at the library's own speed. A node without the request leads too."""
    pair = Pair(knows_prompt=knows_prompt)

    async def main() -> bool:
        async with scripted(pair) as node, asyncio.timeout(10):
            system = DLedgerSystem(cast("Cluster", SimpleNamespace(nodes=NODES)), DLedgerOptions(), "register")
            members = Members(NODES, port=node.port, system="DLedger")
            system.group = Group(name="labrys", nodes=NODES, port=node.port, members=members)
            move = system.lead_promptly if promptly else system.lead
            return await move(NODES[1], 5.0)

    assert asyncio.run(main())
    assert pair.asked == [*([("n2", "prompt")] if promptly else []), ("n1", "transfer")]
