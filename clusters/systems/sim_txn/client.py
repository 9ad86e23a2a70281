"""The client of the simulated store: a transaction is one request for each micro-operation, and one for the commit.

It sends each transaction to the node that it believes to lead, and asks the next node if that one does not. It sends a commit
again until it has an answer: the leaders carry it out once. A transaction without an answer to its commit may have happened.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NotDone, Refused
from clusters.kit.contracts import Seen, Transactions, by_workload
from clusters.kit.transactions import applied, keys_of, only_reads
from clusters.sim.asking import answer_of
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import Bug
from clusters.systems.sim_txn.messages import Answer, Commit, ReadOnly, Step
from clusters.systems.sim_txn.options import ReadsFrom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.kit.transactions import Mops
    from clusters.sim.asking import NamedConnection
    from clusters.systems.sim_txn.options import SimTxnOptions
    from harness.node import Node
    from harness.op import Value

PAUSE_S: Final = 0.03  # after a node that does not answer, or does not lead
BEGINS: Final = 4  # how many nodes it asks to begin a transaction


class SimTxnTransactions(Transactions):
    """A `harness.client.RoutedClient` for transactions.

    Attributes:
        node: The client's own node.
        via: The node that got its last request; None before the first.
    """

    serves = "txn is a request for each micro-operation and one for the commit, at the leader"
    never_happened = outcomes.NEVER_HAPPENED
    read_timeout_s = None  # each request has one

    def __init__(
        self, *, connection: NamedConnection, node: Node, nodes: Sequence[str], first: int, options: SimTxnOptions
    ) -> None:
        """Makes the client of a process.

        Args:
            connection: The connection to the nodes.
            node: The client's own node.
            nodes: The names of all nodes.
            first: The place of the node that it asks first. Transactions that only read ask it alone, if the options say so.
            options: How long it waits for an answer, and how often it sends a commit.
        """
        self.node = node
        self.via: str | None = None
        self._connection = connection
        self._nodes = nodes
        self._replica = self._leader = nodes[first % len(nodes)]
        self._options = options
        self._transactions = 0

    def name_of(self, code: str) -> str:
        """Returns the code, which is that of an answer."""
        return code

    async def carry_out(self, key: str, mops: Mops) -> Seen:  # noqa: ARG002 - all transactions are on the same keys
        """Carries out a transaction."""
        if self._options.reads_from is ReadsFrom.REPLICA and only_reads(mops):
            return await self._read(mops)
        try:
            return await self._transact(mops)
        except Refused as error:
            if (
                self._options.bug is not Bug.RETRIES_UNKNOWN
                or error.code in outcomes.NEVER_HAPPENED
                or only_reads(mops)
            ):
                raise
        return await self._transact(mops)

    async def failed(self, error: Exception) -> None:
        """Does nothing: the client has paused after each request without an answer."""

    async def close(self) -> None:
        """Does nothing: a connection has no state on the nodes."""

    async def _read(self, mops: Mops) -> Seen:
        names = keys_of(mops)
        answer = await self._ask(self._replica, ReadOnly(tuple(names)))
        if answer.code != outcomes.OK or not isinstance(answer.value, list):
            raise Refused(answer.code, "")
        results, _ = applied(mops, dict(zip(names, answer.value, strict=True)))
        return Seen(results)

    async def _transact(self, mops: Mops) -> Seen:
        self._transactions += 1
        name = f"{self._connection.name}/{self._transactions}"
        epoch: int | None = None
        results: list[Value] = []
        for number, (function, key, value) in enumerate(mops):
            step = Step(name, epoch, number, (str(function), str(key), value))
            answer = await (self._begin(step) if number == 0 else self._ask(self._leader, step))
            if answer.code != outcomes.OK or answer.epoch is None or epoch not in {None, answer.epoch}:
                raise NotDone(answer.code, "")
            epoch = answer.epoch
            results.append([function, key, answer.value])
        return Seen([]) if epoch is None else await self._commit(Commit(name, epoch, len(mops)), results)

    async def _begin(self, step: Step) -> Answer:
        """Sends the first step of a transaction, to other nodes too: it has no effect."""
        answer = Answer(outcomes.NO_ANSWER)
        for _ in range(BEGINS):
            answer = await self._ask(self._leader, step)
            if answer.code not in {outcomes.NOT_LEADER, outcomes.NOT_CONNECTED}:
                break
        return answer

    async def _commit(self, commit: Commit, results: list[Value]) -> Seen:
        may_be_done = False
        answer = Answer(outcomes.NO_ANSWER)
        for _ in range(self._options.commit_attempts):
            answer = await self._ask(self._leader, commit)
            if answer.code == outcomes.OK:
                return Seen(results, answer.value if isinstance(answer.value, int) else None)
            if answer.code in outcomes.NEVER_HAPPENED:
                break
            may_be_done = may_be_done or answer.code != outcomes.NOT_CONNECTED
        raise Refused(answer.code, "") if may_be_done else NotDone(answer.code, "")

    async def _ask(self, node: str, body: Step | Commit | ReadOnly) -> Answer:
        self.via = node
        answer = await answer_of(self._connection, node, body, timeout_ms=self._options.answer_ms, made=Answer)
        if answer.code in {outcomes.NOT_CONNECTED, outcomes.NO_ANSWER, outcomes.NOT_LEADER}:
            following = self._nodes[(self._nodes.index(node) + 1) % len(self._nodes)]
            self._leader = following if answer.leader in {None, node} else answer.leader
            await asyncio.sleep(PAUSE_S)
        return answer


CLIENTS: Final = by_workload(SimTxnTransactions)
