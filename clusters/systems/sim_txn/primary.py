"""The primary: it carries out transactions, and orders their commits.

A transaction reads one snapshot, and its own writes. At its commit, the primary checks that no other transaction has changed
its keys since; if one has, it is a conflict. Which keys it checks is the level (`_conflicts`). Nothing waits for a lock.

A client sends each micro-operation by itself, so transactions overlap. A step or a commit that comes twice has one effect.
After a start, the primary knows the commits on its disk, and no transaction that was open. An epoch tells one start from
another.

Source of the levels: A. Adya, *Weak consistency*, MIT, 1999; of the check at the commit: H. Kung and J. Robinson, *On
optimistic methods for concurrency control*, TODS 1981.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from clusters.sim.files import DamagedFileError
from clusters.sim.host import Reply, Request
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import Bug
from clusters.systems.sim_txn.messages import Answer, AskStatus, Batch, Commit, Fetch, Record, Status, Step
from clusters.systems.sim_txn.options import Isolation
from clusters.systems.sim_txn.store import Store
from clusters.systems.transactions import APPEND, READ

if TYPE_CHECKING:
    from clusters.sim.host import Host
    from clusters.systems.sim_txn.messages import Written
    from clusters.systems.sim_txn.options import SimTxnOptions
    from harness.op import Value

ROLE: Final = "leader"
BATCH: Final = 50
MS: Final = 1_000_000
OLD_TIMESTAMP_MS: Final = 100
PART_MS: Final = 20  # between two keys of a commit, with the bug `partial-after-crash`


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


class Primary:
    """A `clusters.sim.host.Process`.

    Attributes:
        store: The commits.
    """

    def __init__(self, host: Host, options: SimTxnOptions) -> None:
        self.store = Store(host.disk)
        self._host = host
        self._bug = options.bug
        self._isolation = options.isolation
        self._epoch = 0
        self._open: dict[str, Transaction] = {}
        self._ended: dict[str, str] = {}  # the code of the answer to the commit
        self._old = 0
        self._serves = True

    def start(self) -> None:
        """Reads the disk."""
        self._epoch = self._host.random.getrandbits(60)
        try:
            self.store.load()
        except (DamagedFileError, OSError) as error:
            self._serves = False
            self._host.log(f"takes no part: {error}")
            return
        self._ended = dict.fromkeys(self.store.committed(), outcomes.OK)
        self._host.log(f"serves with {len(self.store.records)} commits")
        if self._bug is Bug.OLD_TIMESTAMP:
            self._renew()

    def receive(self, sender: str, message: Any) -> None:
        """Handles a request of a client or an observer, or a replica's message."""
        if not self._serves:
            return
        match message:
            case Request(number, Step() as step):
                self._host.send(sender, Reply(number, self._step(step)))
            case Request(number, Commit() as commit):
                self._commit(sender, number, commit)
            case Request(number, AskStatus()):
                self._host.send(sender, Reply(number, Status(ROLE, self._host.name, len(self.store.records))))
            case Request(number, _):
                self._host.send(sender, Reply(number, Answer(outcomes.NOT_REPLICA)))
            case Fetch(first):
                self._host.send(sender, Batch(first, tuple(self.store.records[first - 1 : first - 1 + BATCH])))

    def _renew(self) -> None:
        self._old = len(self.store.records)
        self._host.after(OLD_TIMESTAMP_MS * MS, self._renew)

    def _step(self, step: Step) -> Answer:
        txn = self._open.get(step.txn)
        if txn is None and step.number == 0 and step.txn not in self._ended:
            newest = self._old if self._bug is Bug.OLD_TIMESTAMP else len(self.store.records)
            txn = self._open[step.txn] = Transaction(newest)
        if txn is None or step.epoch not in {None, self._epoch} or step.number > len(txn.results):
            return Answer(outcomes.ABORTED)
        if step.number == len(txn.results):
            if step.number == 1 and self._bug is Bug.LATE_SNAPSHOT:
                txn.snapshot = len(self.store.records)
            txn.results.append(self._result(txn, *step.mop))
        return Answer(outcomes.OK, txn.results[step.number], self._epoch)

    def _result(self, txn: Transaction, function: str, key: str, value: Value) -> Value:
        seen = len(self.store.records) if self._isolation is Isolation.READ_COMMITTED else txn.snapshot
        if function == READ:
            if key in txn.written and self._bug is not Bug.OWN_WRITES_MISSING:
                return txn.written[key]
            if key not in txn.reads:
                txn.reads[key] = seen
                if txn.written:
                    txn.late.add(key)
            return self.store.at(key, seen)
        if key not in txn.bases:
            txn.bases[key] = seen
        if function == APPEND:
            before = txn.written[key] if key in txn.written else self.store.at(key, seen)
            txn.written[key] = [*(before or []), value]
            txn.appended.setdefault(key, []).append(value)
        else:
            txn.written[key] = value
        return value

    def _commit(self, sender: str, number: int, commit: Commit) -> None:
        txn = self._open.get(commit.txn)
        again = self._bug is Bug.APPLIED_TWICE and self._ended.get(commit.txn) == outcomes.OK and txn is not None
        if commit.txn in self._ended and not again:
            code = self._ended[commit.txn]
        elif txn is None or commit.epoch != self._epoch or commit.steps != len(txn.results):
            code = outcomes.ABORTED
        elif again:
            code = self._save(Record(commit.txn, self._once_more(txn)))
        elif txn.written and (conflicts := self._conflicts(txn)):
            code = outcomes.CONFLICT
            if self._bug is Bug.ABORT_LEAVES_WRITES:
                before = tuple(takewhile(lambda pair: pair[0] not in conflicts, txn.written.items()))
                self._save(Record(commit.txn, before))
        else:
            code = self._save(Record(commit.txn, tuple(txn.written.items())))
        self._end(commit.txn, code)
        answer = Reply(number, Answer(code))
        if self._bug is Bug.PARTIAL_AFTER_CRASH:
            self._host.after(PART_MS * MS, lambda: self._host.send(sender, answer))
        else:
            self._host.send(sender, answer)

    def _end(self, name: str, code: str) -> None:
        self._ended[name] = code
        if self._bug is not Bug.APPLIED_TWICE:
            self._open.pop(name, None)

    def _conflicts(self, txn: Transaction) -> list[str]:
        """Returns the keys that another transaction has changed, and that the level protects."""
        checked: dict[str, int] = {}
        if self._isolation is Isolation.SERIALIZABLE:
            for key, seen in txn.reads.items():
                absent = self.store.at(key, seen) is None
                if (self._bug is Bug.LOCKS_EXISTING_KEYS and absent) or (
                    self._bug is Bug.ONE_DIRECTION and key in txn.late
                ):
                    continue
                checked[key] = seen
        if self._bug is not Bug.LOST_UPDATES:
            checked |= txn.bases
        return [key for key, seen in checked.items() if self.store.last(key) > seen]

    def _save(self, record: Record) -> str:
        """Writes a commit to the disk, makes it visible, and returns the code of the answer."""
        if not record.written:
            return outcomes.OK
        number = len(self.store.records) + 1
        parts = [record]
        if self._bug is Bug.PARTIAL_AFTER_CRASH:
            parts = [Record(record.txn, (pair,)) for pair in record.written]
        try:
            self.store.save(number, parts[0], sync=self._bug is not Bug.COMMIT_BEFORE_SYNC)
        except OSError as error:
            self._host.log(f"a commit fails: {error}")
            return outcomes.DISK_FULL
        for part, rest in enumerate(parts[1:], 1):
            self._host.after(PART_MS * MS // 2, partial(self.store.save, number, rest, part=part))
        self.store.apply(record)
        return outcomes.OK

    def _once_more(self, txn: Transaction) -> Written:
        """Returns the writes of a transaction that is carried out again: its appends act on what is there by now."""
        return tuple(
            (key, [*(self.store.at(key, self.store.last(key)) or []), *txn.appended[key]])
            if key in txn.appended
            else (key, value)
            for key, value in txn.written.items()
        )
