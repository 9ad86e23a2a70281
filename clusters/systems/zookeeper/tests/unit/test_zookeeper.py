"""ZooKeeper's client side: the table of outcomes, a request without an answer, and what a node prints about itself."""

from __future__ import annotations

import asyncio
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit.answers import NoAnswer, NotSent, RefusedByCode
from clusters.kit.zookeepers import SRVR
from clusters.systems.zookeeper import connection as module
from clusters.systems.zookeeper import system as system_module
from clusters.systems.zookeeper.client import ZooKeeperClient
from clusters.systems.zookeeper.connection import HEADER, LENGTH, Connection
from clusters.systems.zookeeper.options import ZooKeeperOptions
from clusters.systems.zookeeper.outcomes import WRITE_NEVER_HAPPENED
from clusters.systems.zookeeper.system import ZooKeeperSystem
from harness.cluster import Paper
from harness.errors import InputError
from workloads.lock import LockOptions

if TYPE_CHECKING:
    from collections.abc import Callable


pytest.importorskip("kazoo")
from kazoo.protocol.serialization import Sync

SESSION = struct.pack("!iiqi", 0, 4000, 7, 16) + b"\0" * 16 + b"\0"
SAID_PATH = struct.pack("!i", 2) + b"/a"

# An independent copy of the table, written by hand from the sources.
REFUSED_BY_THE_LEADER = {-8, -101, -103, -108, -110, -111, -114}


def test_the_table_has_the_rows_of_the_sources() -> None:
    """A change is a fail only for these; `test_contracts` has the rule."""
    assert set(WRITE_NEVER_HAPPENED) == REFUSED_BY_THE_LEADER
    assert ZooKeeperClient.never_happened is WRITE_NEVER_HAPPENED


def answer(xid: int, zxid: int = 5, error: int = 0, body: bytes = SAID_PATH) -> bytes:
    """A frame with an answer."""
    content = struct.pack("!iqi", xid, zxid, error) + (b"" if error else body)
    return LENGTH.pack(len(content)) + content


def asked(monkeypatch: pytest.MonkeyPatch, reply: Callable[[int], bytes | None], *, grants: bytes = SESSION) -> object:
    """Sends one request to a server that answers with what `reply` makes of its xid; None: it ends the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(*LENGTH.unpack(await reader.readexactly(LENGTH.size)))
        writer.write(LENGTH.pack(len(grants)) + grants)
        content = await reader.readexactly(*LENGTH.unpack(await reader.readexactly(LENGTH.size)))
        said = reply(HEADER.unpack_from(content)[0])
        if said is not None:
            writer.write(said)
            await reader.read()
        writer.close()

    async def all_of_it() -> object:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            monkeypatch.setattr(module, "PORT", server.sockets[0].getsockname()[1])
            connection = Connection("127.0.0.1", session_ms=4000)
            try:
                return await connection.call(Sync("/a")), connection.zxid
            finally:
                await connection.close()

    return asyncio.run(all_of_it())


def test_an_answer_has_the_last_change_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next session asks for a node that has applied it."""
    assert asked(monkeypatch, answer) == ("/a", 5)


def test_a_ping_before_the_answer_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a ping, and a watch, belong to no request."""
    assert asked(monkeypatch, lambda xid: answer(-2, body=b"") + answer(-1, body=b"") + answer(xid)) == ("/a", 5)


@pytest.mark.parametrize(
    ("reply", "grants", "expected"),
    [
        pytest.param(lambda _: None, SESSION, NoAnswer, id="the connection ends"),
        pytest.param(lambda xid: answer(xid + 1), SESSION, NoAnswer, id="the answer to another request"),
        pytest.param(lambda xid: answer(xid, body=b""), SESSION, NoAnswer, id="an answer that is cut off"),
        pytest.param(lambda _: LENGTH.pack(-5), SESSION, NoAnswer, id="a length below zero"),
        pytest.param(lambda _: LENGTH.pack(1 << 30), SESSION, NoAnswer, id="a length beyond the limit"),
        pytest.param(lambda xid: answer(xid, error=-103), SESSION, RefusedByCode, id="an error"),
        pytest.param(answer, b"", NotSent, id="no session"),
        pytest.param(answer, struct.pack("!iiqi", 0, 0, 0, 0), NotSent, id="a session that has ended"),
    ],
)
def test_what_is_known_without_a_usable_answer(
    monkeypatch: pytest.MonkeyPatch, reply: Callable[[int], bytes | None], grants: bytes, expected: type[Exception]
) -> None:
    """Without a session nothing was sent; afterwards, only an error of the node says that it refused."""
    with pytest.raises(expected):
        asked(monkeypatch, reply, grants=grants)


def test_a_node_that_takes_part_in_an_election_has_no_status() -> None:
    """`srvr` has a zxid and a mode only while the node serves."""
    match = SRVR.search("Zookeeper version: 3.9.3\nReceived: 1\nZxid: 0x20000001c\nMode: follower\nNode count: 5\n")
    assert match is not None
    assert (int(match[1], 16) >> 32, match[2]) == (2, "follower")
    assert SRVR.search("This ZooKeeper instance is not currently serving requests\n") is None


def test_a_node_that_no_longer_leads_need_not_listen_to_followers() -> None:
    """Faults cut the port of the leader too, and a restarted node is whole without it."""
    system = ZooKeeperSystem.made(Paper(["n1", "n2"]), ZooKeeperOptions(), "register", None)  # type: ignore[arg-type]
    artifact: Any = SimpleNamespace(there="/opt/zookeeper")
    system.artifact = artifact
    assert set(system.ports()) == {2181, 2888, 3888}
    assert set(system.leader_ports()) == {2888}


def test_a_dump_asks_only_znodes_with_children_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most znodes are leaves, and their answer says so. A znode that vanishes is left out."""
    tree = {"/labrys": ["a", "set"], "/labrys/a": [], "/labrys/set": ["1", "2"], "/labrys/set/1": []}
    asked: list[tuple[str, str]] = []

    class Tree:
        def __init__(self, address: str, *, session_ms: int) -> None:
            """Answers for the one node."""

        async def calls(self, requests: list[Any]) -> list[Any]:
            asked.extend((type(request).__name__, request.path) for request in requests)
            return [self._answer(request) for request in requests]

        def _answer(self, request: Any) -> Any:
            if request.path not in tree:
                return RefusedByCode(-101)
            below = tree[request.path]
            stat = SimpleNamespace(version=1, mzxid=7, ephemeralOwner=0, numChildren=len(below))
            return below if type(request).__name__ == "GetChildren" else (b"5", stat)

        async def close(self) -> None:
            """Does nothing."""

    monkeypatch.setattr(system_module, "Connection", Tree)
    cluster: Any = Paper(["n1"])
    system = ZooKeeperSystem.made(cluster, ZooKeeperOptions(), "set", None)
    state = asyncio.run(system.replica(cluster.nodes[0], 5.0))
    assert state is not None
    assert state.state == {path: ["5", 1, 7, 0] for path in tree if path != "/labrys"}
    assert [path for kind, path in asked if kind == "GetChildren"] == ["/labrys", "/labrys/set"]


@pytest.mark.parametrize(
    ("lease_s", "sessions", "expected"), [(5, True, "a lease from 0.4 to 4"), (4, False, "leave out --no-s")]
)
def test_a_lock_lasts_as_long_as_a_session_that_zookeeper_grants(lease_s: float, sessions: bool, expected: str) -> None:
    """A lease is the timeout of a session, from 2 to 20 ticks, and no lock outlives its session."""
    cluster: Any = Paper(["n1", "n2", "n3"])

    def client(**options: Any) -> ZooKeeperClient:
        made = ZooKeeperSystem.made(cluster, ZooKeeperOptions(), "lock", LockOptions(**options))
        return made.client(1, cluster.nodes[0])

    with pytest.raises(InputError, match=expected):
        client(lease_s=lease_s, sessions=sessions)
    assert client(lease_s=4).node.name == client().node.name == "n1"
