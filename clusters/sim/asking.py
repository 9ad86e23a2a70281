"""What the clients and the observers of the simulated systems of Labrys share: one request to a node, and its answer."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, TypeVar

from clusters.sim.errors import Broken, Refused

MS: Final = 0.001  # in seconds
# The codes of what no node answered.
NOT_CONNECTED: Final = "not-connected"  # no process listens on the node, so the request had no effect
NO_ANSWER: Final = "no-answer"  # in time; the request may have had an effect


class AskStatus(NamedTuple):
    """A request for a node's status."""


class Coded(Protocol):
    """An answer that can be made of a code alone."""

    def __init__(self, code: str) -> None: ...


AnswerT = TypeVar("AnswerT", bound=Coded)


class NodeConnection(Protocol):
    """A client's connection to the nodes; see `clusters.sim.system.Connection`."""

    async def ask(self, node: str, body: object, timeout_s: float | None) -> object:
        """Sends a request to a node, and waits for the answer within a time limit."""
        ...


class NamedConnection(NodeConnection, Protocol):
    """A connection with the name of its client, which names sessions or transactions."""

    name: str


async def answer_of(
    connection: NodeConnection, node: str, body: object, *, timeout_ms: float, made: type[AnswerT]
) -> AnswerT:
    """Sends a request once.

    Args:
        connection: The connection to the nodes.
        node: The node's name.
        body: The content of the request.
        timeout_ms: The longest wait in milliseconds.
        made: The class of the answers, which it makes of a code.

    Returns:
        The answer of the node, or one with the code `NOT_CONNECTED` or `NO_ANSWER`.
    """
    try:
        answer = await connection.ask(node, body, timeout_ms * MS)
    except Refused:
        return made(NOT_CONNECTED)
    except (Broken, TimeoutError):
        return made(NO_ANSWER)
    return answer if isinstance(answer, made) else made(NO_ANSWER)
