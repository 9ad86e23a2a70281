"""The client of RocketMQ's controllers: one connection of one process, and the connections of its broker's heartbeats.

A pinned client never leaves its node, so a deposed leader still gets requests. A following client goes to the leader that a
refusal names. Both pause after a refusal. The interpreter limits the time of an answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import PAUSE_S, InDoubt, NoAnswer, NotDone, NotSent, Refused, unsupported
from clusters.kit.contracts import Contract, by_workload
from clusters.systems.dledger.remoting import Connection
from clusters.systems.rocketmq.heartbeats import Heartbeats, accepted
from clusters.systems.rocketmq.outcomes import (
    BAD_ANSWER,
    NEVER_HAPPENED,
    NOT_LEADER,
    SUCCESS,
    Meaning,
    meaning_of,
    not_leader,
    refusal,
)
from clusters.systems.rocketmq.requests import REQUESTS, metadata
from harness.op import Ok

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from clusters.systems.dledger.remoting import Answer
    from clusters.systems.rocketmq.requests import Request
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

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


class ControllerClient(Contract):
    """A `harness.client.RoutedClient` for broker groups: a key is the name of a group.

    A function is one of `REQUESTS`, or `heartbeat`, or `leave`, which closes the connections of the heartbeats. The result of
    every answer has its code. The interpreter limits the time of an operation.

    Attributes:
        node: The client's own node. A pinned client stays there.
        via: The node that received its last operation; None if the client is pinned.
    """

    never_happened = NEVER_HAPPENED
    read_timeout_s = None

    def __init__(self, *, controllers: Controllers, node: Node, follows: bool) -> None:
        """Connects with the first operation.

        Args:
            controllers: The controllers.
            node: The client's own node.
            follows: Whether it follows the leader.
        """
        self.node = node
        self._controllers = controllers
        self._follows = follows
        self._at = node
        self._heartbeats = Heartbeats(controllers)
        self._connection: Connection | None = None
        self.via: str | None = None

    def is_read(self, invocation: Invocation) -> bool:
        """Returns whether a request has no effect."""
        request = REQUESTS.get(invocation.f)
        return request is not None and request.is_read

    def name_of(self, code: str) -> str:
        """Returns the code, which is a name already."""
        return code

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out a request for the broker group of a key, a heartbeat, or the end of heartbeats."""
        request = REQUESTS.get(f)
        if f in {"heartbeat", "leave"}:
            return Ok(await self._heartbeat_or_leave(f, key, value))
        if request is None:
            return unsupported(f, value)
        self.via = self._at.name if self._follows else None
        answer = await request.ask(await self._connected(), key, value)
        if answer.status == NOT_LEADER:
            raise not_leader(await self._other_leader())
        if meaning_of(answer.status) is not Meaning.ANSWER:
            await asyncio.sleep(PAUSE_S)
        return Ok(value_of(request, key, answer))

    async def failed(self, error: Exception) -> None:
        """Leaves the controller after a request without an answer, and pauses if there was no connection."""
        if isinstance(error, NotSent | NoAnswer):
            await self._leave(None)
        if isinstance(error, NotSent | NotDone) and not isinstance(error, InDoubt):
            await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes the connection and those of the heartbeats, so the client's brokers end too."""
        await self._close()
        await self._heartbeats.close()

    async def _heartbeat_or_leave(self, f: str, name: str, argument: Mapping[str, Any]) -> Value:
        """Sends a heartbeat to all controllers over its own connections, or closes these connections."""
        self.via = None
        if f == "leave":
            await self._heartbeats.leave(name, argument["id"])
            return {"code": SUCCESS}
        await self._heartbeats.leave_others(name)  # the workload uses groups one after the other
        return accepted(await self._heartbeats.beat(name, argument, HEARTBEAT_TIMEOUT_S))

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await self._controllers.connect(self._at)
        return self._connection

    async def _other_leader(self) -> str | None:
        """Asks for the leader, and returns another one than this controller.

        A following client goes there, or to the next node if there is no known leader.
        """
        leader = None
        try:
            async with asyncio.timeout(METADATA_TIMEOUT_S):
                leader = self._controllers.at((await metadata(await self._connected())).leader)
        except (NotSent, NoAnswer, TimeoutError):
            await self._close()
        named = leader if leader != self._at.name else None
        if named is not None and self._follows:
            await self._leave(named)
        else:
            await asyncio.sleep(PAUSE_S)
            if named is None:
                await self._leave(None)
        return named

    async def _leave(self, leader: str | None) -> None:
        """Closes the connection. A following client goes to the leader, or to the next node if it knows no leader."""
        await self._close()
        if self._follows:
            names = [node.name for node in self._controllers.nodes]
            following = (names.index(self._at.name) + 1) % len(names)
            self._at = self._controllers.nodes[names.index(leader) if leader in names else following]

    async def _close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
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


class BrokerIds(ControllerClient):
    """The ids of brokers."""

    workloads = ("broker-id",)
    serves = "apply, next, replica and state are the requests 1013, 1012, 1004 and 1006; a key is a broker group"


class Elections(ControllerClient):
    """The masters of broker groups."""

    workloads = ("elect",)
    serves = "elect is the request 1002, heartbeat is 904, and the others are as for broker-id"


class SyncStateSets(ControllerClient):
    """The brokers that are in sync with their master."""

    workloads = ("sync-state-set",)
    serves = "alter is the request 1001, leave closes connections of heartbeats, the others are as for elect"


class Registrations(ControllerClient):
    """All that controllers know of broker groups."""

    workloads = ("controller",)
    serves = "register is the request 1003, and the others are as for sync-state-set"


CLIENTS: Final = by_workload(BrokerIds, Elections, SyncStateSets, Registrations)


def value_of(request: Request, name: str, answer: Answer) -> Value:
    """Returns the result of an operation that a leader answered.

    Args:
        request: The request.
        name: The broker group.
        answer: The answer; its code is not `NOT_LEADER`.

    Raises:
        Refused: The code is no answer, or a value is missing or bad.
    """
    if meaning_of(answer.status) is not Meaning.ANSWER:
        raise refusal(answer.status, answer.remark)
    try:
        return request.value(name, answer)
    except NoAnswer as error:
        remark = f" ({answer.remark[:100]})" if answer.remark else ""
        raise Refused(BAD_ANSWER, f"code {answer.status}{remark}: {error}") from error
