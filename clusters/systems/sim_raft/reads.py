"""Reads without a log entry (section 6.4).

A read is linearizable if the leader's state has every entry that was committed before the leader received the read. So:

1. The leader has committed an entry of its own term. Then it knows the commit index.
2. The leader knows that it still led when it received the read: a majority answers a round that began later (ReadIndex), or its
   lease is valid.
3. The leader has applied all entries up to that commit index. This always holds here: a node applies entries when it commits
   them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clusters.systems.sim_raft import outcomes
from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.messages import Answer, Command
from clusters.systems.sim_raft.options import Reads
from clusters.systems.sim_raft.roles import Role
from clusters.systems.sim_raft.service import encoded

if TYPE_CHECKING:
    from clusters.systems.sim_raft.messages import Query
    from clusters.systems.sim_raft.raft import Raft


class _Waiting(NamedTuple):
    round: int
    client: str
    request: int
    query: Query


class ReadService:
    """Answers queries."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft
        self._waiting: list[_Waiting] = []

    def ask(self, client: str, request: int, query: Query) -> None:
        """Answers a query, at once or after the leadership is confirmed."""
        raft = self._raft
        if Bug.FOLLOWER_READS in raft.bugs:
            self._answer(client, request, query)
        elif raft.role is not Role.LEADER:
            raft.refuse(client, request)
        elif raft.options.reads is Reads.LOG:
            raft.propose(client, request, encoded(Command("", 0, *query)))
        elif Bug.READ_WITHOUT_QUORUM in raft.bugs:
            self._answer(client, request, query)
        elif not raft.serves() and Bug.READ_BEFORE_OWN_ENTRY not in raft.bugs:
            raft.answer(client, request, Answer(outcomes.NOT_READY))
        elif raft.options.reads is Reads.LEASE and not raft.transfers.breaks_lease() and raft.replication.has_lease():
            self._answer(client, request, query)
        else:
            self._waiting.append(_Waiting(raft.replication.new_round(), client, request, query))
            self.answer_confirmed()

    def answer_confirmed(self) -> None:
        """Answers the queries whose round is now confirmed."""
        if not self._waiting:
            return
        number = self._raft.replication.confirmed_round()
        ready = [read for read in self._waiting if read.round <= number]
        self._waiting = [read for read in self._waiting if read.round > number]
        for read in ready:
            self._answer(read.client, read.request, read.query)

    def leadership_lost(self) -> None:
        """Refuses all waiting queries, because the node is not the leader any more."""
        waiting, self._waiting = self._waiting, []
        for read in waiting:
            self._raft.refuse(read.client, read.request)

    def _answer(self, client: str, request: int, query: Query) -> None:
        self._raft.answer(client, request, Answer(*self._raft.service.read(query)))
