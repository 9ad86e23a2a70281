"""A takeover: a client node becomes the writer of a log.

1. It changes the metadata by compare-and-set: the next term, and the state of recovery.
2. It fences the ensemble of the last fragment. It goes on when no ack quorum can be without a fenced bookie: with n bookies and
   an ack quorum of a, when n - a + 1 have answered. It learns the last add confirmed from them.
3. It reads the entries after that one by one, from the same ensemble. If a bookie has the entry, it writes the entry to all
   bookies again. If n - a + 1 lack it, no ack quorum has it, and the log ends there.
4. With terms and `--truncate`, it writes an entry without a value there, which deletes what single bookies still have.
5. It changes the metadata again: it is the writer now. With ledgers, the ledger is closed, and the next one begins.

What a recovery writes must reach the ack quorum; with terms and `--guarantee-write-quorum`, all bookies. If a bookie does not
answer a write, another one replaces it from this entry on. Only step 5 puts this into the metadata: a recovery that comes
after a half one must read from the old ensemble, which has all entries. Source of steps 1 to 3 and 5: apache/bookkeeper,
LedgerRecoveryOp; of step 4: the proposal for unbounded ledgers.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from clusters.systems.sim_bookkeeper import messages
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.ensemble import PATIENCE, fragmented, replaced
from clusters.systems.sim_bookkeeper.messages import Entry, Fragment, Meta, Segment
from clusters.systems.sim_bookkeeper.options import Protocol
from clusters.systems.sim_bookkeeper.writer import LEDGER_ENTRIES

if TYPE_CHECKING:
    from clusters.systems.sim_bookkeeper.setting import Setting


class Step(enum.StrEnum):
    """What a takeover waits for."""

    METADATA = "metadata"
    FENCES = "fences"
    READS = "reads"
    WRITES = "writes"
    END = "end"


class Takeover:
    """A takeover from known metadata.

    Attributes:
        term: Its term.
        wanted: The metadata that it asked for, while it waits for the answer; otherwise None.
        next: The next offset: of the entry that it recovers, and at the end of the new writer's first entry.
        lac: The last offset that is acknowledged, or recovered.
    """

    def __init__(self, setting: Setting, meta: Meta) -> None:
        self.term = meta.term + 1
        self.wanted: Meta | None = None
        self.next = 0
        self.lac = -1
        self._setting = setting
        self._version = meta.version
        self._earlier = meta.segments[:-1]
        self._segment = meta.segments[-1]
        self._read = self._written = self._segment.fragments[-1].bookies
        self._repeats = 0
        self._step = Step.METADATA
        self._answered: set[str] = set()
        self._entry: Entry | None = None

    def claim(self) -> None:
        """Asks for the next term."""
        self._want((*self._earlier, self._segment), is_open=False)

    def go_on(self) -> None:
        """Fences the bookies: the claim was successful. Or, only with a planted bug, writes to the changed ensemble."""
        self.wanted = None
        if self._entry is None:
            self._begin(Step.FENCES)
        else:
            self._begin(Step.END if self._entry.truncates else Step.WRITES)

    def receive(self, sender: str, message: Any) -> None:
        """Handles an answer of a bookie. An answer to an earlier step changes nothing."""
        if message.term != self.term:
            return
        match message, self._step:
            case messages.Fenced(), Step.FENCES:
                self.lac = max(self.lac, message.lac, self._segment.fragments[-1].first - 1)
                self._answered.add(sender)
                if len(self._answered) >= self._blocking:
                    self.next = self.lac + 1
                    self._begin(Step.READS)
            case messages.NextRead(), Step.READS if message.offset == self.next:
                self._handle_read(sender, message.entry)
            case messages.Added(), (Step.WRITES | Step.END) if message.offset == self.next:
                self._answered.add(sender)
                if sender in self._written and len(self._answered) >= self._needed:
                    self._handle_written()

    def told(self) -> str:
        """Returns what it does, as text."""
        answered = f", answered by {', '.join(sorted(self._answered))}" if self._answered else ""
        match self._step:
            case Step.METADATA:
                return (
                    f"asks the metadata store {'to write' if self.wanted and self.wanted.is_open else 'to take over'}"
                )
            case Step.FENCES:
                return f"fences {', '.join(self._read)}{answered}"
            case Step.READS:
                return f"recovers: reads {self.next} from {', '.join(self._read)}{answered}"
            case Step.WRITES | Step.END:
                what = "ends the recovery" if self._step is Step.END else "recovers: writes"
                return f"{what} at {self.next} to {', '.join(self._written)}{answered}"

    def repeat(self) -> None:
        """Sends the requests of the present step again. Replaces bookies that have not answered a write for long."""
        self._repeats += 1
        if self._step in {Step.WRITES, Step.END} and self._repeats >= PATIENCE:
            silent = set(self._written) - self._answered
            following = replaced(self._setting, self._written, silent)
            if following != self._written:
                self._written, self._repeats = following, 0
                self._segment = fragmented(self._segment, self.next, following)
                self._answered &= set(following)
                if self._bug is Bug.METADATA_CHANGED_IN_RECOVERY:
                    self._want((*self._earlier, self._segment), is_open=False)
                    return
        self.send()

    def send(self) -> None:
        """Sends the requests of the present step to all that have not answered."""
        setting, number = self._setting, self._segment.number
        match self._step:
            case Step.METADATA if self.wanted is not None:
                setting.host.send(setting.layout.metadata, messages.Put(setting.key, self.wanted))
            case Step.FENCES:
                fence = messages.Fence(setting.key, self.term, number)
                setting.to_bookies(self._read, fence, without=self._answered)
            case Step.READS:
                fences = self._bug is not Bug.RECOVERY_READS_DO_NOT_FENCE
                read = messages.ReadNext(setting.key, self.term, number, self.next, fences)
                setting.to_bookies(self._read, read, without=self._answered)
            case Step.WRITES | Step.END if self._entry is not None:
                add = messages.Add(
                    setting.key, self.term, number, self.next, self._entry, self._told_lac, recovery=True
                )
                setting.to_bookies(self._written, add, without=self._answered)

    @property
    def _bug(self) -> Bug:
        return self._setting.options.bug

    @property
    def _told_lac(self) -> int:
        """Returns the last add confirmed that goes with the entries it writes."""
        return self.lac

    @property
    def _blocking(self) -> int:
        """Returns how many bookies every ack quorum meets."""
        return len(self._read) - self._setting.options.ack_quorum + 1

    @property
    def _needed(self) -> int:
        """Returns how many bookies must have what the recovery writes."""
        options = self._setting.options
        everywhere = options.protocol is Protocol.TERMS and options.guarantee_write_quorum
        return len(self._written) if everywhere else options.ack_quorum

    def _begin(self, step: Step) -> None:
        self._step = step
        self._answered = set()
        self._repeats = 0
        self.send()

    def _handle_read(self, sender: str, entry: Entry | None) -> None:
        options = self._setting.options
        if entry is not None:
            self._entry = entry
            if self._bug is Bug.RECOVERED_NOT_WRITTEN_BACK:
                self._step = Step.WRITES
                self._handle_written()
            else:
                self._begin(Step.WRITES)
            return
        self._answered.add(sender)
        if len(self._answered) < (1 if self._bug is Bug.ONE_ABSENCE_ENDS_RECOVERY else self._blocking):
            return
        if options.protocol is Protocol.TERMS and options.truncate:
            self._entry = Entry(None, truncates=self.term)
            self._begin(Step.END)
        else:
            self._finish()

    def _handle_written(self) -> None:
        self.lac = self.next
        self.next += 1
        self._entry = None
        if self._step is Step.WRITES:
            self._begin(Step.READS)
        else:
            self._finish()

    def _finish(self) -> None:
        """Asks to be the writer."""
        last = self._segment
        closed = last._replace(last=self.lac)
        match self._setting.options.protocol:
            case Protocol.LEDGERS:
                self.next = (len(self._earlier) + 1) * LEDGER_ENTRIES
                self.lac = self.next - 1
                segments = (*self._earlier, closed, self._new_segment(last.number + 1))
            case Protocol.TERM_IDS:
                segments = (*self._earlier, closed, self._new_segment(self.term))
            case Protocol.TERMS:
                segments = (*self._earlier, last)
        self._want(segments, is_open=True)

    def _new_segment(self, number: int) -> Segment:
        return Segment(number, self.next, None, (Fragment(self.next, self._written),))

    def _want(self, segments: tuple[Segment, ...], *, is_open: bool) -> None:
        self._version += 1
        self.wanted = Meta(self._version, self.term, is_open, self._setting.host.name, segments)
        self._begin(Step.METADATA)
