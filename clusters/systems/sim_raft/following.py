"""A follower's part in replication: it makes its log equal to the leader's (section 3.5), by entries or a snapshot (5.2, 5.3).

- It accepts entries only after an entry that the leader has too, with the same index and term. Then all earlier entries are
  equal (3.5).
- It drops entries only if they conflict with the leader's: same index, another term. A late message drops nothing.
- It advances its commit index at most to the last entry that this message shows to be the leader's.
- It ignores a snapshot that ends before its own commit index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.messages import Appended
from clusters.systems.sim_raft.roles import Role

if TYPE_CHECKING:
    from clusters.systems.sim_raft.messages import Append, Install
    from clusters.systems.sim_raft.raft import Raft


class Following:
    """Handles the messages of a leader."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft

    def handle_append(self, sender: str, message: Append) -> None:
        """Stores a leader's entries, or accepts its heartbeat, and answers."""
        raft, storage = self._raft, self._raft.storage
        if not self._accept_leader(sender, message):
            return
        retry_after = self._mismatch(message)
        if retry_after is not None:
            self._answer(sender, message, message.term, ok=False, index=retry_after)
            return
        matched = message.prev_index + len(message.entries)
        self._store(message)
        if (message.resets or Bug.STALE_APPEND_CUTS in raft.bugs) and storage.last > max(matched, storage.base):
            storage.cut(max(matched, storage.base) + 1)
        known = storage.last if Bug.COMMIT_PAST_MATCH in raft.bugs else matched
        raft.committed(min(message.commit, known))
        self._answer(sender, message, message.term, ok=True, index=matched)

    def handle_install(self, sender: str, message: Install) -> None:
        """Installs a leader's snapshot, and answers."""
        raft, snapshot = self._raft, message.snapshot
        if not self._accept_leader(sender, message):
            return
        if snapshot.index > raft.commit or Bug.OLD_SNAPSHOT_INSTALLED in raft.bugs:
            raft.install(snapshot)
        self._answer(sender, message, message.term, ok=True, index=snapshot.index)

    def _answer(self, sender: str, message: Append | Install, term: int, *, ok: bool, index: int) -> None:
        self._raft.send(sender, Appended(term, ok=ok, index=index, round=message.round, number=message.number))

    def _accept_leader(self, sender: str, message: Append | Install) -> bool:
        """Follows the leader of a term, or answers that its term is over. Returns whether the node follows it."""
        raft, storage, term = self._raft, self._raft.storage, message.term
        if term < storage.term:
            if Bug.OLD_LEADER_OBEYED in raft.bugs and raft.role is Role.FOLLOWER:
                return True
            self._answer(sender, message, storage.term, ok=False, index=storage.last)
            return False
        if term > storage.term or raft.role is not Role.FOLLOWER or raft.leader != sender:
            raft.follow(term, sender)
        raft.elections.leader_heard()
        return True

    def _mismatch(self, message: Append) -> int | None:
        """Compares the logs before the message's entries.

        Returns:
            None if they agree; otherwise the index after which the leader should try again.
        """
        storage, index = self._raft.storage, message.prev_index
        if index > storage.last:
            return storage.last
        term = storage.term_at(index)
        if index < storage.base or term == message.prev_term or Bug.PREVIOUS_TERM_NOT_CHECKED in self._raft.bugs:
            return None
        while (
            index > storage.base and storage.term_at(index) == term
        ):  # skips all entries of the conflicting term (3.5)
            index -= 1
        return index

    def _store(self, message: Append) -> None:
        storage = self._raft.storage
        for position, entry in enumerate(message.entries):
            index = message.prev_index + 1 + position
            if index <= storage.base:
                continue
            term = storage.term_at(index)
            if term == entry.term:
                continue
            if term is not None:
                storage.cut(index)
            storage.append(message.entries[position:])
            return
