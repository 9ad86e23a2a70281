"""The client of the simulated Raft. It repeats a request with the same number until it gets an answer.

An answer of the state machine ends an operation. A refusal ends it only if no earlier attempt can have reached a log. After an
attempt without an answer, the operation stays indeterminate until the state machine answers. A patient client
(`--patience-ms`) repeats refused requests for a while, so a new leader gets requests at once, as it does from real clients. A
pinned client is not patient, because its node would refuse most repetitions.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.sim.asking import MS, answer_of
from clusters.sim.errors import Broken, Refused
from clusters.systems.sim_raft import outcomes
from clusters.systems.sim_raft.messages import Answer, Command, Query
from clusters.systems.sim_raft.service import CLOSE
from harness.op import ONLY_KEY, Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.asking import NamedConnection
    from clusters.systems.sim_raft.options import SimRaftOptions
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

REFUSAL_PAUSE_S: Final = 0.05
PATIENT_PAUSE_S: Final = 0.02
CLOSE_S: Final = 0.05
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


class SimRaftClient:
    """A `harness.client.RoutedClient` for all workloads.

    Attributes:
        node: The client's own node. A pinned client stays there.
        via: The node that received its last operation; None if the client is pinned.
    """

    def __init__(
        self,
        *,
        connection: NamedConnection,
        node: Node,
        nodes: Sequence[str],
        options: SimRaftOptions,
        follows: bool,
        closes: bool,
    ) -> None:
        """Makes the client of a process.

        Args:
            connection: The connection to the nodes. Its name is the name of the session.
            node: The client's own node.
            nodes: The names of all nodes.
            options: The number of attempts, and the time limit of each.
            follows: Whether the client follows the leader; a pinned client stays at its own node.
            closes: Whether the client closes its session at the end, which frees its locks.
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
        indeterminate: Fail | Info | None = None
        loop = asyncio.get_running_loop()
        patient_until_s = loop.time() + (self._options.patience_ms * MS if self._follows else 0)
        attempts = 0
        while attempts < self._options.attempts:
            answer = await self._ask(request)
            outcome = outcome_of(answer, is_read=is_read)
            if isinstance(outcome, Ok):
                return outcome
            refused = answer.code in outcomes.REFUSED
            if not refused and isinstance(outcome, Fail) and not is_read:
                return outcome  # the state machine's own answer
            self._move(answer)
            if refused and loop.time() < patient_until_s:
                await asyncio.sleep(PATIENT_PAUSE_S)
                continue
            attempts += 1
            if refused:
                await asyncio.sleep(REFUSAL_PAUSE_S)
                if indeterminate is None:
                    return outcome
            else:
                indeterminate = outcome
        return indeterminate or Fail(outcomes.NO_ANSWER)

    async def close(self) -> None:
        """Closes the session. If the request does not reach the leader, the session and its locks stay."""
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
        """Returns the request; None if the state machines do not support it."""
        request = request_of(self._connection.name, self._sequence + 1, invocation)
        self._sequence += isinstance(request, Command)
        return request

    async def _ask(self, request: Command | Query) -> Answer:
        """Sends the request once."""
        return await answer_of(self._connection, self._at, request, timeout_ms=self._options.retry_ms, made=Answer)

    def _move(self, answer: Answer) -> None:
        """Goes to the leader that the answer names, or to the next node if it names none. A pinned client stays."""
        if self._follows and answer.code not in {outcomes.TRANSFERRING, outcomes.NOT_READY}:
            following = (self._nodes.index(self._at) + 1) % len(self._nodes)
            named = answer.leader if answer.leader in self._nodes else None
            self._at = named or self._nodes[following]


def request_of(session: str, sequence: int, invocation: Invocation) -> Command | Query | None:
    """Returns the request of an operation; None if the state machines do not support it.

    Args:
        session: The name of the client.
        sequence: The number of the command in the session.
        invocation: The operation.
    """
    key, value = invocation.key or ONLY_KEY, invocation.value
    if invocation.f == "read":
        return Query("read", key, value)
    match invocation.f, value:
        case "write" | "add", _ if not _is_int64(value):
            return None
        case "cas", _ if not (isinstance(value, list) and len(value) == 2):
            return None
    return Command(session, sequence, invocation.f, key, value)


def outcome_of(answer: Answer, *, is_read: bool) -> Outcome:
    """Returns the outcome of an operation from the answer of a node."""
    if answer.code == outcomes.OK:
        return Ok(answer.value, order=answer.order)
    return outcomes.outcome(answer.code, _text(answer), is_read=is_read)


def _text(answer: Answer) -> str:
    if answer.code == outcomes.NOT_LEADER:
        return f"{answer.leader} leads"
    if answer.code == outcomes.CAS_MISMATCH:
        return f"holds {'nothing' if answer.value is None else answer.value}"
    return ""


def _is_int64(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64
