"""The durable state of a node (section 3.8): its promises, its log and its last snapshot.

- `promises` and `promises-copy`: term, vote, and the *mark*, which is index and term of the last synced entry. The node writes
  both files before it acts on them, with a version. One file that is damaged, or of an earlier time, loses nothing.
- `log`: records of length, checksum, index, term and body. The first record stands for the last entry that the log has dropped.
  Before the node acknowledges an entry, it appends and syncs the record, and then moves the mark.
- `snapshot`: index, term and state. The node replaces it as a whole, before it cuts the log.

Everything has a checksum. A restart reads the log's records up to the first torn or damaged one. A torn end after the mark was
never acknowledged, so the node cuts it off. If the log ends before the mark, the disk has lost acknowledged entries. If it has
another term at the mark, it is the log of an earlier time, and the node drops all of it after the snapshot. In both cases, the
node takes no part in elections until a leader has sent it the committed entries up to the mark. Until then it is *repairing*.
This is a simple form of the rule in Alagappan et al., "Protocol-aware recovery for consensus-based storage" (FAST 2018).
"""

from __future__ import annotations

import json
import struct
import zlib
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.messages import Entry, Snapshot

if TYPE_CHECKING:
    from clusters.sim.host import Disk

PROMISES: Final = ("promises", "promises-copy")
LOG: Final = "log"
SNAPSHOT: Final = "snapshot"
_HEADER: Final = struct.Struct(">IIQQ")  # length of the body, checksum of the rest, index, term
_PLACE: Final = struct.Struct(">QQ")
_CHECKSUM: Final = struct.Struct(">I")
_MAX_BODY_BYTES: Final = 1 << 20
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"))


class DamagedDiskError(Exception):
    """Both copies of term and vote are damaged, so the node no longer knows its promises."""


class Storage:
    """A node's durable state, with a copy of it in memory.

    Attributes:
        term: The latest term that the node has seen.
        vote: The node that it voted for in this term; None if it did not vote.
        entries: The log after `base`.
        base: The index of the last entry that the log has dropped.
        base_term: The term of that entry.
        snapshot: The last snapshot; None if there is none. It contains all entries up to `base`, and maybe more.
        repairs_until: The mark while the node is repairing; 0 if no entry is lost.
    """

    def __init__(self, disk: Disk, bugs: frozenset[Bug]) -> None:
        self._disk = disk
        self._bugs = bugs
        self._starts: list[int] = []  # the offset of each record in the file
        self._size = 0
        self._mark = 0
        self._mark_term: int | None = 0
        self._version = 0  # of the promises
        self.term = 0
        self.vote: str | None = None
        self.entries: list[Entry] = []
        self.base = 0
        self.base_term = 0
        self.snapshot: Snapshot | None = None
        self.repairs_until = 0

    # -- the log in memory ---------------------------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """Returns the index of the last entry."""
        return self.base + len(self.entries)

    @property
    def last_term(self) -> int:
        """Returns the term of the last entry."""
        return self.entries[-1].term if self.entries else self.base_term

    def term_at(self, index: int) -> int | None:
        """Returns the term of the entry at an index; None if the log does not have it."""
        position = index - self.base
        if 0 < position <= len(self.entries):
            return self.entries[position - 1].term
        return self.base_term if position == 0 else None

    def at(self, index: int) -> Entry:
        """Returns the entry at an index above `base`."""
        return self.entries[index - self.base - 1]

    def after(self, index: int, limit: int) -> tuple[Entry, ...]:
        """Returns at most `limit` entries after an index, which must not be below `base`."""
        position = index - self.base
        return tuple(self.entries[position : position + limit])

    # -- durable changes -----------------------------------------------------------------------------------------------------

    def promise(self, term: int, vote: str | None) -> None:
        """Stores a term and the vote in it. The node must not send either before this returns."""
        self.term, self.vote = term, vote
        self._keep_promises()

    def append(self, entries: tuple[Entry, ...]) -> None:
        """Appends entries to the log. The node can acknowledge them after this returns."""
        content = bytearray()
        for entry in entries:
            self.entries.append(entry)
            self._starts.append(self._size + len(content))
            content += _record(self.last, entry)
        self._disk.append(LOG, bytes(content))
        self._size += len(content)
        self._synced()

    def cut(self, index: int) -> None:
        """Drops the entry at an index, and all later entries."""
        position = index - self.base - 1
        self._move_mark(index - 1)
        self._size = self._starts[position]
        del self.entries[position:], self._starts[position:]
        self._disk.truncate(LOG, self._size)
        self._disk.sync(LOG)

    def keep_snapshot(self, snapshot: Snapshot, *, trailing: int, alone: bool = False) -> None:
        """Stores a snapshot, and then drops the entries that it contains, except the last `trailing` ones.

        If the log's entry at the snapshot's index is missing or has another term, this drops the whole log.

        Args:
            snapshot: The snapshot.
            trailing: The number of entries to keep of those in the snapshot.
            alone: Whether to drop the whole log in any case.
        """
        self._disk.write(SNAPSHOT, _sealed([snapshot.index, snapshot.term, snapshot.body.decode()]))
        self._disk.sync(SNAPSHOT)
        self.snapshot = snapshot
        term = self.term_at(snapshot.index)
        same = term == snapshot.term or (term is not None and Bug.SNAPSHOT_KEEPS_CONFLICT in self._bugs)
        if same and not alone:
            base = max(self.base, snapshot.index - trailing)
            self._rebase(base, self.term_at(base) or 0, self.entries[base - self.base :])
        else:
            self._rebase(snapshot.index, snapshot.term, [])

    def repaired(self) -> None:
        """Ends the repair: all entries up to the mark are in the log again, and committed."""
        self.repairs_until = 0
        self._move_mark(self.last)

    def _rebase(self, base: int, base_term: int, entries: list[Entry]) -> None:
        self.base, self.base_term, self.entries = base, base_term, list(entries)
        self._move_mark(min(self._mark, self.last))
        records = [_record(base, Entry(base_term, b""))]
        records += [_record(base + 1 + index, entry) for index, entry in enumerate(self.entries)]
        self._place(records)
        self._disk.write(LOG, b"".join(records))
        self._synced()

    def _place(self, records: list[bytes]) -> None:
        ends = list(accumulate(len(record) for record in records))
        self._starts, self._size = ends[:-1], ends[-1]

    def _synced(self) -> None:
        if Bug.ACKNOWLEDGED_BEFORE_FSYNC in self._bugs:
            return
        self._disk.sync(LOG)
        self._move_mark(self.last)

    def _move_mark(self, index: int) -> None:
        if index >= self.repairs_until:
            self._mark, self._mark_term = index, self.term_at(index)
        self._keep_promises()

    def _keep_promises(self) -> None:
        self._version += 1
        term = 0 if Bug.TERM_NOT_PERSISTED in self._bugs else self.term
        vote = None if {Bug.TERM_NOT_PERSISTED, Bug.VOTE_NOT_PERSISTED} & self._bugs else self.vote
        content = _sealed([self._version, term, vote, self._mark, self._mark_term])
        for name in PROMISES:
            self._disk.write(name, content)
            self._disk.sync(name)

    # -- a restart -----------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Reads the disk. After an error of the disk, writes all files again first.

        Raises:
            DamagedDiskError: Both copies of term and vote are damaged.
            OSError: The disk is full, or has an error again.
        """
        names = self._disk.names()
        if self._disk.errors and Bug.FAILED_SYNC_TRUSTED not in self._bugs:
            for name in names:  # what a failed sync left can be read, and no later sync makes it durable
                self._disk.write(name, self._disk.read(name))
        for name in names:
            self._disk.sync(name)  # a killed process may have left writes without a sync
        self._load_promises(names)
        unsealed = _unsealed(self._read(SNAPSHOT))
        if unsealed is not None:
            self.snapshot = Snapshot(unsealed[0], unsealed[1], unsealed[2].encode())
        if not {Bug.LOG_END_NOT_RESTORED, Bug.LOST_ENTRIES_NOT_NOTICED} & self._bugs:
            self.repairs_until = self._mark  # `_load_log` must not lower the mark
        mark, mark_term = self._mark, self._mark_term
        self._load_log()
        if self.repairs_until and mark_term is not None and self.term_at(mark) not in {None, mark_term}:
            self._mark, self._mark_term = mark, mark_term
            snapshot = self.snapshot or Snapshot(0, 0, b"")
            self._rebase(snapshot.index, snapshot.term, [])
        if self.last >= self.repairs_until:
            self.repairs_until = 0
        self.term = max(self.term, self.last_term)  # the log's is higher only if a bug lost the term
        self._move_mark(self.last)

    def _load_promises(self, names: list[str]) -> None:
        copies = [copy for copy in (_unsealed(self._read(name)) for name in PROMISES) if copy is not None]
        if copies:
            newest = copies[0] if Bug.OLDER_PROMISES_TRUSTED in self._bugs else max(copies, key=lambda copy: copy[0])
            self._version, self.term, self.vote, self._mark, self._mark_term = newest
        elif names:
            raise DamagedDiskError(f"{' and '.join(PROMISES)} cannot be read, so this node cannot take part any more")

    def _load_log(self) -> None:
        content = self._read(LOG)
        records = _records(content, checked=Bug.CHECKSUM_NOT_VERIFIED not in self._bugs)
        if Bug.LOG_END_NOT_RESTORED in self._bugs and len(records) > 1:
            records.pop()
        snapshot = self.snapshot or Snapshot(0, 0, b"")
        if not records or records[0][0] > snapshot.index:  # its start, or the snapshot before it, is damaged
            self._rebase(snapshot.index, snapshot.term, [])
            return
        (self.base, (self.base_term, _), _), *others = records
        self.entries = [entry for _, entry, _ in others]
        self._place([record for _, _, record in records])
        if self.term_at(snapshot.index) != snapshot.term:
            self._rebase(snapshot.index, snapshot.term, [])
        elif self._size < len(content):
            self._disk.truncate(LOG, self._size)
            self._disk.sync(LOG)

    def _read(self, name: str) -> bytes:
        try:
            return self._disk.read(name)
        except FileNotFoundError:
            return b""


def _record(index: int, entry: Entry) -> bytes:
    head = _PLACE.pack(index, entry.term)
    return _HEADER.pack(len(entry.body), zlib.crc32(entry.body, zlib.crc32(head)), index, entry.term) + entry.body


def _records(content: bytes, *, checked: bool) -> list[tuple[int, Entry, bytes]]:
    """Returns index, entry and bytes of each record, up to the first that is torn, damaged, or has a wrong index."""
    records: list[tuple[int, Entry, bytes]] = []
    start = 0
    while start + _HEADER.size <= len(content):
        length, checksum, index, term = _HEADER.unpack_from(content, start)
        end = start + _HEADER.size + length
        if length > _MAX_BODY_BYTES or end > len(content):
            break
        body = content[start + _HEADER.size : end]
        if checked and zlib.crc32(body, zlib.crc32(_PLACE.pack(index, term))) != checksum:
            break
        if records and index != records[-1][0] + 1:
            break
        records.append((index, Entry(term, body), content[start:end]))
        start = end
    return records


def _sealed(document: Any) -> bytes:
    body = _COMPACT.encode(document).encode()
    return _CHECKSUM.pack(zlib.crc32(body)) + body


def _unsealed(content: bytes) -> Any:
    """Returns the document in a file; None if it is damaged."""
    if len(content) <= _CHECKSUM.size or _CHECKSUM.unpack_from(content)[0] != zlib.crc32(content[_CHECKSUM.size :]):
        return None
    return json.loads(content[_CHECKSUM.size :])
