"""The heartbeats of brokers: each living broker has its own connection to every controller.

A controller regards a broker as dead when the connection of its heartbeats closes, or after the heartbeat's time-out, which is
a day here. On dledger, a controller knows only the heartbeats that it received itself, so each broker sends them to all.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from clusters.kit.remoting import NotSent, RemotingError
from clusters.systems.rocketmq.outcomes import SUCCESS
from clusters.systems.rocketmq.requests import REQUESTS
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.kit.remoting import Answer, Connection
    from clusters.systems.rocketmq.client import Controllers
    from harness.node import Node
    from harness.op import Outcome

Place = tuple[str, int, str]


class Heartbeats:
    """The connections of the brokers of all groups."""

    def __init__(self, controllers: Controllers) -> None:
        self._controllers = controllers
        self._connections: dict[Place, Connection] = {}

    async def beat(self, name: str, argument: Mapping[str, Any], timeout_s: float) -> dict[str, Answer | RemotingError]:
        """Sends a heartbeat to every controller.

        Args:
            name: The broker group.
            argument: `id`, `epoch`, `max_offset` and `priority` of the broker.
            timeout_s: The time limit of each answer.

        Returns:
            The answer of each node, or the error.
        """

        async def one(node: Node) -> Answer | RemotingError:
            place = (name, int(argument["id"]), node.name)
            connection = self._connections.get(place)
            try:
                async with asyncio.timeout(timeout_s):
                    if connection is None or connection.closed:
                        connection = self._connections[place] = await self._controllers.connect(node, timeout_s)
                    return await REQUESTS["heartbeat"].ask(connection, name, argument)
            except TimeoutError:
                return RemotingError(f"{node.name} did not answer a heartbeat in {timeout_s:g} s")
            except RemotingError as error:
                return error

        nodes = self._controllers.nodes
        answers = await asyncio.gather(*map(one, nodes))
        return {node.name: answer for node, answer in zip(nodes, answers, strict=True)}

    def leave(self, name: str, broker: int | None = None) -> None:
        """Closes the connections of a broker, or of all brokers of a group. The controllers then regard them as dead."""
        for place in [place for place in self._connections if place[0] == name and broker in {place[1], None}]:
            self._connections.pop(place).close()

    def leave_others(self, name: str) -> None:
        """Closes the connections of the brokers of all groups but one."""
        for other in {place[0] for place in self._connections} - {name}:
            self.leave(other)

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def heartbeat_outcome(answers: Mapping[str, Answer | RemotingError]) -> Outcome:
    """Returns the outcome of a heartbeat: `Ok` if any controller accepted it, `Fail` if it was sent to none.

    Args:
        answers: The answer of each node, or the error.
    """
    errors = [answer for answer in answers.values() if isinstance(answer, RemotingError)]
    others = [answer for answer in answers.values() if not isinstance(answer, RemotingError)]
    if any(answer.status == SUCCESS for answer in others):
        return Ok({"code": SUCCESS})
    if not others and all(isinstance(error, NotSent) for error in errors):
        return Fail(f"not-connected: {'; '.join(map(str, errors))[:300]}")
    reasons = [*(f"code {answer.status}" for answer in others), *map(str, errors)]
    return Info(f"no-answer: {'; '.join(reasons)[:300]}")
