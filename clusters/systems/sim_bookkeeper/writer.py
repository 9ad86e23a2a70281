"""The writer's part: it sends entries to its ensemble, and acknowledges them in order.

An entry is acknowledged when the ack quorum has it, and all entries below it are acknowledged. Until then, a timer repeats it
to the bookies that have not answered. A bookie that does not answer is replaced, if there is another one (`ensemble`). The
new fragment begins after the last add confirmed, and no entry is acknowledged while the metadata change.

With terms and `--guarantee-write-quorum`, a writer with spare bookies repeats an entry until its whole ensemble has it. A new
fragment begins after the last entry that all have, and so it can have acknowledged entries. Bookies that these need are pinned.
Source: the models of J. Vanlightly (Vanlightly/bookkeeper-tlaplus, `tweaks`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.change import Change
from clusters.systems.sim_bookkeeper.ensemble import PATIENCE, replaced, spares
from clusters.systems.sim_bookkeeper.messages import Answer, Entry
from clusters.systems.sim_bookkeeper.options import Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.systems.sim_bookkeeper.messages import Meta
    from clusters.systems.sim_bookkeeper.setting import Setting
    from harness.op import Value

LEDGER_ENTRIES: Final = 1000  # of one ledger, so that offsets grow from one ledger to the next
MOST_PENDING: Final = 50  # a recovery reads these one by one


@dataclass(slots=True)
class Pending:
    """An entry that is not acknowledged, or that some bookies of the ensemble lack.

    Attributes:
        entry: The entry.
        client: The client that appends it.
        request: The number of the client's request.
        lac: The last add confirmed that it was sent with.
        acks: The bookies that have it.
        is_answered: Whether the client has its answer, which only a planted bug gives before the entry is acknowledged.
        repeats: How often it was sent again to the present ensemble.
    """

    entry: Entry
    client: str
    request: int
    lac: int
    acks: set[str] = field(default_factory=set)
    is_answered: bool = False
    repeats: int = 0


class Writer:
    """The writer of a log in one term.

    Attributes:
        term: The term.
        next: The offset of the next entry.
        lac: The last offset up to which everything is acknowledged.
        pending: The entries that are not, by offset.
        ensemble: The bookies that get the entries.
        change: The change of the ensemble under way; None if there is none.
    """

    def __init__(self, setting: Setting, meta: Meta, following: int, lac: int = -1) -> None:
        """Begins to write.

        Args:
            setting: The setting.
            meta: The metadata. The last segment gets the entries.
            following: The offset of the first entry.
            lac: The last offset that is acknowledged.
        """
        self.term = meta.term
        self.next = following
        self.lac = lac
        self.pending: dict[int, Pending] = {}
        self.ensemble = meta.segments[-1].fragments[-1].bookies
        self.change: Change | None = None
        self._setting = setting
        self._meta = meta
        self._segment = meta.segments[-1]
        self._incomplete: dict[int, Pending] = {}  # acknowledged, from the first that a bookie of the ensemble lacks
        self._doubtful: set[str] = set()  # bookies that it has replaced, or that have not joined
        self._refusing: set[str] = set()  # only with a planted bug

    @property
    def is_full(self) -> bool:
        """Returns whether the ledger has no room for a further entry."""
        ledgers = self._setting.options.protocol is Protocol.LEDGERS
        return ledgers and self.next - self._segment.first >= LEDGER_ENTRIES

    @property
    def has_room(self) -> bool:
        """Returns whether it takes another entry now."""
        return not self.is_full and len(self.pending) < MOST_PENDING

    @property
    def is_busy(self) -> bool:
        """Returns whether something has no answer."""
        return bool(self.pending or self._incomplete or self.change)

    @property
    def readable(self) -> int:
        """Returns the last offset that reads may see."""
        return self.next - 1 if self._bug is Bug.UNCONFIRMED_READS else self.lac

    def append(self, client: str, request: int, value: Value) -> None:
        """Sends a client's entry to the ensemble."""
        if self._bug is Bug.ID_GIVEN_AGAIN:
            self._give_up_last()
        self.pending[self.next] = Pending(Entry(value), client, request, self.lac)
        self.next += 1
        self._send(self.next - 1, self.pending[self.next - 1])

    def added(self, bookie: str, offset: int) -> None:
        """Handles the answer of a bookie that has an entry."""
        pending = self.pending.get(offset) or self._incomplete.get(offset)
        if pending is None or (bookie not in self.ensemble and not self._counts_replaced):
            return
        pending.acks.add(bookie)
        if self._bug is Bug.ACKNOWLEDGED_OUT_OF_ORDER and self._is_safe(pending):
            self._acknowledge(offset, pending)
        self._advance()

    def joined(self, bookie: str, version: int) -> None:
        """Handles the answer of a bookie that is to join the ensemble."""
        if self.change is not None:
            self.change.joined(bookie, version)

    def send(self) -> None:
        """Sends all entries again, to the bookies that have not answered. Replaces those that have not answered for long."""
        for offset, pending in self._unfinished():
            pending.repeats += 1
            if self._bug is Bug.CONFIRMED_GOES_BACK:
                self.lac = min(self.lac, pending.lac)
            self._send(offset, pending)
        if self.change is not None and self.change.is_hopeless:
            self._give_up(self.change)
        if self.change is not None:
            self.change.send()
        else:
            self._change_ensemble()

    def refused(self, bookie: str) -> None:
        """Replaces a bookie that refuses the term: only a planted bug does so."""
        self._refusing.add(bookie)
        if self.change is not None and bookie in self.change.joining:
            self._give_up(self.change)
        if self.change is None:
            self._change_ensemble()

    def handle_meta(self, meta: Meta) -> bool:
        """Handles metadata while the ensemble changes. Returns False if it cannot be the writer any more."""
        change = self.change
        if change is None or meta.version < change.wanted.version:
            return True
        if meta != change.wanted:
            if self._bug is not Bug.REFUSED_IS_TIMEOUT or not meta.is_open:
                return False
            change.begin_again(meta)
            return True
        self.change = None
        self._meta, self._segment, self.ensemble = meta, meta.segments[-1], change.ensemble
        self._setting.host.log(f"writes {self._setting.key} to {', '.join(self.ensemble)}")
        for offset, pending in self._unfinished():
            pending.repeats = 0
            if not self._counts_replaced:
                pending.acks &= set(self.ensemble)
            self._send(offset, pending)
        self._advance()
        return True

    def stopped(self) -> None:
        """Answers all pending appends: bookies may have their entries, so it is not known whether they happen."""
        code = outcomes.NOT_WRITER if self._bug is Bug.FENCED_IS_FAIL else outcomes.FENCED
        for pending in self.pending.values():
            if not pending.is_answered:
                self._setting.answer(pending.client, pending.request, Answer(code))

    @property
    def _bug(self) -> Bug:
        return self._setting.options.bug

    @property
    def _counts_replaced(self) -> bool:
        return self._bug is Bug.ANSWERS_OF_REPLACED_COUNT

    @property
    def _completes(self) -> bool:
        """Returns whether all bookies of the ensemble must get each entry."""
        options = self._setting.options
        guarantees = options.protocol is Protocol.TERMS and options.guarantee_write_quorum
        return guarantees and bool(spares(self._setting, self.ensemble))

    def _unfinished(self) -> Iterator[tuple[int, Pending]]:
        yield from self._incomplete.items()
        yield from self.pending.items()

    def _advance(self) -> None:
        """Acknowledges what can be acknowledged, in order."""
        if self.change is not None and not self._counts_replaced:
            return
        while self.pending:
            offset = next(iter(self.pending))
            if not self._is_safe(self.pending[offset]):
                break
            self.lac = offset
            pending = self.pending.pop(offset)
            self._acknowledge(offset, pending)
            if self._completes:
                self._incomplete[offset] = pending
        while self._incomplete:
            offset = next(iter(self._incomplete))
            if not self._incomplete[offset].acks.issuperset(self.ensemble):
                break
            del self._incomplete[offset]

    def _give_up(self, change: Change) -> None:
        """Ends a change: new bookies do not join."""
        self._doubtful |= change.joining
        self.change = None

    def _change_ensemble(self) -> None:
        """Begins to replace the bookies that do not answer."""
        failed = {bookie for bookie in self._refusing if bookie in self.ensemble}
        for _, pending in self._unfinished():
            if pending.repeats >= PATIENCE:
                failed |= set(self.ensemble) - pending.acks
        for pending in self._incomplete.values() if self._bug is not Bug.PINNED_ARE_REPLACED else ():
            if len(pending.acks - failed) < self._setting.options.ack_quorum:
                failed -= pending.acks
        if not failed:
            return
        following = replaced(self._setting, self.ensemble, failed, doubtful=self._doubtful, without=self._refusing)
        if following != self.ensemble:
            first = next((offset for offset, _ in self._unfinished()), self.next)
            self._doubtful |= failed
            self.change = Change(self._setting, self.term, self._meta, first, following)
            self.change.send()

    def _is_safe(self, pending: Pending) -> bool:
        return len(pending.acks) >= self._setting.options.ack_quorum

    def _give_up_last(self) -> None:
        """Makes the last id free if its entry was repeated: only a planted bug does so."""
        last = self.pending.get(self.next - 1)
        if last is not None and last.repeats:
            self.next -= 1
            self._setting.answer(last.client, last.request, Answer(outcomes.FENCED))
            del self.pending[self.next]

    def _acknowledge(self, offset: int, pending: Pending) -> None:
        if not pending.is_answered:
            pending.is_answered = True
            self._setting.answer(pending.client, pending.request, Answer(outcomes.OK, offset))

    def _send(self, offset: int, pending: Pending) -> None:
        setting, number = self._setting, self._segment.number
        message = messages.Add(setting.key, self.term, number, offset, pending.entry, pending.lac, recovery=False)
        setting.to_bookies(self.ensemble, message, without=pending.acks)
