"""Brokers that are alive to controllers: each has a connection of its own to every controller, for as long as it lives.

A controller takes a broker for dead when the connection of its heartbeat closes, or when it did not hear of it for longer than
the heartbeat said; here that is a day. On dledger each controller knows the heartbeats that it got itself, so each gets all.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from clusters.systems.rocketmq.requests import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.systems.remoting import Answer, Connection
    from clusters.systems.rocketmq.client import Controllers
    from harness.node import Node

Place = tuple[str, int, str]


class Heartbeats:
    """The connections of the brokers of all groups."""

    def __init__(self, controllers: Controllers) -> None:
        self._controllers = controllers
        self._connections: dict[Place, Connection] = {}

    async def beat(self, name: str, argument: Mapping[str, Any], timeout_s: float) -> dict[str, Answer]:
        """Sends a heartbeat to every controller.

        Args:
            name: The broker group.
            argument: `id`, `epoch`, `max_offset` and `priority` of the broker.
            timeout_s: How long all answers may take.

        Returns:
            Node to its answer.

        Raises:
            RemotingError: A controller cannot be reached, or did not answer.
            TimeoutError: Some did not answer in time.
        """

        async def one(node: Node) -> Answer:
            place = (name, int(argument["id"]), node.name)
            connection = self._connections.get(place)
            if connection is None or connection.closed:
                connection = self._connections[place] = await self._controllers.connect(node, timeout_s)
            return await REQUESTS["heartbeat"].ask(connection, name, argument)

        nodes = self._controllers.nodes
        async with asyncio.timeout(timeout_s):
            answers = await asyncio.gather(*map(one, nodes))
        return {node.name: answer for node, answer in zip(nodes, answers, strict=True)}

    def leave(self, name: str) -> None:
        """Closes the connections of all brokers of a group: they are dead from now on."""
        for place in [place for place in self._connections if place[0] == name]:
            self._connections.pop(place).close()

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
