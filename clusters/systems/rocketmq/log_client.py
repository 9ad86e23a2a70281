"""The client of logs in RocketMQ: sends to the one queue of a topic, and pulls from it by offset.

All keys share the queue, so the offsets of a key have gaps. An append is a send, and the offset that the broker answers is its
order. A client that follows goes to the master in its route. A pinned client stays at the broker of its node, so a deposed
master still gets messages, and slaves get reads. RocketMQ does not promise that a read is fresh: a broker reads its own log.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from clusters.systems.answers import PAUSE_S, no_answer, unsupported
from clusters.systems.remoting import BadAnswer, NotSent, RemotingError
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.broker_outcomes import NO_MASTER, NOT_MASTER, SUCCESS, refused
from clusters.systems.rocketmq.broker_requests import Refused, offset_of
from clusters.systems.rocketmq.brokers import connect
from clusters.systems.stored import entry_body, values_in
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.remoting import Connection
    from clusters.systems.rocketmq.routes import Routes
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

TOPIC: Final = "labrys"
QUEUE: Final = 0
CONNECT_TIMEOUT_S: Final = 1.0
READ_TIMEOUT_S: Final = 3.0
MS_PER_S: Final = 1000


class LogClient:
    """A `harness.client.RoutedClient` for logs.

    Attributes:
        node: The client's own node.
        via: The master that received its last operation; None if the client is pinned, or knows no master.
    """

    def __init__(
        self, *, node: Node, brokers: Sequence[Node], routes: Routes, topic: str, follows: bool, whole: bool
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            brokers: The nodes of the brokers.
            routes: Its route.
            topic: The topic.
            follows: Whether it goes to the master in its route.
            whole: Whether it reads only if its broker gives consumers all that the master gives them.
        """
        self.node = node
        self.via: str | None = None
        self._brokers = brokers
        self._routes = routes
        self._topic = topic
        self._follows = follows
        self._whole = whole
        self._connections: dict[str, Connection] = {}

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an append, or a read of an offset or of a range."""
        match invocation.f, invocation.value:
            case "append", value:
                try:
                    body = entry_body(invocation.key, value)
                except (ValueError, TypeError, RecursionError):
                    return Fail(f"unsupported: {str(value)[:100]} is not a value of JSON")
                outcome = await self._append(body)
            case "read", int(offset):
                outcome = await self._read(invocation.key, offset, offset)
                if isinstance(outcome, Ok):
                    return Ok(outcome.value[0][1] if outcome.value else None)
            case "read", [int(first), int(last)]:
                outcome = await self._read(invocation.key, first, last)
            case _:
                return unsupported(invocation.f, invocation.value)
        if not isinstance(outcome, Ok):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def close(self) -> None:
        """Closes the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _append(self, body: bytes) -> Outcome:
        """Sends a message. Only the timeout of the caller ends the wait for the answer."""
        try:
            node = await self._at()
            if node is None:
                return Fail(f"{NO_MASTER}: the route has no master")
            connection = await self._connected(node)
            answer = await broker_requests.send(connection, self._topic, QUEUE, body, int(time.time() * MS_PER_S))
            if answer.status != SUCCESS:
                return self._refused(answer.status, answer.remark)
            offset = offset_of(answer, QUEUE)
        except NotSent as error:
            return Fail(f"not-connected: {error}")
        except RemotingError as error:
            return Info(f"no-answer: {error}")
        return Ok(offset, order=offset)

    def _refused(self, status: int, remark: str) -> Fail | Info:
        """Returns the outcome of a send that was refused. A pinned client usually asks a slave, which is no outage."""
        outcome = refused(status, remark)
        if isinstance(outcome, Fail) and not self._follows:
            return Fail(f"{NOT_MASTER}: {outcome.error}")
        return outcome

    async def _read(self, key: str | None, first: int, last: int) -> Outcome:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                node = await self._at()
                if node is None:
                    return Fail(f"{NO_MASTER}: the route has no master")
                connection = await self._connected(node)
                least = await self._end_of_master() if self._whole else 0
                return await self._records(connection, key, first, last, least)
        except NotSent as error:
            return Fail(f"not-connected: {error}")
        except TimeoutError:
            return Fail(f"no-answer: no answer in {READ_TIMEOUT_S:g} s")
        except Refused as error:
            return Fail(f"refused: {error}")
        except RemotingError as error:
            return no_answer(f"no-answer: {error}", is_read=True)

    async def _records(self, connection: Connection, key: str | None, first: int, last: int, least: int) -> Outcome:
        """Returns the entries of a key from an offset to another one.

        Raises:
            BadAnswer: The broker gives consumers less than `least` messages, or its answer cannot be read.
        """
        found: list[Value] = []
        offset = max(0, first)
        if least:
            end = await broker_requests.max_offset(connection, self._topic, QUEUE)
            if end < least:
                raise BadAnswer(f"the replica has {end} of {least} messages")
        while offset <= last:
            most = min(last - offset + 1, broker_requests.MOST_MESSAGES)
            pulled = await broker_requests.pull(connection, self._topic, QUEUE, offset, most=most)
            if not pulled.records:
                break
            for record in pulled.records:
                found += [[record.offset, value] for value in values_in(record.body, key)]
            offset += len(pulled.records)
        return Ok(found)

    async def _end_of_master(self) -> int:
        """Returns the offset behind the last message that the master gives to consumers."""
        master = await self._routes.master(fresh=True)
        if master is None:
            raise NotSent("the route has no master")
        return await broker_requests.max_offset(await self._connected(master), self._topic, QUEUE)

    async def _at(self) -> Node | None:
        """Returns the node that the client asks now; None if its route has no master."""
        node = await self._routes.master() if self._follows else self.node
        self.via = node.name if node is not None and self._follows else None
        return node

    async def _connected(self, node: Node) -> Connection:
        found = self._connections.get(node.name)
        if found is None or found.closed:
            found = self._connections[node.name] = await connect(node, CONNECT_TIMEOUT_S)
        return found
