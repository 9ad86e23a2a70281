"""The writer's part: it sends entries to all bookies, and acknowledges them in order.

An entry is acknowledged when the ack quorum has it, and all entries below it are acknowledged. Until then, a timer repeats it
to the bookies that have not answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.messages import Answer, Entry
from clusters.systems.sim_bookkeeper.options import Protocol

if TYPE_CHECKING:
    from clusters.systems.sim_bookkeeper.messages import Segment
    from clusters.systems.sim_bookkeeper.setting import Setting
    from harness.op import Value

LEDGER_ENTRIES: Final = 1000  # of one ledger, so that offsets grow from one ledger to the next


@dataclass(slots=True)
class Pending:
    """An entry that is not acknowledged.

    Attributes:
        entry: The entry.
        client: The client that appends it.
        request: The number of the client's request.
        lac: The last add confirmed that it was sent with.
        acks: The bookies that have it.
        is_answered: Whether the client has its answer, which only a planted bug gives so early.
    """

    entry: Entry
    client: str
    request: int
    lac: int
    acks: set[str] = field(default_factory=set)
    is_answered: bool = False


class Writer:
    """The writer of a log in one term.

    Attributes:
        term: The term.
        next: The offset of the next entry.
        lac: The last offset up to which everything is acknowledged.
        pending: The entries that are not, by offset.
    """

    def __init__(self, setting: Setting, term: int, segment: Segment, following: int, lac: int = -1) -> None:
        """Begins to write.

        Args:
            setting: The setting.
            term: The term.
            segment: The segment that gets the entries.
            following: The offset of the first entry.
            lac: The last offset that is acknowledged.
        """
        self.term = term
        self.next = following
        self.lac = lac
        self.pending: dict[int, Pending] = {}
        self._setting = setting
        self._segment = segment

    @property
    def is_full(self) -> bool:
        """Returns whether the ledger has no room for a further entry."""
        ledgers = self._setting.options.protocol is Protocol.LEDGERS
        return ledgers and self.next - self._segment.first >= LEDGER_ENTRIES

    @property
    def readable(self) -> int:
        """Returns the last offset that reads may see."""
        return self.next - 1 if self._setting.options.bug is Bug.UNCONFIRMED_READS else self.lac

    def append(self, client: str, request: int, value: Value) -> None:
        """Sends a client's entry to all bookies."""
        self.pending[self.next] = Pending(Entry(value), client, request, self.lac)
        self.next += 1
        self._send(self.next - 1)

    def added(self, bookie: str, offset: int) -> None:
        """Handles the answer of a bookie that has an entry."""
        if offset not in self.pending:
            return
        pending = self.pending[offset]
        pending.acks.add(bookie)
        if self._setting.options.bug is Bug.ACKNOWLEDGED_OUT_OF_ORDER and self._is_safe(pending):
            self._acknowledge(offset, pending)
        while self.pending:
            offset = next(iter(self.pending))
            if not self._is_safe(self.pending[offset]):
                break
            self.lac = offset
            self._acknowledge(offset, self.pending.pop(offset))

    def send(self) -> None:
        """Sends all pending entries again, to the bookies that have not answered."""
        for offset in self.pending:
            self._send(offset)

    def stopped(self) -> None:
        """Answers all pending appends: bookies may have their entries, so it is not known whether they happen."""
        code = outcomes.NOT_WRITER if self._setting.options.bug is Bug.FENCED_IS_FAIL else outcomes.FENCED
        for pending in self.pending.values():
            if not pending.is_answered:
                self._setting.answer(pending.client, pending.request, Answer(code))

    def _is_safe(self, pending: Pending) -> bool:
        return len(pending.acks) >= self._setting.options.ack_quorum

    def _acknowledge(self, offset: int, pending: Pending) -> None:
        if not pending.is_answered:
            pending.is_answered = True
            self._setting.answer(pending.client, pending.request, Answer(outcomes.OK, offset))

    def _send(self, offset: int) -> None:
        setting, pending = self._setting, self.pending[offset]
        number = self._segment.number
        message = messages.Add(setting.key, self.term, number, offset, pending.entry, pending.lac, recovery=False)
        setting.to_bookies(message, without=pending.acks)
