"""One producer of RocketMQ: its connections to brokers, and its sends, which never repeat.

A producer that follows goes to the master in its route. A pinned one stays at the broker of its node.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from clusters.systems.remoting import NotSent, RemotingError
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.bodies import Sizes, filled
from clusters.systems.rocketmq.broker_outcomes import NO_MASTER, NOT_MASTER, SUCCESS, refused
from clusters.systems.rocketmq.brokers import connect
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from clusters.systems.remoting import Connection
    from clusters.systems.rocketmq.routes import Routes
    from harness.node import Node
    from harness.op import Outcome

CONNECT_TIMEOUT_S: Final = 1.0
MS_PER_S: Final = 1000
UNFILLED: Final = Sizes(least=0, most=0)
WITHOUT_MASTER: Final = Fail(f"{NO_MASTER}: the route has no master")


class Producer:
    """A producer.

    Attributes:
        via: The master that it asked last; None if it is pinned, or knows no master.
        routes: Its route.
    """

    def __init__(self, *, node: Node, routes: Routes, follows: bool, sizes: Sizes = UNFILLED) -> None:
        """Connects with the first request.

        Args:
            node: The node at whose broker it stays if it does not follow.
            routes: Its route.
            follows: Whether it goes to the master in its route.
            sizes: The sizes of the bodies of its messages.
        """
        self.via: str | None = None
        self.routes = routes
        self._node = node
        self._follows = follows
        self._sizes = sizes
        self._connections: dict[str, Connection] = {}

    async def at(self) -> Node | None:
        """Returns the node that it asks now; None if its route has no master."""
        node = await self.routes.master() if self._follows else self._node
        self.via = node.name if node is not None and self._follows else None
        return node

    async def connected(self, node: Node) -> Connection:
        """Returns its connection to the broker of a node, which carries one request at a time.

        Raises:
            NotSent: The broker cannot be reached.
        """
        found = self._connections.get(node.name)
        if found is None or found.closed:
            found = self._connections[node.name] = await connect(node, CONNECT_TIMEOUT_S)
        return found

    async def send(self, topic: str, queue: int, entry: bytes) -> Outcome:
        """Sends an entry once; its offset is the answer. Only the timeout of the caller ends the wait for the answer."""
        try:
            node = await self.at()
            if node is None:
                return WITHOUT_MASTER
            connection = await self.connected(node)
            body = filled(entry, self._sizes)
            answer = await broker_requests.send(connection, topic, queue, body, int(time.time() * MS_PER_S))
            if answer.status != SUCCESS:
                return self._refused(answer.status, answer.remark)
            offset = broker_requests.offset_of(answer, queue)
        except NotSent as error:
            return Fail(f"not-connected: {error}")
        except RemotingError as error:
            return Info(f"no-answer: {error}")
        return Ok(offset, order=offset)

    def close(self) -> None:
        """Closes the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _refused(self, status: int, remark: str) -> Fail | Info:
        """Returns the outcome of a send that was refused. A pinned producer usually asks a slave, which is no outage."""
        outcome = refused(status, remark)
        if isinstance(outcome, Fail) and not self._follows:
            return Fail(f"{NOT_MASTER}: {outcome.error}")
        return outcome
