"""The client of one process: its requests, its routing, and its outcomes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.kit.routing import Routing
from clusters.systems.dledger import outcomes
from clusters.systems.dledger.client import DLedgerRegisters
from clusters.systems.dledger.members import Members
from clusters.systems.dledger.options import ReadMode
from clusters.systems.dledger.routing import Group
from clusters.systems.dledger.tests.unit.test_dledger_outcomes import refused_read, refused_write
from harness.node import Node
from harness.op import ONLY_KEY, Fail, Info, Invocation, Ok
from tests.unit.clusters.remoting_script import answer, frame, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from harness.op import Outcome, Value
    from tests.unit.clusters.remoting_script import ScriptedNode

    Script = Callable[[Mapping[str, Any], Mapping[str, Any]], bytes | None]

NODES = tuple(Node(name=f"n{number}", address=f"127.0.0.{number}") for number in (1, 2, 3))
PAUSE = "clusters.systems.dledger.routing.PAUSE_S"
OPERATIONS = {"read": None, "write": 5, "cas": [4, 5]}


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the pause after refusals."""
    monkeypatch.setattr(PAUSE, 0.0)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a test's coroutine, for at most ten seconds."""

    async def bounded() -> None:
        async with asyncio.timeout(10):
            await main

    asyncio.run(bounded())


def says(body: Any, *, status: int = 200, remark: str | None = None) -> Script:
    """A script that always gives this answer."""
    return lambda header, _body: answer(header["opaque"], body, status=status, remark=remark)


def refuses(code: int, leader: str | None = None) -> Script:
    """A script that always refuses with this code, in DLedger's form."""
    body = {"code": code, "group": "g"} | ({} if leader is None else {"leaderId": leader})
    return says(body)


def group(port: int) -> Group:
    """The group of all nodes."""
    return Group(name="g", nodes=NODES, port=port, members=Members(NODES, port=port, system="DLedger"))


async def outcome(
    script: Script, f: str, value: Value, *, key: str | None = "k", follows: bool = False
) -> tuple[Outcome, ScriptedNode]:
    """The outcome of a new client at n1 for this script's answer."""
    async with scripted(script) as node:
        client = DLedgerRegisters(group=group(node.port), node=NODES[0], read_mode=ReadMode.READ_INDEX, follows=follows)
        try:
            return await client.invoke(Invocation(f, value, key)), node
        finally:
            await client.close()


def outcome_of(script: Script, f: str, value: Value = None) -> Outcome:
    """The same, for tests that need no loop of their own."""
    return asyncio.run(outcome(script, f, value))[0]


@contextlib.asynccontextmanager
async def three_nodes(scripts: Sequence[Script]) -> AsyncIterator[list[ScriptedNode]]:
    """Nodes n1 to n3 on one port of three loopback addresses."""
    async with contextlib.AsyncExitStack() as stack:
        nodes: list[ScriptedNode] = []
        for node, script in zip(NODES, scripts, strict=True):
            port = nodes[0].port if nodes else 0
            nodes.append(await stack.enter_async_context(scripted(script, node.address, port)))
        yield nodes


@pytest.mark.parametrize(
    ("f", "value", "sent"),
    [
        ("read", None, {"op": "get", "key": "k", "readMode": "read-index"}),
        ("write", -3, {"op": "put", "key": "k", "value": -3}),
        ("cas", [1, 2], {"op": "cas", "key": "k", "expected": 1, "value": 2}),
        ("cas", (None, 2), {"op": "cas", "key": "k", "expected": None, "value": 2}),
    ],
)
def test_what_is_sent(f: str, value: Value, sent: dict[str, Any]) -> None:
    """Each operation is the request that the node understands, addressed to this node of this group."""

    async def main() -> None:
        _, node = await outcome(says({"code": 200, "found": True, "value": 1, "applied": True}), f, value)
        ((header, body),) = node.requests
        assert header["code"] == 59999
        assert header["extFields"] == {"requestTypeCode": "1"}
        assert body == {"group": "g", "remoteId": "n1", **sent}

    run(main())


@pytest.mark.parametrize(
    ("f", "value"),
    [
        ("append", 1),
        ("write", None),
        ("write", True),
        ("write", "5"),
        ("write", 1.5),
        ("write", 2**63),
        ("write", -(2**63) - 1),
        ("cas", 5),
        ("cas", [1]),
        ("cas", [1, 2, 3]),
        ("cas", [1, None]),
        ("cas", ["1", 2]),
        ("cas", [True, 2]),
    ],
)
def test_what_the_node_cannot_store_is_never_sent(f: str, value: Value) -> None:
    """An operation that the node does not support, or a value that it cannot store unchanged, fails in the client."""

    async def main() -> None:
        got, node = await outcome(says({"code": 200}), f, value)
        assert isinstance(got, Fail)
        assert got.error.startswith(f"unsupported: {f} of ")
        assert not node.requests

    run(main())


def test_a_workload_without_keys_has_one_register() -> None:
    """A workload with only one object uses a fixed key."""

    async def main() -> None:
        _, node = await outcome(says({"code": 200, "found": False}), "read", None, key=None)
        assert node.requests[0][1]["key"] == ONLY_KEY

    run(main())


@pytest.mark.parametrize(
    ("f", "value", "body", "expected"),
    [
        ("read", None, {"found": True, "value": 7}, Ok(7)),
        ("read", None, {"found": True, "value": -(2**63)}, Ok(-(2**63))),
        ("read", None, {"found": False}, Ok(None)),
        ("write", 7, {"applied": True, "found": True, "value": 7}, Ok(7)),
        ("cas", [6, 7], {"applied": True, "found": True, "value": 7}, Ok([6, 7])),
        ("write", 7, {"applied": True, "found": True, "value": 7, "index": 12}, Ok(7, order=12)),
        ("write", 7, {"applied": True, "found": True, "value": 7, "index": "12"}, Ok(7)),
        ("cas", [6, 7], {"applied": True, "found": True, "value": 7, "index": 0}, Ok([6, 7], order=0)),
        ("cas", [6, 7], {"applied": False, "found": True, "value": 5}, Fail("cas-mismatch: holds 5")),
        ("cas", [6, 7], {"applied": False, "found": False}, Fail("cas-mismatch: holds nothing")),
    ],
)
def test_answers(f: str, value: Value, body: dict[str, Any], expected: Outcome) -> None:
    """The outcome is the answer of the state machine."""
    assert outcome_of(says({"code": 200, **body}), f, value) == expected


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"applied": True},
        {"value": 7},
        {"found": True},
        {"found": True, "value": None},
        {"found": False, "value": 7},
        {"found": True, "value": "7"},
        {"found": True, "value": True},
        {"found": True, "value": 7.0},
        {"found": True, "value": 2**63},
        {"found": "yes", "value": 7},
        {"found": True, "value": [["x"] * 1000]},
    ],
)
def test_success_without_a_proper_answer_proves_nothing(body: dict[str, Any]) -> None:
    """Code 200 alone has no value, and does not prove that a write took effect."""
    for f, value in OPERATIONS.items():
        got = outcome_of(says({"code": 200, **body}), f, value)
        assert isinstance(got, Fail if f == "read" else Info), (f, got)
        assert got.error.startswith("bad-answer: ")
        assert len(got.error) < 300


@pytest.mark.parametrize("applied", [None, "true", 1, 0])
def test_a_write_needs_a_plain_yes(applied: Value) -> None:
    """Only `applied: true` is an ok, and only a cas can be refused by `false`."""
    body = {"code": 200, "found": True, "value": 5, "applied": applied}
    assert isinstance(outcome_of(says(body), "write", 5), Info)
    assert isinstance(outcome_of(says(body), "cas", [4, 5]), Info)
    assert isinstance(outcome_of(says({**body, "applied": False}), "write", 5), Info)


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("code", [*outcomes.NAMES, 777])
def test_refusals_follow_the_table(code: int) -> None:
    """Every code, through a real connection, gives the outcome in the table."""
    assert outcome_of(refuses(code), "read") == refused_read(code)
    for f in ("write", "cas"):
        assert outcome_of(refuses(code), f, OPERATIONS[f]) == refused_write(code)


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize(("status", "write"), [(1, Info), (2, Fail), (3, Fail), (99, Info)])
def test_answers_of_the_remoting_layer(status: int, write: type[Fail | Info]) -> None:
    """After an exception in the node, a write is info; a request that the node did not accept is a fail."""
    script = says(None, status=status, remark="why")
    assert isinstance(outcome_of(script, "read"), Fail)
    got = outcome_of(script, "write", 5)
    assert isinstance(got, write)
    assert got.error.endswith(": why")


@pytest.mark.parametrize("code", [None, "200", [], {}])
def test_an_answer_without_a_code_proves_nothing(code: Value) -> None:
    """An answer without a code is a bad answer."""
    assert outcome_of(says({"code": code, "found": True, "value": 5}), "read") == Fail("bad-answer: no code")
    assert outcome_of(says({"code": code}), "write", 5) == Info("bad-answer: no code")


@pytest.mark.parametrize("reply", [None, frame(b"nonsense"), b"\xff\xff\xff\xff"], ids=["closed", "nonsense", "huge"])
def test_no_answer_leaves_a_write_open(reply: bytes | None) -> None:
    """If the connection breaks after the request was sent, a write is info."""
    write = outcome_of(lambda _header, _body: reply, "write", 5)
    read = outcome_of(lambda _header, _body: reply, "read")
    assert isinstance(write, Info)
    assert isinstance(read, Fail)
    assert write.error.startswith("no-answer: ")


def test_a_node_that_is_not_there_certainly_did_nothing() -> None:
    """Without a connection a write fails, after a pause."""

    async def main() -> None:
        async with scripted(refuses(404)) as node:
            port = node.port
        client = DLedgerRegisters(group=group(port), node=NODES[0], read_mode=ReadMode.UNSAFE, follows=False)
        start_s = asyncio.get_running_loop().time()
        got = await client.invoke(Invocation("write", 5, "k"))
        assert isinstance(got, Fail)
        assert got.error.startswith("not-connected: ")
        assert asyncio.get_running_loop().time() - start_s >= 0.1
        await client.close()

    run(main())


@pytest.mark.parametrize("code", [404, 416, 503, 505, 506])
@pytest.mark.parametrize("follows", [False, True])
def test_a_refused_client_does_not_ask_again_at_once(code: int, follows: bool) -> None:
    """A refusal is followed by a pause, since a closed loop would otherwise repeat it at once."""

    async def main() -> None:
        start_s = asyncio.get_running_loop().time()
        await outcome(refuses(code), "write", 5, follows=follows)
        assert asyncio.get_running_loop().time() - start_s >= 0.1

    run(main())


@pytest.mark.usefixtures("without_pauses")
def test_a_pinned_client_never_leaves() -> None:
    """After any answer, even with a named leader or a broken connection, the next request goes to the same node."""

    async def main() -> None:
        replies = iter(
            [refuses(404, "n2"), refuses(505, "n3"), lambda _header, _body: None, refuses(404), refuses(-1, "n2")]
        )

        def in_turn(header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes | None:
            return next(replies)(header, body)

        async with three_nodes([in_turn, refuses(500), refuses(500)]) as (first, second, third):
            client = DLedgerRegisters(group=group(first.port), node=NODES[0], read_mode=ReadMode.UNSAFE, follows=False)
            for _ in range(5):
                await client.invoke(Invocation("read", None, "k"))
            assert len(first.requests) == 5
            assert not second.requests
            assert not third.requests
            await client.close()

    run(main())


@pytest.mark.parametrize("code", [404, 416, 505])
def test_a_following_client_goes_to_the_leader_at_once(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A following client goes to the named leader without a pause, and stays there."""
    # A pause would be longer than `run` allows, so the test does not depend on the speed of the machine.
    monkeypatch.setattr(PAUSE, 60.0)

    async def main() -> None:
        ok = says({"code": 200, "found": True, "value": 1})
        async with three_nodes([refuses(code, "n3"), ok, ok]) as (first, second, third):
            client = DLedgerRegisters(group=group(first.port), node=NODES[0], read_mode=ReadMode.UNSAFE, follows=True)
            assert isinstance(await client.invoke(Invocation("read", None, "k")), Fail)
            for _ in range(3):
                assert await client.invoke(Invocation("read", None, "k")) == Ok(1)
            assert [len(node.requests) for node in (first, second, third)] == [1, 0, 3]
            assert third.requests[0][1]["remoteId"] == "n3"
            assert client.node is NODES[0]
            await client.close()

    run(main())


@pytest.mark.usefixtures("without_pauses")
def test_a_client_tells_which_node_it_asked() -> None:
    """`via` of a following client is the node of its last operation, even after a move; of a pinned client, None."""

    async def main() -> None:
        ok = says({"code": 200, "found": True, "value": 1})
        async with three_nodes([refuses(404, "n3"), ok, ok]) as (first, _, _):
            client = DLedgerRegisters(group=group(first.port), node=NODES[0], read_mode=ReadMode.UNSAFE, follows=True)
            asked = []
            for _ in range(2):
                await client.invoke(Invocation("read", None, "k"))
                asked.append(client.via)
            assert asked == ["n1", "n3"]
            pinned = DLedgerRegisters(group=group(first.port), node=NODES[0], read_mode=ReadMode.UNSAFE, follows=False)
            assert await pinned.invoke(Invocation("read", None, "k")) == Fail("not-leader: n3 leads")
            assert pinned.via is None
            await client.close()
            await pinned.close()

    run(main())


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize(
    ("script", "moves"),
    [
        (refuses(404), True),  # no leader known: it may be on the wrong side of a partition
        (refuses(404, "elsewhere"), True),  # a name that no node has
        (lambda _header, _body: None, True),
        (refuses(404, "n1"), False),  # it names itself: recently elected, or recently deposed
        (refuses(503), False),
        (refuses(502, "n2"), False),
        (says({"code": 200, "found": False}), False),
    ],
)
def test_where_a_following_client_goes_next(script: Script, moves: bool) -> None:
    """Without a known leader, the client goes to the next node, after a refusal or no answer."""

    async def main() -> None:
        async with three_nodes([script, refuses(500), refuses(500)]) as (first, second, third):
            client = DLedgerRegisters(group=group(first.port), node=NODES[0], read_mode=ReadMode.UNSAFE, follows=True)
            for _ in range(2):
                await client.invoke(Invocation("read", None, "k"))
            assert [len(node.requests) for node in (first, second, third)] == ([1, 1, 0] if moves else [2, 0, 0])
            await client.close()

    run(main())


@pytest.mark.usefixtures("without_pauses")
def test_a_following_client_comes_round() -> None:
    """After the last node comes the first again."""

    async def main() -> None:
        async with three_nodes([refuses(404)] * 3) as nodes:
            client = DLedgerRegisters(
                group=group(nodes[0].port), node=NODES[2], read_mode=ReadMode.UNSAFE, follows=True
            )
            for _ in range(4):
                await client.invoke(Invocation("read", None, "k"))
            assert [len(node.requests) for node in nodes] == [1, 1, 2]
            await client.close()

    run(main())


def test_a_cancelled_operation_leaves_a_clean_client() -> None:
    """After a time-out the connection is not used again, and the client can be closed."""

    async def main() -> None:
        async with scripted(says({"code": 200, "found": False})) as node:
            client = DLedgerRegisters(group=group(node.port), node=NODES[0], read_mode=ReadMode.UNSAFE, follows=False)
            node.hang = True
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.invoke(Invocation("read", None, "k"))
            node.hang = False
            assert await client.invoke(Invocation("read", None, "k")) == Ok(None)
            assert node.connections == 2
            await client.close()
            await client.close()

    run(main())


@given(st.integers(1, 9), st.integers(2, 40), st.integers(0, 3))
def test_mixed_routing_has_both_kinds_at_every_node(nodes: int, per_node: int, generation: int) -> None:
    """For every placement of processes, a node with two clients has a pinned and a following one."""
    block = [range(node * per_node, (node + 1) * per_node) for node in range(nodes)]
    concurrency = nodes * per_node
    in_turn = [range(node + generation * concurrency, (generation + 1) * concurrency, nodes) for node in range(nodes)]
    for processes in (*block, *in_turn):
        kinds = {Routing.MIXED.follows(process, nodes) for process in processes}
        assert kinds == {True, False}, (nodes, list(processes))


@given(st.integers(0, 1000), st.integers(1, 9))
def test_plain_routing_is_the_same_for_all(process: int, nodes: int) -> None:
    """With `pinned` all clients are pinned; with `leader` all follow."""
    assert Routing.LEADER.follows(process, nodes)
    assert not Routing.PINNED.follows(process, nodes)
