"""A follower's part in replication: its log becomes the leader's (section 3.5), by entries or by a snapshot (5.2, 5.3).

- Entries are taken only behind one that the leader has too: same index, same term. Then all before it are the same (3.5).
- Entries are dropped only where they conflict with the leader's: same index, another term. A late message drops nothing.
- What is committed is at most what this message has shown to be the leader's.
- A snapshot of what is committed here already is not taken.
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
    """What a node does with what a leader sends."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft

    def handle_append(self, sender: str, message: Append) -> None:
        """Takes a leader's entries, or its heartbeat, and answers."""
        raft, storage = self._raft, self._raft.storage
        if not self._accept_leader(sender, message.term, message.round):
            return
        ready = self._mismatch(message)
        if ready is not None:
            raft.send(sender, Appended(message.term, ok=False, index=ready, round=message.round))
            return
        matched = message.prev_index + len(message.entries)
        self._store(message)
        if (message.resets or raft.bug is Bug.STALE_APPEND_CUTS) and storage.last > max(matched, storage.base):
            storage.cut(max(matched, storage.base) + 1)
        known = storage.last if raft.bug is Bug.COMMIT_PAST_MATCH else matched
        raft.committed(min(message.commit, known))
        raft.send(sender, Appended(message.term, ok=True, index=matched, round=message.round))

    def handle_install(self, sender: str, message: Install) -> None:
        """Takes a leader's snapshot, and answers."""
        raft, snapshot = self._raft, message.snapshot
        if not self._accept_leader(sender, message.term, message.round):
            return
        if snapshot.index > raft.commit or raft.bug is Bug.OLD_SNAPSHOT_INSTALLED:
            raft.install(snapshot)
        raft.send(sender, Appended(message.term, ok=True, index=snapshot.index, round=message.round))

    def _accept_leader(self, sender: str, term: int, round_: int) -> bool:
        """Follows the leader of a term, or tells it that its term has passed."""
        raft, storage = self._raft, self._raft.storage
        if term < storage.term:
            if raft.bug is Bug.OLD_LEADER_OBEYED and raft.role is Role.FOLLOWER:
                return True
            raft.send(sender, Appended(storage.term, ok=False, index=storage.last, round=round_))
            return False
        if term > storage.term or raft.role is not Role.FOLLOWER or raft.leader != sender:
            raft.follow(term, sender)
        raft.elections.leader_heard()
        return True

    def _mismatch(self, message: Append) -> int | None:
        """Returns the index behind which the leader should try, if the logs differ in front of the entries."""
        storage, index = self._raft.storage, message.prev_index
        if index > storage.last:
            return storage.last
        term = storage.term_at(index)
        if index < storage.base or term == message.prev_term or self._raft.bug is Bug.PREVIOUS_TERM_NOT_CHECKED:
            return None
        while index > storage.base and storage.term_at(index) == term:  # the whole term is another leader's (3.5)
            index -= 1
        return index

    def _store(self, message: Append) -> None:
        storage = self._raft.storage
        for place, entry in enumerate(message.entries):
            index = message.prev_index + 1 + place
            if index <= storage.base:
                continue
            term = storage.term_at(index)
            if term == entry.term:
                continue
            if term is not None:
                storage.cut(index)
            storage.append(message.entries[place:])
            return
