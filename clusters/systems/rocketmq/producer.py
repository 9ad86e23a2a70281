"""One producer of RocketMQ: its connections to brokers, and its sends, which never repeat.

A producer that follows goes to the master in its route. A pinned one stays at the broker of its node.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import InDoubt, NoAnswer, NotDone, NotSent, worded
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.bodies import Sizes, filled
from clusters.systems.rocketmq.broker_outcomes import (
    END_REFUSED,
    HALF_MESSAGE,
    NO_MASTER,
    NOT_MASTER,
    REFUSED,
    ROLLED_BACK,
    SUCCESS,
    refusal,
)
from clusters.systems.rocketmq.brokers import connect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.remoting import Answer, Connection
    from clusters.systems.rocketmq.batches import Batches
    from clusters.systems.rocketmq.routes import Routes
    from harness.node import Node

CONNECT_TIMEOUT_S: Final = 1.0
NAME: Final = 32  # characters of the name of a transaction
ROLLED_BACK_OF: Final = 5  # one of so many transactions is rolled back
UNFILLED: Final = Sizes(least=0, most=0)


class Producer:
    """A producer.

    Attributes:
        via: The master that it asked last; None if it is pinned, or knows no master.
        routes: Its route.
    """

    def __init__(
        self,
        *,
        node: Node,
        routes: Routes,
        follows: bool,
        sizes: Sizes = UNFILLED,
        certain: Mapping[int, Sequence[str]] = REFUSED,
        batches: Batches | None = None,
        hold_s: float | None = None,
    ) -> None:
        """Connects with the first request.

        Args:
            node: The node at whose broker it stays if it does not follow.
            routes: Its route.
            follows: Whether it goes to the master in its route.
            sizes: The sizes of the bodies of its messages.
            certain: The refusals that are certain; see `broker_outcomes`.
            batches: The batches in which it sends; None: each message goes alone.
            hold_s: The seconds between a half message and the end of its transaction; None: no transactions.
        """
        self.via: str | None = None
        self.routes = routes
        self._node = node
        self._follows = follows
        self._sizes = sizes
        self._certain = certain
        self._batches = batches
        self._hold_s = hold_s
        self._connections: dict[str, Connection] = {}

    async def at(self) -> Node:
        """Returns the node that it asks now.

        Raises:
            NotDone: Its route has no master.
        """
        node = await self.routes.master() if self._follows else self._node
        self.via = node.name if node is not None and self._follows else None
        if node is None:
            raise NotDone(NO_MASTER, "the route has no master")
        return node

    async def connected(self, node: Node) -> Connection:
        """Returns its connection to the broker of a node, which carries one request at a time.

        Raises:
            NotSent: The broker cannot be reached.
        """
        connection = self._connections.get(node.name)
        if connection is None or connection.closed:
            connection = self._connections[node.name] = await connect(node, CONNECT_TIMEOUT_S)
        return connection

    async def send(self, topic: str, queue: int, entry: bytes) -> int | None:
        """Sends an entry once, and returns its offset; None if the message was in a transaction.

        Only the timeout of the caller ends the wait for an answer.

        Raises:
            NotDone: The message is certainly not in the log, or not visible; `InDoubt`: it may be there.
            NotSent: The broker cannot be reached.
            NoAnswer: The broker gives no usable answer.
        """
        body = filled(entry, self._sizes)
        node = await self.at()
        if self._batches is not None:
            return await self._batches.send(node, topic, queue, body)
        if self._hold_s is not None:
            await self._in_transaction(node, topic, queue, body, self._hold_s)
            return None
        connection = await self.connected(node)
        answer = await broker_requests.send(connection, topic, queue, body, broker_requests.now_ms())
        if answer.status != SUCCESS:
            raise self._refusal(answer)
        return broker_requests.offset_of(answer, queue)

    async def _in_transaction(self, node: Node, topic: str, queue: int, body: bytes, hold_s: float) -> None:
        """Sends a half message, and ends its transaction at the broker that it then asks, as RocketMQ's own producers do.

        Only a commit that was sent can make the message visible. So all else is certain.

        Raises:
            NotDone: No commit was sent, or it was refused for certain; `InDoubt`: it was refused otherwise.
            NotSent: No commit was sent.
            NoAnswer: The commit got no usable answer.
        """
        name = hashlib.sha256(f"{topic}/{queue}/".encode() + body).hexdigest()[:NAME]  # no other transaction has it
        connection = await self.connected(node)
        try:
            half = await broker_requests.send_half(connection, topic, queue, body, broker_requests.now_ms(), name=name)
        except (NotSent, NoAnswer) as error:
            raise NotDone(HALF_MESSAGE, str(error)) from error
        if half.status != SUCCESS:
            refused = self._refusal(half)
            if isinstance(refused, InDoubt):
                raise NotDone(HALF_MESSAGE, worded(refused.code, str(refused)))
            raise refused
        await asyncio.sleep(hold_s)
        commits = zlib.crc32(body) % ROLLED_BACK_OF != 0
        at = await self.at()
        try:
            answer = await broker_requests.end_transaction(await self.connected(at), topic, half, name, commits=commits)
        except (NotSent, NoAnswer) as error:
            if commits:
                raise
            raise NotDone(ROLLED_BACK, str(error)) from error
        if not commits:
            raise NotDone(
                ROLLED_BACK, f"the producer rolled the transaction back; the code of the answer is {answer.status}"
            )
        if answer.status != SUCCESS:
            raise refusal(answer.status, answer.remark, END_REFUSED)

    async def close(self) -> None:
        """Closes the connections."""
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    def _refusal(self, answer: Answer) -> NotDone:
        """Returns the error of a send that was refused. A pinned producer usually asks a slave, which is no outage."""
        refused = refusal(answer.status, answer.remark, self._certain)
        if isinstance(refused, InDoubt) or self._follows:
            return refused
        return NotDone(NOT_MASTER, worded(refused.code, str(refused)))
