"""The leader of a term: it sends its records to the other nodes, and knows which of them a majority has.

Source: D. Ongaro and J. Ousterhout, *In search of an understandable consensus algorithm*, USENIX ATC 2014: sections 5.3 and 5.4
for the records, and section 8 for reads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from clusters.sim.host import DiskFull
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import Bug
from clusters.systems.sim_txn.messages import Append, Appended, Record
from clusters.systems.sim_txn.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.host import Host
    from clusters.systems.sim_txn.messages import Written
    from clusters.systems.sim_txn.options import SimTxnOptions
    from clusters.systems.sim_txn.store import Store

BATCH: Final = 50
MS: Final = 1_000_000
PART_MS: Final = 10  # between two keys of a commit, with the bug `partial-after-crash`


def save(host: Host, store: Store, number: int, record: Record, bug: Bug) -> None:
    """Writes a record to the disk of a node.

    Raises:
        OSError: The disk is full; there is no record.
    """
    parts = [record]
    if bug is Bug.PARTIAL_AFTER_CRASH and record.written:
        parts = [record._replace(written=(pair,)) for pair in record.written]
    trusts = bug is Bug.FAILED_SYNC_TRUSTED
    store.save(number, parts[0], sync=bug is not Bug.COMMIT_BEFORE_SYNC, trusts=trusts)
    for part, rest in enumerate(parts[1:], 1):
        host.after(PART_MS * MS, partial(store.save, number, rest, part=part))


class Leader:
    """A `clusters.systems.sim_txn.transactions.Log`.

    Attributes:
        term: Its term.
        committed: The number of the last record that is on a majority of the nodes.
        transactions: Its transactions.
    """

    def __init__(self, host: Host, options: SimTxnOptions, store: Store, committed: int) -> None:
        """Makes the leader of the store's term, which knows that a number of records is committed."""
        self.term = store.term
        self.committed = committed
        self._host = host
        self._bug = options.bug
        self._heartbeat_ns = options.heartbeat_ms * MS
        self._store = store
        peers = [peer for peer in host.peers if peer != host.name]
        self._majority = len(host.peers) // 2 + 1
        self._next = dict.fromkeys(peers, len(store.records) + 1)
        self._has = dict.fromkeys(peers, 0)
        self._answered = dict.fromkeys(peers, 0)
        self._round = 0
        self._first: int | None = None
        self._ended = False
        self._until_committed: list[tuple[int, Callable[[str], None]]] = []
        self._until_confirmed: list[tuple[int, Callable[[str], None]]] = []
        self.transactions = Transactions(host, options, store, self)

    def start(self) -> None:
        """Begins to send."""
        if self._ended:
            return
        if self._first is None:
            try:
                self._first = self.append("", ())
            except DiskFull as error:
                self._host.log(f"cannot lead yet: {error}")
        self._send()
        self._host.after(self._heartbeat_ns, self.start)

    @property
    def serves(self) -> bool:
        """Returns whether a record of its term is committed, so that it knows all commits of earlier terms."""
        return self._first is not None and self.committed >= self._first

    def end(self) -> None:
        """Ends the leadership."""
        self._ended = True
        for _, then in self._until_committed + self._until_confirmed:
            then(outcomes.NOT_LEADER)

    def append(self, txn: str, written: Written) -> int:
        """Adds a record, and returns its number.

        Raises:
            OSError: The disk is full; there is no record.
        """
        number, record = len(self._store.records) + 1, Record(txn, written, self.term)
        save(self._host, self._store, number, record, self._bug)
        self._store.apply(record)
        self._send()
        self._advance()
        return number

    def when_committed(self, number: int, then: Callable[[str], None]) -> None:
        """Calls `then` with `ok` as soon as a record is committed, or with another code if the leadership ends before."""
        self._until_committed.append((number, then))
        self._until_committed = _due(self._until_committed, self.committed)

    def when_confirmed(self, then: Callable[[str], None]) -> None:
        """Calls `then` with `ok` as soon as a majority confirms that it leads, or with another code if that ends before."""
        self._send()
        self._until_confirmed.append((self._round, then))
        self._until_confirmed = _due(self._until_confirmed, self._confirmed())

    def receive(self, sender: str, message: Appended) -> None:
        """Handles the answer of a follower in this term."""
        self._answered[sender] = max(self._answered[sender], message.round)
        if message.fits:
            self._has[sender] = max(self._has[sender], message.last)
            self._next[sender] = max(self._next[sender], message.last + 1)
            self._advance()
        else:
            self._next[sender] = max(self._has[sender] + 1, min(self._next[sender] - 1, message.last + 1))
        self._until_confirmed = _due(self._until_confirmed, self._confirmed())

    def _confirmed(self) -> int:
        """Returns the last round that a majority has answered."""
        return sorted((self._round, *self._answered.values()))[-self._majority]

    def _advance(self) -> None:
        last = len(self._store.records)
        number = sorted((last, *self._has.values()))[-self._majority]
        if self._bug is Bug.COMMIT_BEFORE_MAJORITY:
            number = last
        if number > self.committed and self._store.term_at(number) == self.term:
            self.committed = number
            self._until_committed = _due(self._until_committed, number)

    def _send(self) -> None:
        self._round += 1
        for peer, following in self._next.items():
            before = following - 1
            records = tuple(self._store.records[before : before + BATCH])
            known = (before, self._store.term_at(before))
            self._host.send(peer, Append(self.term, known, records, self.committed, self._round))


def _due(waiting: list[tuple[int, Callable[[str], None]]], reached: int) -> list[tuple[int, Callable[[str], None]]]:
    """Calls those that wait for a number up to the one that is reached, and returns the others."""
    for number, then in waiting:
        if number <= reached:
            then(outcomes.OK)
    return [waiter for waiter in waiting if waiter[0] > reached]
