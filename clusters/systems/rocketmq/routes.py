"""The route of a client: the master of a topic, as a name server said it the last time.

Like a client of RocketMQ, it asks again after an interval, and not because a broker refused. A name server that does not answer
does not change the route.

Source: RocketMQ 5.3.3, `MQClientInstance.startScheduledTask` and `updateTopicRouteInfoFromNameServer`; `pollNameServerInterval`
is 30 s.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.exchange import asked_once
from clusters.systems.rocketmq.broker_requests import PORT, master_of
from clusters.systems.rocketmq.name_servers import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.dledger.remoting import Connection
    from harness.node import Node

TIMEOUT_S: Final = 1.0


class Routes:
    """The route of one client."""

    def __init__(self, *, name_servers: Sequence[Node], brokers: Sequence[Node], topic: str, interval_s: float) -> None:
        """Asks for nothing yet.

        Args:
            name_servers: The nodes of the name servers.
            brokers: The nodes of the brokers.
            topic: The topic.
            interval_s: The seconds after which it asks again.
        """
        self._name_servers = name_servers
        self._brokers = brokers
        self._topic = topic
        self._interval_s = interval_s
        self._asked_s: float | None = None  # when a name server answered for the last time, by the clock of the loop
        self._master: Node | None = None

    async def master(self, *, fresh: bool = False) -> Node | None:
        """Returns the master of the route; None if the route has none, or no name server has answered.

        Without an answer, the last route stays, and the next operation asks again.

        Args:
            fresh: Whether to ask in any case.
        """
        now_s = asyncio.get_running_loop().time()
        if fresh or self._asked_s is None or now_s - self._asked_s >= self._interval_s:
            for node in self._name_servers:
                answer = await asked_once(connect(node, TIMEOUT_S), self._ask, TIMEOUT_S)
                if answer is not None:
                    self._asked_s, self._master = now_s, self._at(answer[0])
                    break
        return self._master

    async def _ask(self, connection: Connection) -> tuple[str | None]:
        return (await master_of(connection, self._topic),)

    def _at(self, address: str | None) -> Node | None:
        return next((node for node in self._brokers if address == f"{node.address}:{PORT}"), None)
