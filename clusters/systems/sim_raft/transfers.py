"""Leadership transfer (section 3.10): a leader brings a follower's log up to date, and requests that it begins an election.

The leader accepts no commands meanwhile, for one election timeout at most. The voters take part in this election at once,
although they still hear the leader. So from then on the leader does not trust a lease in this term (6.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.systems.sim_raft import outcomes
from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.messages import Answer, TimeoutNow
from clusters.systems.sim_raft.roles import Role

if TYPE_CHECKING:
    from clusters.systems.sim_raft.raft import Raft


class Transfers:
    """The leadership transfer of a node."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft
        self._to: str | None = None
        self._deadline_ns = 0
        self._sent = False
        self._sent_term = 0  # the term of the last TimeoutNow message

    @property
    def is_active(self) -> bool:
        """Returns whether a transfer is in progress, so that the leader accepts no commands."""
        return self._to is not None

    def ask(self, client: str, request: int, to: str) -> None:
        """Begins a transfer, and answers at once."""
        raft = self._raft
        if raft.role is not Role.LEADER:
            raft.refuse(client, request)
            return
        if to in raft.others:
            self._to, self._sent = to, False
            self._deadline_ns = raft.now_ns() + raft.options.election_ms * 1_000_000
        elif to != raft.name:
            raft.answer(client, request, Answer(outcomes.UNSUPPORTED))
            return
        raft.answer(client, request, Answer(outcomes.OK))
        self.advance()

    def advance(self) -> None:
        """Sends `TimeoutNow` to the follower, if its log is up to date."""
        raft = self._raft
        if self._to is None or raft.role is not Role.LEADER or self._sent:
            return
        if raft.replication.match_of(self._to) >= raft.storage.last or Bug.TRANSFER_UNCHECKED in raft.bugs:
            self._sent, self._sent_term = True, raft.storage.term
            raft.send(self._to, TimeoutNow(raft.storage.term))

    def expire(self) -> None:
        """Ends the transfer after an election timeout."""
        if self._raft.now_ns() >= self._deadline_ns:
            self._to = None

    def leadership_lost(self) -> None:
        """Ends the transfer, because the node is not the leader any more."""
        self._to = None

    def breaks_lease(self) -> bool:
        """Returns whether a follower may have begun an election during this leader's lease."""
        return self._sent_term == self._raft.storage.term and Bug.LEASE_KEPT_IN_TRANSFER not in self._raft.bugs
