"""A bookie: it stores entries, and refuses those of writers that were stopped.

- `entry-SEGMENT-OFFSET-KEY`: one entry, with the last add confirmed that came with it. The bookie syncs it before it answers.
- `promise-KEY` and a copy: the version of the promise, the highest term that the bookie knows, the last term whose recovery it
  has ended by deleting entries, the segments that are fenced, and the version of the metadata for which it joined an ensemble.
  The bookie syncs both before it answers.

A damaged entry, or one that a read fails, counts neither as there nor as absent, so the bookie does not answer a recovery about
it. If both files of a promise are damaged, the bookie takes no part any more. If a write or a sync fails, it ends, as a bookie
of BookKeeper does whose journal fails. When it starts again, it writes all files again.

Sources: apache/bookkeeper, docs/development/protocol.md (fencing, recovery); for terms and truncation, the models of
J. Vanlightly (Vanlightly/bookkeeper-tlaplus).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from clusters.sim import asking, files
from clusters.sim.host import DiskError, DiskFull, Reply, Request
from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.ledger_messages import AskConfirmed, AskHeld, ConfirmedIs, Held
from clusters.systems.sim_bookkeeper.messages import Entry
from clusters.systems.sim_bookkeeper.options import Protocol
from harness.node_states import HeldEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.sim.host import Host
    from clusters.systems.sim_bookkeeper.options import SimBookkeeperOptions

ROLE: Final = "bookie"
FENCE_LINE: Final = "fence request for ledger"
_ENTRY: Final = "entry"
_PROMISE: Final = "promise"


@dataclass(frozen=True, slots=True)
class Promise:
    """What a bookie has promised for a log.

    Attributes:
        version: The number of its changes.
        term: The highest term of a request; 0: none. With ledgers, always 0.
        truncated: The last term whose recovery it has ended by deleting entries.
        fenced: The fenced segments, sorted; only with ledgers.
        joined: The last version of the metadata for which it has joined an ensemble by deleting entries.
    """

    version: int = 0
    term: int = 0
    truncated: int = 0
    fenced: tuple[int, ...] = ()
    joined: int = 0


class Bookie:
    """A `clusters.sim.host.Process`.

    Attributes:
        entries: The entries by log and segment, then by offset.
        lacs: The last add confirmed that came with any entry, by log and segment.
    """

    def __init__(self, host: Host, options: SimBookkeeperOptions, *, tells_fences: bool = False) -> None:
        """Makes the process.

        Args:
            host: The machine.
            options: The configuration.
            tells_fences: Whether its log has a line for the first request to fence each ledger.
        """
        self.entries: dict[tuple[str, int], dict[int, Entry]] = {}
        self.lacs: dict[tuple[str, int], int] = {}
        self._host = host
        self._bug = options.bug
        self._protocol = options.protocol
        self._promises: dict[str, Promise] = {}
        self._damaged: set[tuple[str, int, int]] = set()
        self._serves = True
        self._tells_fences = tells_fences
        self._told: set[tuple[str, int]] = set()

    def start(self) -> None:
        """Reads the disk."""
        try:
            files.write_again(self._host.disk)
            promises = files.read_promises(self._host.disk, _PROMISE)
            for key, (version, term, truncated, fenced, joined) in promises.items():
                self._promises[key] = Promise(version, term, truncated, tuple(fenced), joined)
        except (files.DamagedFileError, DiskFull) as error:
            self._serves = False
            self._host.log(f"takes no part: {error}")
            return
        for name in self._host.disk.names():
            if not name.startswith(f"{_ENTRY}-"):
                continue
            _, segment, offset, key = name.split("-", 3)
            try:
                value, truncates, lac = files.read(self._host.disk, name)
            except files.DamagedFileError as error:
                self._host.log(str(error))
                self._damaged.add((key, int(segment), int(offset)))
                continue
            self._keep((key, int(segment)), int(offset), Entry(value, truncates), lac)

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message of a client node, or an observer's request. A full disk makes it drop the message."""
        if not self._serves:
            return
        try:
            self._handle(sender, message)
        except DiskFull as error:
            self._host.log(f"drops a message: {error}")

    def held(self, key: str) -> Iterator[HeldEntry]:
        """Yields the entries of a log, by segment and offset."""
        for own, segment in sorted(self.entries):
            if own == key:
                for offset, entry in sorted(self.entries[own, segment].items()):
                    text = (
                        f"append {entry.value}"
                        if not entry.truncates
                        else f"the end of a recovery in term {entry.truncates}"
                    )
                    yield HeldEntry(index=offset, term=segment, text=text)

    def confirmed(self, key: str) -> int | None:
        """Returns the highest last add confirmed that the bookie knows of a log; None if it knows none."""
        return max((lac for (own, _), lac in self.lacs.items() if own == key), default=None)

    def term(self, key: str) -> int | None:
        """Returns the highest term that the bookie knows; None with ledgers, which have none."""
        return None if self._protocol is Protocol.LEDGERS else self.promise(key).term

    def promise(self, key: str) -> Promise:
        """Returns what it has promised for a log."""
        return self._promises.get(key, Promise())

    def _handle(self, sender: str, message: Any) -> None:
        match message:
            case messages.Add():
                self._add(sender, message)
            case messages.Fence(key, term, segment):
                if self._stops(sender, key, term, segment):
                    self._host.send(sender, messages.Fenced(key, term, self.lacs.get((key, segment), -1)))
            case messages.Join():
                self._join(sender, message)
            case messages.ReadNext():
                self._read_next(sender, message)
            case messages.Fetch(key, number, segment, first, last):
                own = self.entries.get((key, segment), {})
                asked = range(first, last + 1)
                damaged = tuple(offset for offset in asked if self._is_unreadable(key, segment, offset))
                entries = tuple((offset, own[offset]) for offset in asked if offset in own and offset not in damaged)
                self._host.send(sender, messages.Fetched(key, number, segment, first, entries, damaged))
            case AskConfirmed(key, number, segment):
                self._host.send(sender, ConfirmedIs(key, number, self._confirmed_of(key, segment)))
            case Request(number, AskHeld(key)):
                stored = tuple(sorted(self.entries.get((key, 0), {}).items()))
                lost = sorted(offset for own, number, offset in self._damaged if (own, number) == (key, 0))
                self._host.send(sender, Reply(number, Held(stored, tuple(lost))))
            case Request(number, body):
                is_observer = isinstance(body, asking.AskStatus)
                status = messages.Status(ROLE, None, None, None)
                self._host.send(sender, Reply(number, status if is_observer else messages.Answer(outcomes.NOT_CLIENT)))

    def _confirmed_of(self, key: str, segment: int) -> int:
        if self._bug is Bug.UNCONFIRMED_READS:
            return max(self.entries.get((key, segment), {}), default=-1)
        return self.lacs.get((key, segment), -1)

    def _add(self, sender: str, message: messages.Add) -> None:
        key, segment, offset, entry = message.key, message.segment, message.offset, message.entry
        if self._bug is not Bug.ADDS_NOT_FENCED or message.recovery:
            if self._protocol is Protocol.LEDGERS:
                if not message.recovery and segment in self.promise(key).fenced:
                    self._host.send(sender, messages.Refused(key, message.term))
                    return
            elif not self._accepts(sender, key, message.term):
                return
        if entry.truncates > self.promise(key).truncated or (entry.truncates and self._bug is Bug.TRUNCATES_AGAIN):
            if self._bug is not Bug.TRUNCATE_KEEPS_LATER:
                self._delete_from(key, segment, offset + 1)
            self._promised(key, truncated=max(entry.truncates, self.promise(key).truncated))
        name = f"{_ENTRY}-{segment}-{offset}-{key}"
        syncs, trusts = self._bug is not Bug.ACKNOWLEDGED_BEFORE_SYNC, self._bug is Bug.FAILED_SYNC_TRUSTED
        files.write(self._host.disk, name, [*entry, message.lac], sync=syncs, trusts=trusts)
        self._damaged.discard((key, segment, offset))
        self._keep((key, segment), offset, entry, message.lac)
        self._host.send(sender, messages.Added(key, message.term, offset))

    def _delete_from(self, key: str, segment: int, first: int) -> None:
        """Deletes all entries from an offset on."""
        own = self.entries.get((key, segment), {})
        lost = [offset for offset in own if offset >= first]
        lost += [
            offset
            for damaged, number, offset in self._damaged
            if (damaged, number) == (key, segment) and offset >= first
        ]
        for offset in sorted(lost):
            own.pop(offset, None)
            self._damaged.discard((key, segment, offset))
            name = f"{_ENTRY}-{segment}-{offset}-{key}"
            self._host.disk.delete(name)
            self._host.disk.sync(name)

    def _join(self, sender: str, message: messages.Join) -> None:
        """Deletes what earlier writers left, once for each version: a late copy must not delete later entries."""
        key, term, segment, first, version = message
        if self._accepts(sender, key, term):
            if version > self.promise(key).joined:
                self._delete_from(key, segment, first)
                self._promised(key, joined=version)
            self._host.send(sender, messages.Joined(key, term, version))

    def _read_next(self, sender: str, message: messages.ReadNext) -> None:
        key, segment, offset = message.key, message.segment, message.offset
        if message.fences and not self._stops(sender, key, message.term, segment):
            return
        if not self._is_unreadable(key, segment, offset):
            entry = self.entries.get((key, segment), {}).get(offset)
            self._host.send(sender, messages.NextRead(key, message.term, offset, entry))

    def _is_unreadable(self, key: str, segment: int, offset: int) -> bool:
        """Returns whether it cannot tell an entry: its file is damaged, or a read of it fails now."""
        if offset in self.entries.get((key, segment), {}):
            try:
                self._host.disk.read(f"{_ENTRY}-{segment}-{offset}-{key}")
            except DiskError as error:
                self._host.log(f"cannot read an entry: {error}")
                return True
        return (key, segment, offset) in self._damaged

    def _stops(self, sender: str, key: str, term: int, segment: int) -> bool:
        """Stops all earlier writers of a segment. Returns False if the bookie refuses the request itself."""
        unknown = self._bug is Bug.UNKNOWN_LEDGER_NOT_FENCED and (key, segment) not in self.entries
        if self._protocol is not Protocol.LEDGERS:
            return self._accepts(sender, key, term, adopts=not unknown)
        promise = self.promise(key)
        if self._tells_fences and (key, segment) not in self._told:
            self._told.add((key, segment))
            self._host.log(f"{FENCE_LINE} {key} from {sender}")
        if segment not in promise.fenced and not unknown:
            self._promised(key, fenced=tuple(sorted((*promise.fenced, segment))))
        return True

    def _accepts(self, sender: str, key: str, term: int, *, adopts: bool = True) -> bool:
        """Adopts the term of a request, or refuses a request of a lower term."""
        promise = self.promise(key)
        if term < promise.term:
            self._host.send(sender, messages.Refused(key, term))
            return False
        if term > promise.term and adopts:
            self._promised(key, term=term)
        return True

    def _promised(self, key: str, **changes: Any) -> None:
        before = self.promise(key)
        promise = replace(before, version=before.version + 1, **changes)
        if self._bug is not Bug.FENCE_NOT_JOURNALLED:
            content = [promise.version, promise.term, promise.truncated, promise.fenced, promise.joined]
            files.write_promise(self._host.disk, _PROMISE, key, content)
        self._promises[key] = promise

    def _keep(self, segment: tuple[str, int], offset: int, entry: Entry, lac: int) -> None:
        self.entries.setdefault(segment, {})[offset] = entry
        self.lacs[segment] = max(lac, self.lacs.get(segment, -1))
