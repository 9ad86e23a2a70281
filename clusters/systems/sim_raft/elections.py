"""Elections (sections 3.4 and 3.6), with pre-vote as an option (9.6).

- A node votes once in a term, and only for a candidate whose log is at least as up to date as its own. It compares the terms of
  the last entries, then the lengths (3.6.1). It records its vote before it answers.
- A node ignores requests for votes within the minimum election timeout after a message of a leader (4.2.3). Leases depend on
  this rule (6.4.1). So with leases, a node also ignores them for this time after its start: it may have heard a leader just
  before. Without leases it votes at once.
- The rule does not hold for an election that a leader has requested (3.10).
- A candidate repeats its request to nodes that have not answered, at the heartbeat interval. (The Raft paper of 2014, 5.1.)
- A node that repairs its log neither votes nor becomes a candidate; see `storage`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.messages import AskVote, Vote
from clusters.systems.sim_raft.options import Reads
from clusters.systems.sim_raft.roles import Role

if TYPE_CHECKING:
    from clusters.systems.sim_raft.messages import TimeoutNow
    from clusters.systems.sim_raft.raft import Raft


class Elections:
    """A node's part in elections, as a voter and as a candidate."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft
        self._timeout_ns = raft.options.election_ms * 1_000_000
        self._heard_ns: int | None = None
        self._deadline_ns = 0
        self._pre = False
        self._term = 0  # the term of the current candidacy
        self._votes: list[str] = []
        self._answered: set[str] = set()
        self._question: AskVote | None = None  # that of the current candidacy

    def start(self) -> None:
        """Starts the election timer."""
        raft = self._raft
        if raft.options.reads is Reads.LEASE and Bug.RESTARTED_VOTER_BREAKS_LEASE not in raft.bugs:
            self._heard_ns = raft.now_ns()
        self._postpone()
        self._wait()

    def leader_heard(self) -> None:
        """Records a message of this term's leader, which restarts the election timer."""
        self._heard_ns = self._raft.now_ns()
        self._postpone()

    def handle_ask_vote(self, sender: str, message: AskVote) -> None:
        """Answers a candidate's request for a vote."""
        raft, storage = self._raft, self._raft.storage
        if not message.transfer and self._hears_leader():
            return
        if message.pre:
            granted = message.term > storage.term and self._approves(message)
            raft.send(sender, Vote(term=message.term if granted else storage.term, granted=granted, pre=True))
            return
        if message.term > storage.term:
            raft.follow(message.term, None)
        free = storage.vote in {None, sender} or Bug.TWO_VOTES_IN_A_TERM in raft.bugs
        granted = message.term == storage.term and free and self._approves(message)
        if granted:
            if storage.vote != sender:  # a candidate asks until it has an answer
                raft.host.log(f"votes for {sender} in term {message.term}")
            storage.promise(message.term, sender)
            self._postpone()
        raft.send(sender, Vote(term=storage.term, granted=granted, pre=False))

    def handle_vote(self, sender: str, message: Vote) -> None:
        """Counts a vote."""
        raft = self._raft
        is_pre_vote = message.pre and message.granted  # its term has not begun
        if message.term > raft.storage.term and not is_pre_vote:
            raft.follow(message.term, None)
            return
        if raft.role is not Role.CANDIDATE or message.pre is not self._pre:
            return
        if message.term != self._term and Bug.VOTE_OF_OLD_TERM not in raft.bugs:
            return
        self._answered.add(sender)
        if not message.granted:
            return
        if sender not in self._votes or Bug.VOTE_COUNTED_TWICE in raft.bugs:
            self._votes.append(sender)
        self._count()

    def handle_timeout_now(self, message: TimeoutNow) -> None:
        """Begins an election at once, on the leader's request."""
        raft = self._raft
        if message.term == raft.storage.term and raft.role is Role.FOLLOWER and not raft.storage.repairs_until:
            self._campaign(pre=False, transfer=True)

    def _hears_leader(self) -> bool:
        raft = self._raft
        if raft.role is Role.LEADER:
            return raft.replication.heard_quorum(self._timeout_ns)
        return self._heard_ns is not None and raft.now_ns() - self._heard_ns < self._timeout_ns

    def _approves(self, message: AskVote) -> bool:
        storage, bugs = self._raft.storage, self._raft.bugs
        if storage.repairs_until:
            return False
        if Bug.VOTE_FOR_SHORTER_LOG in bugs or (Bug.TRANSFER_UNCHECKED in bugs and message.transfer):
            return True
        if Bug.VOTE_BY_LENGTH in bugs:
            return message.last_index >= storage.last
        return (message.last_term, message.last_index) >= (storage.last_term, storage.last)

    def _campaign(self, *, pre: bool, transfer: bool = False) -> None:
        raft, storage = self._raft, self._raft.storage
        self._postpone()
        self._pre, self._term, self._votes, self._answered = pre, storage.term + 1, [raft.name], set()
        raft.become_candidate()
        if not pre:
            storage.promise(self._term, raft.name)
            raft.host.log(f"asks for votes in term {self._term} with a log up to {storage.last}")
        self._question = AskVote(self._term, storage.last, storage.last_term, pre, transfer)
        self._ask(self._question)
        self._count()

    def _ask(self, question: AskVote) -> None:
        """Requests the votes of the nodes that have not answered, until the candidacy is over."""
        raft = self._raft
        if raft.role is not Role.CANDIDATE or question is not self._question:
            return
        for peer in raft.others:
            if peer not in self._answered:
                raft.send(peer, question)
        raft.after(raft.options.heartbeat_ms * 1_000_000, lambda: self._ask(question))

    def _count(self) -> None:
        if len(self._votes) < self._raft.quorum:
            return
        if self._pre:
            self._campaign(pre=False)
        else:
            self._raft.lead()

    def _postpone(self) -> None:
        wait_ns = self._raft.host.random.randrange(self._timeout_ns, 2 * self._timeout_ns)
        self._deadline_ns = self._raft.now_ns() + wait_ns

    def _wait(self) -> None:
        self._raft.after(self._deadline_ns - self._raft.now_ns(), self._due)

    def _due(self) -> None:
        raft = self._raft
        if raft.now_ns() >= self._deadline_ns:
            if raft.role is Role.LEADER or raft.storage.repairs_until:
                self._postpone()
            else:
                self._campaign(pre=raft.options.pre_vote)
        self._wait()
