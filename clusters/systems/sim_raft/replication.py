"""A leader's part in replication: it sends its log to the followers, and commits entries (sections 3.5 and 3.6.2).

- A leader begins its term with an entry of its own.
- It commits an entry of its own term when a majority has the entry. This commits all earlier entries too.
- Each message has the number of a *round*, which the answer repeats. If a majority answers a round in the leader's term, the
  leader was the leader when the round began. Reads and leases depend on this (6.4).
- A leader sends the next entries to a follower after the answer to its last message, and a heartbeat in any case. So a
  duplicate answer causes no further message.
- A leader steps down if it gets no answers from a majority for two election timeouts (6.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.messages import Append, Entry, Install
from clusters.systems.sim_raft.options import Reads
from clusters.systems.sim_raft.roles import Role

if TYPE_CHECKING:
    from clusters.systems.sim_raft.messages import Appended
    from clusters.systems.sim_raft.raft import Raft

LEASE_SHARE: Final = 0.9  # a lease's part of the minimum election timeout; below 1 because clocks differ in speed
LONG_LEASE: Final = 3.0  # the same with a planted bug


@dataclass(slots=True)
class Progress:
    """A leader's knowledge about a follower.

    Attributes:
        next: The index of the next entry to send.
        match: The last entry that the follower certainly has.
        round: The last round that the follower answered.
        heard_ns: The time of its last answer.
        number: The number of the last message to it.
        waits: Whether this message is unanswered.
        resets: Whether the follower must still drop its entries from `next` on; only with a planted bug.
    """

    next: int
    match: int
    round: int
    heard_ns: int
    number: int = 0
    waits: bool = False
    resets: bool = False


class Replication:
    """Replicates the leader's log. Only a leader uses it."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft
        self._peers: dict[str, Progress] = {}
        self._round = 0
        self._began_ns: dict[int, int] = {}
        self._first_last = raft.storage.last  # the last index at the start of the process

    def begin(self) -> None:
        """Begins the leadership of a term."""
        raft, storage, now_ns = self._raft, self._raft.storage, self._raft.now_ns()
        resets = Bug.COMMITTED_ENTRIES_CUT in raft.bugs
        old = self._peers if Bug.MATCH_OF_OLD_TERM in raft.bugs else {}
        self._peers = {}
        for peer in raft.others:
            following = min(storage.last, max(self._first_last, storage.base)) + 1 if resets else storage.last + 1
            match = old[peer].match if peer in old else 0
            self._peers[peer] = Progress(next=following, match=match, round=0, heard_ns=now_ns, resets=resets)
        self._began_ns.clear()
        if Bug.OLD_TERM_COMMITTED_BY_COUNT not in raft.bugs:
            storage.append((Entry(storage.term, b""),))
        self._commit()
        self._beat(storage.term)

    def propose(self, body: bytes) -> int:
        """Appends an entry to the leader's log and sends it. Returns its index."""
        storage = self._raft.storage
        storage.append((Entry(storage.term, body),))
        index = storage.last
        for peer, progress in self._peers.items():
            if not progress.waits:
                self._send(peer, progress)
        self._commit()
        return index

    def handle_appended(self, sender: str, message: Appended) -> None:
        """Handles a follower's answer."""
        raft, storage = self._raft, self._raft.storage
        if message.term > storage.term and Bug.HIGHER_TERM_IGNORED not in raft.bugs:
            raft.follow(message.term, None)
            return
        if raft.role is not Role.LEADER or message.term < storage.term:
            return
        progress = self._peers[sender]
        progress.heard_ns = raft.now_ns()
        answered = progress.waits and message.number == progress.number
        progress.waits = progress.waits and not answered
        progress.round = max(progress.round, message.round)
        before = progress.next
        if message.ok:
            progress.resets = False
            progress.match = max(progress.match, message.index)
            progress.next = max(progress.next, progress.match + 1)
            self._commit()
        elif message.term == storage.term:
            progress.match = min(progress.match, message.index)  # lower if its disk has lost acknowledged entries
            progress.next = min(progress.next - 1, message.index) + 1
        raft.reads.answer_confirmed()
        raft.transfers.advance()
        # A follower that refuses entries which it had before gets the next message with the next heartbeat. An immediate retry
        # could repeat without a pause.
        moves = answered and (message.ok or progress.next < before)
        if moves and raft.role is Role.LEADER and message.term == storage.term and progress.next <= storage.last:
            self._send(sender, progress)

    def new_round(self) -> int:
        """Begins a round, sends it to all followers, and returns its number."""
        self._round += 1
        if self._raft.options.reads is Reads.LEASE:
            self._began_ns[self._round] = self._raft.lease_clock_ns()
        for peer, progress in self._peers.items():
            self._send(peer, progress)
        return self._round

    def confirmed_round(self) -> int:
        """Returns the last round that a majority, this node included, has answered in this term; 0 if there is none."""
        rounds = sorted([self._round, *(progress.round for progress in self._peers.values())], reverse=True)
        return rounds[self._raft.quorum - 1]

    def has_lease(self) -> bool:
        """Returns whether the lease is valid (6.4.1): a majority has answered a recent round, so no other node can lead yet."""
        raft, confirmed = self._raft, self.confirmed_round()
        for number in [number for number in self._began_ns if number < confirmed]:
            del self._began_ns[number]
        share = LONG_LEASE if Bug.LEASE_TOO_LONG in raft.bugs else LEASE_SHARE
        began_ns = self._began_ns.get(confirmed)
        return began_ns is not None and raft.lease_clock_ns() < began_ns + share * raft.options.election_ms * 1_000_000

    def heard_quorum(self, within_ns: int) -> bool:
        """Returns whether a majority, this node included, has answered within the last `within_ns`."""
        since_ns = self._raft.now_ns() - within_ns
        return 1 + sum(progress.heard_ns > since_ns for progress in self._peers.values()) >= self._raft.quorum

    def match_of(self, peer: str) -> int:
        """Returns the last entry that a follower certainly has."""
        return self._peers[peer].match

    def _beat(self, term: int) -> None:
        raft = self._raft
        if raft.role is not Role.LEADER or raft.storage.term != term:
            return
        if not self.heard_quorum(2 * raft.options.election_ms * 1_000_000):
            raft.follow(term, None)
            return
        raft.transfers.expire()
        self.new_round()
        raft.after(raft.options.heartbeat_ms * 1_000_000, lambda: self._beat(term))

    def _send(self, peer: str, progress: Progress) -> None:
        storage = self._raft.storage
        progress.waits = True
        progress.number += 1
        if progress.next <= storage.base and storage.snapshot is not None:
            self._raft.send(peer, Install(storage.term, storage.snapshot, self._round, progress.number))
            return
        previous = progress.next - 1
        entries = () if progress.resets else storage.after(previous, self._raft.options.batch)
        term = storage.term_at(previous) or 0
        message = Append(
            storage.term, previous, term, entries, self._raft.commit, self._round, progress.number, progress.resets
        )
        self._raft.send(peer, message)

    def _commit(self) -> None:
        raft, storage = self._raft, self._raft.storage
        ends = sorted([storage.last, *(progress.match for progress in self._peers.values())], reverse=True)
        index = ends[raft.quorum - 1]
        if index > raft.commit and (
            storage.term_at(index) == storage.term or Bug.OLD_TERM_COMMITTED_BY_COUNT in raft.bugs
        ):
            raft.committed(min(index, storage.last))
