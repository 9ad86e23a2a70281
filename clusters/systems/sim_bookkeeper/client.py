"""The client of the simulated BookKeeper. It asks the client node that it knows as the writer.

It repeats a request that a client node refuses. After two refusals, or a request without an answer, it asks the next client
node to take over. Each n-th append goes to another client node, which takes over (`--takeover-every`). A client for final reads
stays at one client node, which takes over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import unsupported
from clusters.sim.asking import answer_of
from clusters.systems.sim_bookkeeper import outcomes
from clusters.systems.sim_bookkeeper.messages import Answer, Append, Query
from clusters.systems.sim_bookkeeper.outcomes import outcome
from harness.op import ONLY_KEY, Fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.asking import NodeConnection
    from clusters.systems.sim_bookkeeper.options import SimBookkeeperOptions
    from harness.node import Node
    from harness.op import Invocation, Outcome

ATTEMPTS: Final = 5
PATIENT_REFUSALS: Final = 2  # before a client asks for a takeover
REFUSAL_PAUSE_S: Final = 0.03


class SimBookkeeperClient:
    """A `harness.client.RoutedClient` for the workload `log`.

    Attributes:
        node: The client's own node.
        via: The client node that got its last request; None before the first.
    """

    def __init__(
        self,
        *,
        connection: NodeConnection,
        node: Node,
        clients: Sequence[str],
        home: str | None,
        options: SimBookkeeperOptions,
    ) -> None:
        """Makes the client of a process.

        Args:
            connection: The connection to the nodes.
            node: The client's own node.
            clients: The names of the client nodes.
            home: The client node to stay at; None: it asks the writer.
            options: How often it takes over, and how long it waits for an answer.
        """
        self.node = node
        self.via: str | None = None
        self._connection = connection
        self._clients = clients
        self._home = home
        self._options = options
        self._at = home or clients[0]
        self._appends = 0
        self._saw_silence = False

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an append or a read."""
        takes_over = self._home is not None or self._saw_silence
        if invocation.f == "append":
            self._appends += 1
            every = self._options.takeover_every
            if every and self._appends % every == 0:
                self._at, takes_over = self._other(), True
        result: Outcome = Fail(outcomes.NO_ANSWER)
        for refusals in range(ATTEMPTS):
            body = request_of(invocation, takes_over=takes_over or refusals >= PATIENT_REFUSALS)
            if body is None:
                return unsupported(invocation.f, invocation.value)
            self.via = self._at
            answer = await self._ask(body)
            result = outcome(answer, is_read=invocation.f == "read")
            if answer.code not in outcomes.REFUSED:
                self._saw_silence = answer.code == outcomes.NO_ANSWER
                if answer.code != outcomes.OK:
                    self._move(None)
                return result
            self._move(answer.writer)
            await asyncio.sleep(REFUSAL_PAUSE_S)
        return result

    async def close(self) -> None:
        """Does nothing: a connection has no state on the nodes."""

    async def _ask(self, body: Append | Query) -> Answer:
        return await answer_of(self._connection, self._at, body, timeout_ms=self._options.answer_ms, made=Answer)

    def _move(self, writer: str | None) -> None:
        """Goes to the writer that an answer names, or to the other client node."""
        if self._home is None:
            self._at = self._other() if writer is None or writer == self._at else writer

    def _other(self) -> str:
        return next(name for name in self._clients if name != self._at)


def request_of(invocation: Invocation, *, takes_over: bool) -> Append | Query | None:
    """Returns the request of an operation; None if the system does not have it."""
    key, value = invocation.key or ONLY_KEY, invocation.value
    match invocation.f, value:
        case "append", _:
            return Append(key, value, takes_over)
        case "read", int() if not isinstance(value, bool):
            return Query(key, value, value, single=True, takes_over=takes_over)
        case "read", [int() as first, int() as last]:
            return Query(key, first, last, single=False, takes_over=takes_over)
    return None
