"""The transactions of a leader: it carries them out, and decides which of them commit.

A transaction reads one snapshot, and its own writes. At its commit, the leader checks that no other transaction has changed
its keys since; if one has, it is a conflict. Which keys it checks is the level (`_conflicts`). Nothing waits for a lock.

A client sends each micro-operation by itself, so transactions overlap. A step or a commit that comes twice has one effect. A
transaction ends with the term in which it began. A commit is answered when a majority of the nodes has its record. One
that only reads is answered when a majority confirms that the leader led after it began, so no newer commit is missing.

Source of the levels: A. Adya, *Weak consistency*, MIT, 1999; of the check at the commit: H. Kung and J. Robinson, *On
optimistic methods for concurrency control*, TODS 1981.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Protocol

from clusters.kit.transactions import APPEND, READ
from clusters.sim.host import DiskFull
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import Bug
from clusters.systems.sim_txn.messages import Answer, Commit, Step
from clusters.systems.sim_txn.options import Isolation

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.host import Host
    from clusters.systems.sim_txn.messages import Written
    from clusters.systems.sim_txn.options import SimTxnOptions
    from clusters.systems.sim_txn.store import Store
    from harness.op import Value

MS: Final = 1_000_000
OLD_TIMESTAMP_MS: Final = 100


@dataclass(slots=True)
class Transaction:
    """An open transaction.

    Attributes:
        snapshot: The last commit that it sees.
        results: The results of its steps.
        reads: The keys that it read before it wrote them, with the number of the commit that it saw.
        late: Those of them that it read after its first write.
        written: The values of its writes, by key.
        bases: By key that it wrote, the last commit that its first write of the key saw.
        appended: By key, the elements that it appended.
    """

    snapshot: int
    results: list[Value] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    written: dict[str, Value] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)
    appended: dict[str, list[Value]] = field(default_factory=dict)


class Log(Protocol):
    """What a leader does for its transactions.

    Attributes:
        term: Its term.
        committed: The number of the last record that is on a majority of the nodes.
    """

    term: int
    committed: int

    def append(self, txn: str, written: Written) -> int:
        """Adds a record, and returns its number.

        Raises:
            OSError: The disk is full; there is no record.
        """
        ...

    def when_committed(self, number: int, then: Callable[[str], None]) -> None:
        """Calls `then` with `ok` as soon as a record is committed, or with another code if the leadership ends before."""
        ...

    def when_confirmed(self, then: Callable[[str], None]) -> None:
        """Calls `then` with `ok` as soon as a majority confirms that it leads, or with another code if that ends before."""
        ...


class Transactions:
    """The transactions of one leader in one term."""

    def __init__(self, host: Host, options: SimTxnOptions, store: Store, log: Log) -> None:
        """Takes over from earlier leaders.

        Args:
            host: The machine.
            options: The configuration.
            store: The records of the node.
            log: What adds records, and knows whether they are committed.
        """
        self._host = host
        self._bug = options.bug
        self._isolation = options.isolation
        self._store = store
        self._log = log
        self._open: dict[str, Transaction] = {}
        # The number of the record, or the code of the answer: ok for one that only reads.
        self._ended: dict[str, int | str] = {}
        if self._bug is not Bug.FORGETS_COMMITTED:
            self._ended.update((record.txn, number) for number, record in enumerate(store.records, 1) if record.txn)
        self._heard = self._old = log.committed
        self._has_committed = False
        if self._bug is Bug.OLD_TIMESTAMP:
            self._renew()

    def _renew(self) -> None:
        self._old = self._log.committed
        self._host.after(OLD_TIMESTAMP_MS * MS, self._renew)

    def _newest(self) -> int:
        """Returns the number of the last record that a snapshot has."""
        if self._bug is Bug.OLD_TIMESTAMP:
            return self._old
        if self._bug is Bug.NEW_LEADER_TIMESTAMP and not self._has_committed:
            return self._heard
        return self._log.committed

    def step(self, step: Step) -> Answer:
        """Carries out a micro-operation, and returns the answer."""
        txn = self._open.get(step.txn)
        if txn is None and step.number == 0 and step.txn not in self._ended:
            txn = self._open[step.txn] = Transaction(self._newest())
        if txn is None or step.epoch not in {None, self._log.term} or step.number > len(txn.results):
            return Answer(outcomes.ABORTED)
        if step.number == len(txn.results):
            if step.number == 1 and self._bug is Bug.LATE_SNAPSHOT:
                txn.snapshot = self._log.committed
            txn.results.append(self._result(txn, *step.mop))
        return Answer(outcomes.OK, txn.results[step.number], self._log.term)

    def _result(self, txn: Transaction, function: str, key: str, value: Value) -> Value:
        seen = self._log.committed if self._isolation is Isolation.READ_COMMITTED else txn.snapshot
        if function == READ:
            if key in txn.written and self._bug is not Bug.OWN_WRITES_MISSING:
                return txn.written[key]
            if key not in txn.reads:
                txn.reads[key] = seen
                if txn.written:
                    txn.late.add(key)
            return self._store.at(key, seen)
        if key not in txn.bases:
            txn.bases[key] = seen
        if function == APPEND:
            before = txn.written[key] if key in txn.written else self._store.at(key, seen)
            txn.written[key] = [*(before or []), value]
            txn.appended.setdefault(key, []).append(value)
        else:
            txn.written[key] = value
        return value

    def commit(self, commit: Commit, answer: Callable[[str], None]) -> None:
        """Commits a transaction, and gives the code of the answer, now or later."""
        txn = self._open.get(commit.txn)
        known = self._ended.get(commit.txn)
        again = self._bug is Bug.APPLIED_TWICE and isinstance(known, int) and txn is not None
        if known is not None and not again:
            end = known
        elif txn is None or commit.epoch != self._log.term or commit.steps != len(txn.results):
            end = outcomes.ABORTED
        elif again:
            end = self._save(commit.txn, self._once_more(txn))
        elif txn.written and (conflicts := self._conflicts(txn)):
            end = outcomes.CONFLICT
            if self._bug is Bug.ABORT_LEAVES_WRITES:
                before = takewhile(lambda pair: pair[0] not in conflicts, txn.written.items())
                self._save(commit.txn, tuple(before))
        else:
            end = self._save(commit.txn, tuple(txn.written.items()))
        self._ended[commit.txn] = end
        if self._bug is not Bug.APPLIED_TWICE:
            self._open.pop(commit.txn, None)
        if isinstance(end, int):
            self._log.when_committed(end, lambda code: answer(self._committed(code)))
        elif end == outcomes.OK and self._bug is not Bug.OLD_LEADER_READS:
            self._log.when_confirmed(answer)
        else:
            answer(end)

    def record_of(self, txn: str) -> int | None:
        """Returns the number of the record of a transaction; None if it has none."""
        end = self._ended.get(txn)
        return end if isinstance(end, int) else None

    def _committed(self, code: str) -> str:
        self._has_committed = self._has_committed or code == outcomes.OK
        return code

    def _save(self, name: str, written: Written) -> int | str:
        """Adds the record of a transaction that wrote, and returns its number, or the code of the answer."""
        if not written:
            return outcomes.OK
        try:
            return self._log.append(name, written)
        except DiskFull as error:
            self._host.log(f"a commit fails: {error}")
            return outcomes.DISK_FULL

    def _conflicts(self, txn: Transaction) -> list[str]:
        """Returns the keys that another transaction has changed, and that the level protects."""
        checked: dict[str, int] = {}
        if self._isolation is Isolation.SERIALIZABLE:
            for key, seen in txn.reads.items():
                absent = self._store.at(key, seen) is None
                if (self._bug is Bug.LOCKS_EXISTING_KEYS and absent) or (
                    self._bug is Bug.ONE_DIRECTION and key in txn.late
                ):
                    continue
                checked[key] = seen
        if self._bug is not Bug.LOST_UPDATES:
            checked |= txn.bases
        return [key for key, seen in checked.items() if self._store.last(key) > seen]

    def _once_more(self, txn: Transaction) -> Written:
        """Returns the writes of a transaction that is carried out again: its appends act on what is there by now."""
        return tuple(
            (key, [*(self._store.at(key, self._store.last(key)) or []), *txn.appended[key]])
            if key in txn.appended
            else (key, value)
            for key, value in txn.written.items()
        )
