"""A leader's part in replication: it sends its log to its followers, and commits what a majority has (sections 3.5 and 3.6.2).

- A leader begins its term with an entry of its own.
- It commits an entry when a majority has it and the entry is of its own term; all entries before it are committed with it.
- Each message has the number of a *round*, which the answer repeats. A leader that gets answers to a round from a majority,
  in its own term, led when the round began. Reads and leases rest on that (6.4).
- A leader that has not heard a majority for two election timeouts steps down (6.2).
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

LEASE_SHARE: Final = 0.9  # of the shortest election timeout, for clocks that do not run alike
LONG_LEASE: Final = 3.0  # of a planted bug


@dataclass(slots=True)
class Progress:
    """What a leader knows about a follower.

    Attributes:
        next: The first entry that it sends.
        match: The last entry that the follower certainly has.
        round: The last round that the follower answered.
        heard_ns: When it did.
        waits: Whether entries are on their way, and no answer has come.
        resets: Whether the follower is still to drop what it has behind `next`; only with a planted bug.
    """

    next: int
    match: int
    round: int
    heard_ns: int
    waits: bool = False
    resets: bool = False


class Replication:
    """What a leader does for its log. It is of use in the role of a leader only."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft
        self._peers: dict[str, Progress] = {}
        self._round = 0
        self._began_ns: dict[int, int] = {}
        self._first_last = raft.storage.last  # where the log ended when the process was started

    def begin(self) -> None:
        """Begins a leadership."""
        raft, storage, now_ns = self._raft, self._raft.storage, self._raft.now_ns()
        resets = raft.bug is Bug.COMMITTED_ENTRIES_CUT
        old = self._peers if raft.bug is Bug.MATCH_OF_OLD_TERM else {}
        self._peers = {}
        for peer in raft.others:
            following = min(storage.last, max(self._first_last, storage.base)) + 1 if resets else storage.last + 1
            match = old[peer].match if peer in old else 0
            self._peers[peer] = Progress(next=following, match=match, round=0, heard_ns=now_ns, resets=resets)
        self._began_ns.clear()
        if raft.bug is not Bug.OLD_TERM_COMMITTED_BY_COUNT:
            storage.append((Entry(storage.term, b""),))
        self._commit()
        self._beat(storage.term)

    def propose(self, body: bytes) -> int:
        """Appends an entry to the leader's own log and sends it; returns its index."""
        storage = self._raft.storage
        storage.append((Entry(storage.term, body),))
        index = storage.last
        for peer, progress in self._peers.items():
            if not progress.waits:
                self._send(peer, progress)
        self._commit()
        return index

    def handle_appended(self, sender: str, message: Appended) -> None:
        """Takes a follower's answer."""
        raft, storage = self._raft, self._raft.storage
        if message.term > storage.term and raft.bug is not Bug.HIGHER_TERM_IGNORED:
            raft.follow(message.term, None)
            return
        if raft.role is not Role.LEADER or message.term < storage.term:
            return
        progress = self._peers[sender]
        progress.heard_ns = raft.now_ns()
        progress.waits = False
        progress.round = max(progress.round, message.round)
        before = progress.next
        if message.ok:
            progress.resets = False
            progress.match = max(progress.match, message.index)
            progress.next = max(progress.next, progress.match + 1)
            self._commit()
        elif message.term == storage.term:
            progress.match = min(progress.match, message.index)  # lower where its disk has lost what it acknowledged
            progress.next = min(progress.next - 1, message.index) + 1
        raft.reads.answer_confirmed()
        raft.transfers.advance()
        # Who refuses what it has taken before is asked again with the next heartbeat only, or this would go on without a pause.
        moves = message.ok or progress.next < before
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
        """Returns the last round that a majority has answered in this term, this node included; 0 if there is none."""
        rounds = sorted([self._round, *(progress.round for progress in self._peers.values())], reverse=True)
        return rounds[self._raft.quorum - 1]

    def has_lease(self) -> bool:
        """Returns whether no other node can lead yet (6.4.1): a majority answered a round that began a moment ago."""
        raft, confirmed = self._raft, self.confirmed_round()
        for number in [number for number in self._began_ns if number < confirmed]:
            del self._began_ns[number]
        share = LONG_LEASE if raft.bug is Bug.LEASE_TOO_LONG else LEASE_SHARE
        began_ns = self._began_ns.get(confirmed)
        return began_ns is not None and raft.lease_clock_ns() < began_ns + share * raft.options.election_ms * 1_000_000

    def heard_quorum(self, within_ns: int) -> bool:
        """Returns whether a majority, this node included, has answered within a time before now."""
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
        if progress.next <= storage.base and storage.snapshot is not None:
            self._raft.send(peer, Install(storage.term, storage.snapshot, self._round))
            return
        previous = progress.next - 1
        entries = () if progress.resets else storage.after(previous, self._raft.options.batch)
        term = storage.term_at(previous) or 0
        message = Append(storage.term, previous, term, entries, self._raft.commit, self._round, progress.resets)
        self._raft.send(peer, message)

    def _commit(self) -> None:
        raft, storage = self._raft, self._raft.storage
        ends = sorted([storage.last, *(progress.match for progress in self._peers.values())], reverse=True)
        index = ends[raft.quorum - 1]
        if index > raft.commit and (
            storage.term_at(index) == storage.term or raft.bug is Bug.OLD_TERM_COMMITTED_BY_COUNT
        ):
            raft.committed(min(index, storage.last))
