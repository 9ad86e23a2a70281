"""The client of the simulated store: a transaction is one request for each micro-operation, and one for the commit.

It sends a commit again until it has an answer: the primary carries it out once. A transaction without an answer to its commit
may have happened.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from clusters.sim.errors import Broken, Refused
from clusters.systems.answers import unsupported
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import Bug
from clusters.systems.sim_txn.messages import Answer, Commit, ReadOnly, Step
from clusters.systems.transactions import TRANSACTION, applied, keys_of, only_reads
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from clusters.systems.sim_txn.options import SimTxnOptions
    from clusters.systems.transactions import Mops
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

MS: Final = 0.001
PAUSE_S: Final = 0.03  # after a node that does not answer


class NodeConnection(Protocol):
    """A client's connection to the nodes; see `clusters.sim.system.Connection`."""

    name: str

    async def ask(self, node: str, body: object, timeout_s: float | None) -> object:
        """Sends a request to a node, and waits for the answer within a time limit."""
        ...


class SimTxnClient:
    """A `harness.client.RoutedClient` for transactions.

    Attributes:
        node: The client's own node.
        via: The node that got its last request; None before the first.
    """

    def __init__(
        self, *, connection: NodeConnection, node: Node, primary: str, replica: str | None, options: SimTxnOptions
    ) -> None:
        """Makes the client of a process.

        Args:
            connection: The connection to the nodes.
            node: The client's own node.
            primary: The node that carries out transactions.
            replica: The node that transactions which only read ask; None: the primary.
            options: How long it waits for an answer, and how often it sends a commit.
        """
        self.node = node
        self.via: str | None = None
        self._connection = connection
        self._primary = primary
        self._replica = replica
        self._options = options
        self._transactions = 0

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out a transaction."""
        if invocation.f != TRANSACTION:
            return unsupported(invocation.f, invocation.value)
        mops: Mops = invocation.value
        if self._replica is not None and only_reads(mops):
            return await self._read(self._replica, mops)
        outcome = await self._transact(mops)
        if isinstance(outcome, Info) and self._options.bug is Bug.RETRIES_UNKNOWN:
            outcome = await self._transact(mops)
        return outcome

    async def close(self) -> None:
        """Does nothing: a connection has no state on the nodes."""

    async def _read(self, replica: str, mops: Mops) -> Outcome:
        names = keys_of(mops)
        answer = await self._ask(replica, ReadOnly(tuple(names)))
        if answer.code != outcomes.OK or not isinstance(answer.value, list):
            return Fail(answer.code)
        found, _ = applied(mops, dict(zip(names, answer.value, strict=True)))
        return Ok(found)

    async def _transact(self, mops: Mops) -> Outcome:
        self._transactions += 1
        name = f"{self._connection.name}/{self._transactions}"
        epoch: int | None = None
        results: list[Value] = []
        for number, (function, key, value) in enumerate(mops):
            answer = await self._ask(self._primary, Step(name, epoch, number, (str(function), str(key), value)))
            if answer.code != outcomes.OK or answer.epoch is None or epoch not in {None, answer.epoch}:
                return Fail(answer.code)
            epoch = answer.epoch
            results.append([function, key, answer.value])
        return Ok([]) if epoch is None else await self._commit(Commit(name, epoch, len(mops)), mops, results)

    async def _commit(self, commit: Commit, mops: Mops, results: list[Value]) -> Outcome:
        may_be_done = False
        for _ in range(self._options.commit_attempts):
            answer = await self._ask(self._primary, commit)
            if answer.code == outcomes.OK:
                return Ok(results)
            if answer.code in outcomes.FAILED:
                return Fail(answer.code)
            may_be_done = may_be_done or answer.code == outcomes.NO_ANSWER
        return Info(answer.code) if may_be_done and not only_reads(mops) else Fail(answer.code)

    async def _ask(self, node: str, body: Step | Commit | ReadOnly) -> Answer:
        self.via = node
        try:
            answer = await self._connection.ask(node, body, self._options.answer_ms * MS)
        except Refused:
            await asyncio.sleep(PAUSE_S)
            return Answer(outcomes.NOT_CONNECTED)
        except (Broken, TimeoutError):
            await asyncio.sleep(PAUSE_S)
            return Answer(outcomes.NO_ANSWER)
        return answer if isinstance(answer, Answer) else Answer(outcomes.NO_ANSWER)
