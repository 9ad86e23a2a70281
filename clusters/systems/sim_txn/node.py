"""The process of a node: it votes, follows a leader, or leads.

A node without a message of a leader for a while asks the others for votes in a new term. It leads if a majority votes for it.
A node votes once in a term, for a candidate whose records are as new as its own. So a leader has each record that a majority
has. A node with a damaged vote or record takes no part any more.

Source: D. Ongaro and J. Ousterhout, *In search of an understandable consensus algorithm*, USENIX ATC 2014, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clusters.sim import files
from clusters.sim.asking import AskStatus
from clusters.sim.files import DamagedFileError
from clusters.sim.host import DiskFull, Reply, Request
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import Bug
from clusters.systems.sim_txn.leader import Leader, save
from clusters.systems.sim_txn.messages import (
    Answer,
    Append,
    Appended,
    AskVote,
    Commit,
    ReadOnly,
    Record,
    Status,
    Step,
    Vote,
)
from clusters.systems.sim_txn.store import Store

if TYPE_CHECKING:
    from clusters.sim.host import Host, Timer
    from clusters.systems.sim_txn.options import SimTxnOptions

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
CANDIDATE: Final = "candidate"
MS: Final = 1_000_000
SPREAD_MS: Final = 20  # of the commits of a node that does not lead, with the bug `replica-order`
SHORTEST, LONGEST = 4, 8  # the wait for a leader, in heartbeats


class StoreNode:
    """A `clusters.sim.host.Process`.

    Attributes:
        store: Its records.
        lead: What it does as the leader; None if it does not lead.
    """

    def __init__(self, host: Host, options: SimTxnOptions) -> None:
        self.store = Store(host.disk)
        self.lead: Leader | None = None
        self._host = host
        self._options = options
        self._committed = 0
        self._leader: str | None = None
        self._votes: set[str] = set()
        self._has_heard = False
        self._serves = True
        self._timer: Timer | None = None

    @property
    def role(self) -> str:
        """Returns what the node is."""
        return LEADER if self.lead is not None else CANDIDATE if self._votes else FOLLOWER

    @property
    def committed(self) -> int:
        """Returns the number of the last record that it knows to be committed."""
        return self.lead.committed if self.lead is not None else self._committed

    def start(self) -> None:
        """Reads the disk, and waits for a leader."""
        try:
            files.write_again(self._host.disk)
            self.store.load()
        except (DamagedFileError, DiskFull) as error:
            self._serves = False
            self._host.log(f"takes no part: {error}")
            return
        self._host.log(f"starts with {len(self.store.records)} records in term {self.store.term}")
        self._wait()

    def receive(self, sender: str, message: Any) -> None:
        """Handles a request of a client or an observer, or a message of another node."""
        if not self._serves:
            return
        match message:
            case Request(number, Commit() as commit):
                self._commit(sender, number, commit)
            case Request(number, body):
                self._host.send(sender, Reply(number, self._answer(body)))
            case AskVote() if self._learn(message.term):
                self._vote(sender, message)
            case Append() if self._learn(message.term):
                self._append(sender, message)
            case Vote() if self._learn(message.term):
                self._count(sender, message)
            case Appended() if self._learn(message.term):
                if self.lead is not None and message.term == self.lead.term:
                    self.lead.receive(sender, message)

    def _answer(self, body: Any) -> Answer | Status:
        match body:
            case AskStatus():
                return Status(self.role, self.store.term, self._leader, len(self.store.records), self.committed)
            case Step() if self.lead is not None and self.lead.serves:
                return self.lead.transactions.step(body)
            case ReadOnly(keys) if self._has_heard:
                return Answer(outcomes.OK, [self.store.at(key, self.committed) for key in keys])
            case ReadOnly():
                return Answer(outcomes.NOT_READY)
        return Answer(outcomes.NOT_LEADER, leader=self._leader)

    def _commit(self, sender: str, number: int, commit: Commit) -> None:
        transactions = None if self.lead is None else self.lead.transactions

        def answer(code: str) -> None:
            record = None if transactions is None or code != outcomes.OK else transactions.record_of(commit.txn)
            self._host.send(sender, Reply(number, Answer(code, record, leader=self._leader)))

        if self.lead is None or not self.lead.serves or commit.epoch > self.lead.term:
            answer(outcomes.NOT_LEADER)
        else:
            self.lead.transactions.commit(commit, answer)

    def _wait(self) -> None:
        """Waits for a message of a leader."""
        if self._timer is not None:
            self._timer.cancel()
        heartbeat_ns = self._options.heartbeat_ms * MS
        wait_ns = self._host.random.randrange(SHORTEST * heartbeat_ns, LONGEST * heartbeat_ns)
        self._timer = self._host.after(wait_ns, self._stand)

    def _stand(self) -> None:
        """Asks for votes, unless it leads."""
        self._wait()
        if self.lead is not None:
            return
        try:
            self.store.vote(self.store.term + 1, self._host.name)
        except DiskFull as error:
            self._host.log(f"cannot ask for votes: {error}")
            return
        self._leader, self._votes = None, {self._host.name}
        for peer in self._others():
            self._host.send(peer, AskVote(self.store.term, self.store.last_record()))
        self._elect()

    def _learn(self, term: int) -> bool:
        """Follows a newer term; returns whether the node's term is now at least as new."""
        if term <= self.store.term:
            return True
        try:
            self.store.vote(term, None)
        except DiskFull as error:
            self._host.log(f"cannot take part in term {term}: {error}")
            return False
        self._leader, self._votes = None, set()
        if self.lead is not None:
            self._host.log(f"ends to lead in term {self.lead.term}")
            self._committed = self.lead.committed
            ended, self.lead = self.lead, None
            ended.end()
            self._wait()
        return True

    def _vote(self, candidate: str, message: AskVote) -> None:
        (number, term), (own_number, own_term) = message.last, self.store.last_record()
        granted = (
            message.term == self.store.term
            and self.store.voted in {None, candidate}
            and (term, number) >= (own_term, own_number)
        )
        if granted:
            try:
                self.store.vote(self.store.term, candidate)
            except DiskFull as error:
                self._host.log(f"cannot vote: {error}")
                return
            self._wait()
        self._host.send(candidate, Vote(self.store.term, granted))

    def _count(self, sender: str, message: Vote) -> None:
        if self._votes and message.granted and message.term == self.store.term:
            self._votes.add(sender)
            self._elect()

    def _elect(self) -> None:
        if self.lead is None and len(self._votes) > len(self._host.peers) // 2:
            self._host.log(f"leads in term {self.store.term}")
            self._leader, self._votes, self._has_heard = self._host.name, set(), True
            self.lead = Leader(self._host, self._options, self.store, self._committed)
            self.lead.start()

    def _append(self, leader: str, message: Append) -> None:
        """Takes the records of a leader."""
        if message.term < self.store.term:
            self._host.send(leader, Appended(self.store.term, fits=False, last=0, round=message.round))
            return
        self._leader, self._votes = leader, set()
        self._wait()
        number, term = message.before
        fits = number <= len(self.store.records) and self.store.term_at(number) == term
        last = len(self.store.records)
        if fits:
            last = number + self._take(number + 1, message.records)
            self._committed = max(self._committed, min(message.committed, last))
            self._has_heard = True
        self._host.send(leader, Appended(self.store.term, fits, last, message.round))

    def _take(self, first: int, records: tuple[Record, ...]) -> int:
        """Adds the records that it lacks, in place of others; returns how many it has now."""
        for index, record in enumerate(records):
            number = first + index
            if number <= len(self.store.records):
                if self.store.term_at(number) == record.term:
                    continue
                self.store.cut(number - 1)
                self._committed = min(self._committed, number - 1)
            try:
                save(self._host, self.store, number, record, self._options.bug)
            except DiskFull as error:
                self._host.log(f"drops a record: {error}")
                return index
            self._apply(number, record)
        return len(records)

    def _apply(self, number: int, record: Record) -> None:
        if self._options.bug is not Bug.REPLICA_ORDER:
            self.store.apply(record)
            return
        self.store.records.append(record)
        delay_ns = self._host.random.randrange(SPREAD_MS) * MS
        self._host.after(delay_ns, lambda: self.store.put(record, number))

    def _others(self) -> list[str]:
        return [peer for peer in self._host.peers if peer != self._host.name]
