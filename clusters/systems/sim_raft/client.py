"""The client of the simulated Raft: one process' requests, repeated under one number until there is an answer.

The first answer that says what became of a command ends it. A refusal does so only if no earlier attempt can have come to a
log: after an attempt without an answer, the operation stays in doubt until the state machine itself has answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from clusters.sim.errors import Broken, Refused
from clusters.systems.sim_raft import outcomes
from clusters.systems.sim_raft.messages import Answer, Command, Query
from clusters.systems.sim_raft.service import CLOSE, ONLY_KEY
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.sim_raft.options import SimRaftOptions
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

MS: Final = 0.001
REFUSAL_PAUSE_S: Final = 0.05
CLOSE_S: Final = 0.05
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


class NodeConnection(Protocol):
    """A client's way to the nodes; see `clusters.sim.system.Connection`."""

    name: str

    async def ask(self, node: str, body: object, timeout_s: float | None) -> object:
        """Asks a node and waits for its answer, for a time."""
        ...


class SimRaftClient:
    """A `harness.client.RoutedClient` for all workloads.

    Attributes:
        node: Where it was placed, and where it stays if it does not follow.
        via: The node that its last operation was sent to; None if it does not follow.
    """

    def __init__(
        self,
        *,
        connection: NodeConnection,
        node: Node,
        nodes: Sequence[str],
        options: SimRaftOptions,
        follows: bool,
        closes: bool,
    ) -> None:
        """Makes the client of a process.

        Args:
            connection: Its way to the nodes; its name is that of the session.
            node: Where it is placed.
            nodes: The names of all nodes.
            options: How often it asks, and how long it waits.
            follows: Whether it asks where the leader is, rather than at its node.
            closes: Whether it ends its session, which frees its locks.
        """
        self.node = node
        self.via: str | None = None
        self._connection = connection
        self._nodes = nodes
        self._options = options
        self._follows = follows
        self._closes = closes
        self._at = node.name
        self._sequence = 0

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of one of the workloads."""
        self.via = self._at if self._follows else None
        request = self._request(invocation)
        if request is None:
            return Fail(f"{outcomes.UNSUPPORTED}: {invocation.f} of {str(invocation.value)[:100]}")
        is_read = isinstance(request, Query)
        doubt: Fail | Info | None = None
        for _ in range(self._options.attempts):
            answer = await self._ask(request)
            if answer.code == outcomes.OK:
                return Ok(answer.value, order=answer.order)
            found = outcomes.outcome(answer.code, _text(answer), is_read=is_read)
            if answer.code not in outcomes.REFUSED and isinstance(found, Fail) and not is_read:
                return found  # the state machine's own word
            self._move(answer)
            if answer.code in outcomes.REFUSED:
                await asyncio.sleep(REFUSAL_PAUSE_S)
                if doubt is None:
                    return found
            else:
                doubt = found
        return doubt or Fail(outcomes.NO_ANSWER)

    async def close(self) -> None:
        """Ends the session. If that does not reach the leader, the session stays, with whatever lock it holds."""
        if not self._closes:
            return
        self._sequence += 1
        request = Command(self._connection.name, self._sequence, CLOSE, ONLY_KEY, None)
        for node in self._nodes:
            try:
                await self._connection.ask(node, request, CLOSE_S)
            except (Refused, Broken, TimeoutError):
                continue

    def _request(self, invocation: Invocation) -> Command | Query | None:
        """Returns what to send; None for what the machines cannot take."""
        key, value = invocation.key or ONLY_KEY, invocation.value
        if invocation.f == "read":
            return Query("read", key, value)
        match invocation.f, value:
            case "write" | "add", _ if not _is_int64(value):
                return None
            case "cas", _ if not (isinstance(value, list) and len(value) == 2):
                return None
        self._sequence += 1
        return Command(self._connection.name, self._sequence, invocation.f, key, value)

    async def _ask(self, request: Command | Query) -> Answer:
        """Asks once."""
        try:
            answer = await self._connection.ask(self._at, request, self._options.retry_ms * MS)
        except Refused:
            return Answer(outcomes.NOT_CONNECTED)
        except (Broken, TimeoutError):
            return Answer(outcomes.NO_ANSWER)
        return answer if isinstance(answer, Answer) else Answer(outcomes.NO_ANSWER)

    def _move(self, answer: Answer) -> None:
        """Turns to the leader that a node names; where none is known, to the next node. A pinned client stays."""
        if self._follows and answer.code not in {outcomes.TRANSFERRING, outcomes.NOT_READY}:
            following = (self._nodes.index(self._at) + 1) % len(self._nodes)
            named = answer.leader if answer.leader in self._nodes else None
            self._at = named or self._nodes[following]


def _text(answer: Answer) -> str:
    if answer.code == outcomes.NOT_LEADER:
        return f"{answer.leader} leads"
    if answer.code == outcomes.CAS_MISMATCH:
        return f"holds {'nothing' if answer.value is None else answer.value}"
    return ""


def _is_int64(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64
