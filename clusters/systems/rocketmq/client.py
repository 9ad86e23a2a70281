"""The client of RocketMQ's controllers: one connection of one process, and the connections of its broker's heartbeats.

A pinned client never leaves its node, so a deposed leader still gets requests. A following client goes to the leader that a
refusal names. Both pause after a refusal. The interpreter limits the time of an answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusters.kit.answers import PAUSE_S, no_answer
from clusters.kit.remoting import BadAnswer, Connection, NotSent, RemotingError
from clusters.systems.rocketmq.heartbeats import Heartbeats, heartbeat_outcome
from clusters.systems.rocketmq.outcomes import NOT_LEADER, SUCCESS, Meaning, meaning_of, not_answered, not_leader
from clusters.systems.rocketmq.requests import REQUESTS, metadata
from harness.op import Fail, Ok

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from clusters.kit.remoting import Answer
    from clusters.systems.rocketmq.requests import Request
    from harness.node import Node
    from harness.op import Invocation, Outcome

ONLY_GROUP = "group"  # for a workload with one object and no keys
CONNECT_TIMEOUT_S = 2.0
METADATA_TIMEOUT_S = 1.0
HEARTBEAT_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    """The controllers that a client talks to.

    Attributes:
        nodes: The controllers' nodes.
        port: The port of each controller.
        open: Opens a connection to a host and a port, with a time limit in seconds.
    """

    nodes: Sequence[Node]
    port: int
    open: Callable[[str, int, float], Awaitable[Connection]] = Connection.open

    async def connect(self, node: Node, timeout_s: float = CONNECT_TIMEOUT_S) -> Connection:
        """Connects to a controller.

        Raises:
            NotSent: The controller cannot be reached.
        """
        return await self.open(node.address, self.port, timeout_s)

    def at(self, address: str | None) -> str | None:
        """Returns the name of the node at an address `host:port`; None if no node has this address."""
        return next((node.name for node in self.nodes if address == f"{node.address}:{self.port}"), None)


class ControllerClient:
    """A `harness.client.RoutedClient` for broker groups: a key is the name of a group.

    A function is one of `REQUESTS`, or `heartbeat`, or `leave`, which closes the connections of the heartbeats.

    Attributes:
        node: The client's own node. A pinned client stays there.
        via: The node that received its last operation; None if the client is pinned.
    """

    def __init__(self, *, controllers: Controllers, node: Node, follows: bool) -> None:
        self.node = node
        self._controllers = controllers
        self._follows = follows
        self._at = node
        self._heartbeats = Heartbeats(controllers)
        self._connection: Connection | None = None
        self.via: str | None = None

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out a request for the broker group `invocation.key`. The outcome of every answer is `Ok`, with its code."""
        name = invocation.key or ONLY_GROUP
        if invocation.f in {"heartbeat", "leave"}:
            return await self._heartbeat_or_leave(invocation.f, name, invocation.value)
        request = REQUESTS.get(invocation.f)
        if request is None:
            return Fail(f"unsupported: {invocation.f[:100]}")
        self.via = self._at.name if self._follows else None
        try:
            answer = await request.ask(await self._connected(), name, invocation.value)
        except NotSent as error:
            self._leave(None)
            await asyncio.sleep(PAUSE_S)
            return Fail(f"not-connected: {error}")
        except RemotingError as error:
            self._leave(None)
            return no_answer(f"no-answer: {error}", is_read=request.is_read)
        if answer.status == NOT_LEADER:
            return await self._refused()
        if meaning_of(answer.status) is not Meaning.ANSWER:
            await asyncio.sleep(PAUSE_S)
        return outcome_of(request, name, answer)

    async def close(self) -> None:
        """Closes the connection and those of the heartbeats, so the client's brokers end too."""
        self._close()
        self._heartbeats.close()

    async def _heartbeat_or_leave(self, f: str, name: str, argument: Mapping[str, Any]) -> Outcome:
        """Sends a heartbeat to all controllers over its own connections, or closes these connections."""
        self.via = None
        if f == "leave":
            self._heartbeats.leave(name, argument["id"])
            return Ok({"code": SUCCESS})
        self._heartbeats.leave_others(name)  # the workload uses groups one after the other
        outcome = heartbeat_outcome(await self._heartbeats.beat(name, argument, HEARTBEAT_TIMEOUT_S))
        if isinstance(outcome, Fail):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await self._controllers.connect(self._at)
        return self._connection

    async def _refused(self) -> Fail:
        """Asks for the leader. A following client goes there, or to the next node if there is no known leader."""
        leader = None
        try:
            async with asyncio.timeout(METADATA_TIMEOUT_S):
                leader = self._controllers.at((await metadata(await self._connected())).leader)
        except (RemotingError, TimeoutError):
            self._close()
        named = leader if leader != self._at.name else None
        if named is not None and self._follows:
            self._leave(named)
        else:
            await asyncio.sleep(PAUSE_S)
            if named is None:
                self._leave(None)
        return not_leader(named)

    def _leave(self, leader: str | None) -> None:
        """Closes the connection. A following client goes to the leader, or to the next node if it knows no leader."""
        self._close()
        if self._follows:
            names = [node.name for node in self._controllers.nodes]
            following = (names.index(self._at.name) + 1) % len(names)
            self._at = self._controllers.nodes[names.index(leader) if leader in names else following]

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class SplitClient:
    """Two clients of one process: one sends reads to its own node, and one sends all other requests to the leader.

    A change would block the only thread of an isolated leader for seconds. With this client such a leader gets only reads. It
    is a `harness.client.RoutedClient`.

    Attributes:
        node: The node of both clients.
        via: The node that received the last operation; None if it was a read.
    """

    def __init__(self, *, reader: ControllerClient, other: ControllerClient) -> None:
        self.node = reader.node
        self._reader = reader
        self._other = other
        self.via: str | None = None

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out a request; see `ControllerClient.invoke`."""
        request = REQUESTS.get(invocation.f)
        chosen = self._reader if request is not None and request.is_read else self._other
        outcome = await chosen.invoke(invocation)
        self.via = chosen.via
        return outcome

    async def close(self) -> None:
        """Closes both clients."""
        await self._reader.close()
        await self._other.close()


def outcome_of(request: Request, name: str, answer: Answer) -> Outcome:
    """Returns the outcome of an operation that a leader answered.

    Args:
        request: The request.
        name: The broker group.
        answer: The answer; its code is not `NOT_LEADER`.
    """
    if meaning_of(answer.status) is not Meaning.ANSWER:
        return not_answered(answer.status, answer.remark, is_read=request.is_read)
    try:
        return Ok(request.value(name, answer))
    except BadAnswer as error:
        remark = f" ({answer.remark[:100]})" if answer.remark else ""
        return no_answer(f"bad-answer: code {answer.status}{remark}: {error}", is_read=request.is_read)
