"""The heartbeats of brokers: each living broker has its own connection to every controller.

A controller regards a broker as dead when the connection of its heartbeats closes, or after the heartbeat's time-out, which is
a day here. On dledger, a controller knows only the heartbeats that it received itself, so each broker sends them to all.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from clusters.kit.answers import InDoubt, NoAnswer, NotDone, NotSent
from clusters.kit.contracts import NO_ANSWER, NOT_CONNECTED
from clusters.systems.dledger.remoting import Answer
from clusters.systems.rocketmq.outcomes import SUCCESS
from clusters.systems.rocketmq.requests import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.systems.dledger.remoting import Connection
    from clusters.systems.rocketmq.client import Controllers
    from harness.node import Node
    from harness.op import Value

Place = tuple[str, int, str]
Said = Answer | NotSent | NoAnswer


class Heartbeats:
    """The connections of the brokers of all groups."""

    def __init__(self, controllers: Controllers) -> None:
        self._controllers = controllers
        self._connections: dict[Place, Connection] = {}

    async def beat(self, name: str, argument: Mapping[str, Any], timeout_s: float) -> dict[str, Said]:
        """Sends a heartbeat to every controller.

        Args:
            name: The broker group.
            argument: `id`, `epoch`, `max_offset` and `priority` of the broker.
            timeout_s: The time limit of each answer.

        Returns:
            The answer of each node, or the error.
        """

        async def one(node: Node) -> Said:
            connection_key = (name, int(argument["id"]), node.name)
            connection = self._connections.get(connection_key)
            try:
                async with asyncio.timeout(timeout_s):
                    if connection is None or connection.closed:
                        connection = self._connections[connection_key] = await self._controllers.connect(
                            node, timeout_s
                        )
                    return await REQUESTS["heartbeat"].ask(connection, name, argument)
            except TimeoutError:
                return NoAnswer(f"{node.name} did not answer a heartbeat in {timeout_s:g} s")
            except (NotSent, NoAnswer) as error:
                return error

        nodes = self._controllers.nodes
        answers = await asyncio.gather(*map(one, nodes))
        return {node.name: answer for node, answer in zip(nodes, answers, strict=True)}

    async def leave(self, name: str, broker: int | None = None) -> None:
        """Closes the connections of a broker, or of all brokers of a group. The controllers then regard them as dead."""
        for connection_key in [
            connection_key
            for connection_key in self._connections
            if connection_key[0] == name and broker in {connection_key[1], None}
        ]:
            await self._connections.pop(connection_key).close()

    async def leave_others(self, name: str) -> None:
        """Closes the connections of the brokers of all groups but one."""
        for other in {connection_key[0] for connection_key in self._connections} - {name}:
            await self.leave(other)

    async def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()


def accepted(answers: Mapping[str, Said]) -> Value:
    """Returns the result of a heartbeat, if any controller accepted it.

    Args:
        answers: The answer of each node, or the error.

    Raises:
        NotDone: It was sent to none.
        InDoubt: None is known to have accepted it.
    """
    others = [answer for answer in answers.values() if isinstance(answer, Answer)]
    errors = [answer for answer in answers.values() if not isinstance(answer, Answer)]
    if any(answer.status == SUCCESS for answer in others):
        return {"code": SUCCESS}
    if not others and all(isinstance(error, NotSent) for error in errors):
        raise NotDone(NOT_CONNECTED, "; ".join(map(str, errors))[:300])
    reasons = [*(f"code {answer.status}" for answer in others), *map(str, errors)]
    raise InDoubt(NO_ANSWER, "; ".join(reasons)[:300])
