"""Leadership transfers by DLedger's and jRaft's own requests, and the term of controllers on DLedger."""

from __future__ import annotations

import asyncio
import json
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.kit import leading
from clusters.kit.answers import NoAnswer, NotSent
from clusters.kit.leading import move_leadership
from clusters.systems.dledger.protocol import LEADERSHIP_TRANSFER, UNEXPECTED_ARGUMENT
from clusters.systems.rocketmq import controllers, jraft
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from clusters.systems.rocketmq.requests import METADATA
from harness.node import Node
from harness.service import NodeStatus, first_status
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
        # The old leader is elected again in a later term, and gets the request again.
        ([leads("n1", 1), leads("n1", 3), leads("n2", 4)], [("n1", 1), ("n1", 3)], True),
        ([leads("n1", None), leads("n2", None)], [("n1", None)], True),
        ([None] * 3, [], False),
    ],
)
def test_a_leadership_is_moved(
    monkeypatch: pytest.MonkeyPatch, seen: list[NodeStatus | None], asked: list[tuple[str, int | None]], moved: bool
) -> None:
    """The current leader gets a request with its current term, until the node leads or the time is over."""
    monkeypatch.setattr(leading, "POLL_S", 0.0)
    coming, transfers = list(seen), list[tuple[str, int | None]]()

    async def serving() -> NodeStatus | None:
        if not coming:
            await asyncio.sleep(1.0)  # past the deadline
        return coming.pop(0) if coming else None

    async def transfer(leader: NodeStatus, limit_s: float) -> None:
        assert 0 < limit_s <= 0.5
        transfers.append((leader.node, leader.term))

    assert asyncio.run(move_leadership("n2", 0.5, serving=serving, transfer=transfer)) is moved
    assert transfers == asked


@pytest.mark.parametrize("consensus", Consensus)
def test_what_a_controller_says(monkeypatch: pytest.MonkeyPatch, consensus: Consensus) -> None:
    """On dledger, the term comes from a refused transfer; on jraft, there is none."""

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
            monkeypatch.setattr(controllers, "PORT", node.port)
            cluster = cast("Cluster", SimpleNamespace(nodes=[Node(name="n1", address=HOST)]))
            made = RocketMQController(cluster, ControllerOptions(consensus=consensus), "broker-id")
            status = await first_status(made, cluster.nodes[0], 5.0)
            assert status is not None
            is_dledger = consensus is Consensus.DLEDGER
            assert (status.role, status.leader, status.term) == ("leader", "n1", 7 if is_dledger else None)

    asyncio.run(main())


REFUSED = b"\x08\x8c\x4e\x12\x02no"  # code 9996 and a message


def bolt(content: bytes, *, kind: int = 0, status: int = 0, length: int | None = None) -> bytes:
    """An answer of SOFABolt; the client ignores its class and header."""
    head = struct.pack(">BBHBIBHHHI", 1, kind, 2, 1, 1, 1, status, 3, 2, len(content) if length is None else length)
    return head + b"abcde" + content


async def hand_over(reply: bytes) -> tuple[int, bytes]:
    """Sends the request to a server with this answer. Returns the code and the sent bytes."""
    got = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read(1000))
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    try:
        port = server.sockets[0].getsockname()[1]
        code = await jraft.transfer(HOST, port, group="g", to="n2:1", timeout_s=2.0)
    finally:
        server.close()
    return code, got[0].replace(f"{HOST}:{port}".encode(), b"LEADER")


@pytest.mark.parametrize(("content", "code"), [(b"", 0), (b"\x08\x00", 0), (REFUSED, 9996)])
def test_a_transfer_of_jraft(content: bytes, code: int) -> None:
    """Request and answer are protobuf messages in frames of SOFABolt."""
    answered, sent = asyncio.run(hand_over(bolt(content)))
    assert answered == code
    assert sent[:14] == struct.pack(">BBHBIBI", 1, 1, 1, 1, 1, 1, 2000)
    assert sent.index(jraft.TRANSFER) == jraft.REQUEST.size
    assert sent[jraft.REQUEST.size + len(jraft.TRANSFER) :].startswith(b"\x0a\x01g\x12")
    assert sent.endswith(b"LEADER\x1a\x04n2:1")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (b"", NoAnswer),
        (bolt(REFUSED)[:-1], NoAnswer),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", NoAnswer),
        (bolt(b"", kind=1), NoAnswer),
        (bolt(b"", status=2), NoAnswer),
        (bolt(b"", length=2**31), NoAnswer),
        (bolt(b"\x12\x00"), NoAnswer),
        (bolt(b"\x08" + b"\xff" * 20), NoAnswer),
    ],
)
def test_what_is_no_answer_of_jraft(reply: bytes, kind: type[NoAnswer]) -> None:
    """Every bad answer is an error of the connection."""
    with pytest.raises(NoAnswer) as raised:
        asyncio.run(hand_over(reply))
    assert type(raised.value) is kind


def test_a_node_without_jraft() -> None:
    """A refused connection has its own error."""
    with pytest.raises(NotSent, match="refused"):
        asyncio.run(jraft.transfer(HOST, 1, group="g", to="n2:1", timeout_s=2.0))
