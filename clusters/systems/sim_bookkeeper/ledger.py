"""A client node's part in one ledger of the workload `ledger`, which has one writer, and ends once.

The ledger does not exist before the first append. The client node that gets it creates the ledger: it changes the metadata by
compare-and-set, and is the writer from then on. A process that starts again does not go on. The term is a random number, so
that a process does not take the ledger of the one before it for its own. A recovery fences the bookies, writes the entries
after the last add confirmed again, and closes the ledger in the metadata. A close by the writer does only the last of this.
Two recoveries can go on at once, and the first to close wins. Source: apache/bookkeeper, LedgerCreateOp, LedgerRecoveryOp,
LedgerHandle.doAsyncCloseInternal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.ledger_messages import ConfirmedIs, LedgerRequest
from clusters.systems.sim_bookkeeper.log import Log
from clusters.systems.sim_bookkeeper.looking import Looks
from clusters.systems.sim_bookkeeper.messages import Answer
from clusters.systems.sim_bookkeeper.takeover import Takeover
from clusters.systems.sim_bookkeeper.writer import Writer

if TYPE_CHECKING:
    from clusters.systems.sim_bookkeeper.messages import Meta
    from clusters.systems.sim_bookkeeper.setting import Setting

ABSENT: Final = 1  # the version of the metadata before a ledger is created
TERMS: Final = 1 << 20


class Recovery(Takeover):
    """A takeover that closes the ledger, and begins no other one.

    What it writes again carries no later confirmation than what it found. Another recovery can end the ledger earlier, and then
    a reader must not have seen these entries. BookKeeper's own recoveries confirm them, and so does a planted bug.
    """

    def __init__(self, setting: Setting, meta: Meta) -> None:
        super().__init__(setting, meta)
        self._is_open = meta.is_open
        self._found = -1

    def claim(self) -> None:
        """Puts the state of recovery into the metadata, unless another recovery did."""
        if self._is_open:
            super().claim()
        else:
            self.go_on()

    def receive(self, sender: str, message: Any) -> None:
        """Handles an answer of a bookie."""
        if isinstance(message, messages.Fenced) and message.term == self.term:
            self._found = max(self._found, message.lac)
        super().receive(sender, message)

    @property
    def _told_lac(self) -> int:
        return self.lac if self._bug is Bug.RECOVERIES_CONFIRM else self._found

    def _finish(self) -> None:
        self._want((*self._earlier, self._segment._replace(last=self.lac)), is_open=False)


class Ledger(Log):
    """A client node's part in one ledger."""

    def __init__(self, setting: Setting, meta: Meta) -> None:
        """Knows no ledger yet, if `meta` are the metadata of one that is not created."""
        super().__init__(setting, meta, writes=False)
        self._looks = Looks(setting)
        self._asked: list[tuple[str, int, LedgerRequest]] = []  # what waits for a creation or for the end
        self._creates: Meta | None = None
        self._closes: Meta | None = None

    def ask_ledger(self, client: str, request: int, body: LedgerRequest) -> None:
        """Handles a client's request."""
        match body.f:
            case "append" if self.writer is not None and not self.writer.is_full:
                self.writer.append(client, request, body.value)
            case "append" if self.meta.version == ABSENT and self.writer is None:
                self._asked.append((client, request, body))
                self._create()
            case "read" | "confirmed":
                self._looks.ask(client, request, body)
            case "recover":
                self._asked.append((client, request, body))
                if self.takeover is None:
                    self._get()
            case "close" if self.writer is not None:
                self._asked.append((client, request, body))
                self._close_by_writer(self.writer)
            case _:
                other = self.meta.owner if self.meta.owner != self._setting.host.name else None
                self._setting.answer(client, request, Answer(outcomes.NOT_WRITER, writer=other))
        self._settle()

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message of a bookie or of the metadata store."""
        match message:
            case ConfirmedIs():
                self._looks.confirmed(sender, message)
            case messages.Fetched():
                self._looks.fetched(sender, message)
            case messages.MetaIs(_, number, meta) if number:
                self._looks.meta_is(number, meta, exists=meta.version > ABSENT)
            case _:
                super().receive(sender, message)
        self._settle()

    def _handle_meta(self, number: int, meta: Meta) -> None:
        newer = meta.version > self.meta.version
        if self._creates is not None:
            self._handle_creation(self._creates, meta)
        elif self._closes is not None:
            self._handle_close(self._closes, meta)
        elif self.takeover is not None:
            super()._handle_meta(number, meta)
        elif self._waits_for("recover"):
            self.meta = meta if newer else self.meta  # a late answer can be older than what is known
            if self.meta.version == ABSENT:
                self._answer_all("recover", Answer(outcomes.NO_LEDGER))
            elif self.meta.segments[-1].last is not None:
                self._answer_all("recover", Answer(outcomes.OK, self.meta.segments[-1].last))
            else:
                self._take_over()
        else:
            super()._handle_meta(number, meta)

    def _handle_answer(self, takeover: Takeover, wanted: Meta, meta: Meta) -> None:
        """Handles metadata while a recovery waits for its change of them."""
        last = meta.segments[-1].last
        if meta == wanted and last is None:
            self.meta = meta
            takeover.go_on()
        elif last is not None and (meta == wanted or meta.version >= wanted.version):
            self.meta = meta
            self.takeover = None
            self._setting.host.log(f"has recovered {self._setting.key} to {last}")
            self._answer_all("recover", Answer(outcomes.OK, last))
        elif meta.version >= wanted.version or meta.version > self.meta.version:
            self.meta = meta
            self._take_over()

    def _take_over(self) -> None:
        self._setting.host.log(f"recovers {self._setting.key}")
        self.takeover = Recovery(self._setting, self.meta)
        self.takeover.claim()

    def _create(self) -> None:
        """Asks for the ledger."""
        if self._creates is None:
            host = self._setting.host
            self._creates = self.meta._replace(
                version=ABSENT + 1, term=1 + host.random.randrange(TERMS), owner=host.name
            )
            self._put(self._creates)

    def _handle_creation(self, wanted: Meta, meta: Meta) -> None:
        if meta.version < wanted.version:
            return
        self._creates, self.meta = None, meta
        if meta == wanted:
            self.writer = Writer(self._setting, meta, 0)
            self._setting.host.log(f"writes {self._setting.key} from 0 on in term {meta.term}")
        waiting, self._asked = self._asked, []
        for asked in waiting:
            self.ask_ledger(*asked)

    def _close_by_writer(self, writer: Writer) -> None:
        """Asks for the end of the ledger, unless this node knows of a recovery."""
        meta = self.meta
        if not meta.is_open:
            self._answer_all("close", Answer(outcomes.FENCED))
            return
        *earlier, last = meta.segments
        self._closes = meta._replace(
            version=meta.version + 1, is_open=False, segments=(*earlier, last._replace(last=writer.lac))
        )
        self.writer = None
        writer.stopped()
        self._put(self._closes)

    def _handle_close(self, wanted: Meta, meta: Meta) -> None:
        if meta.version < wanted.version:
            return
        self._closes, self.meta = None, meta
        last = meta.segments[-1].last
        same = last is not None and last == wanted.segments[-1].last
        self._answer_all("close", Answer(outcomes.OK, last) if same else Answer(outcomes.FENCED))

    def _put(self, meta: Meta) -> None:
        self._setting.host.send(self._setting.layout.metadata, messages.Put(self._setting.key, meta))

    def _get(self) -> None:
        self._setting.host.send(self._setting.layout.metadata, messages.Get(self._setting.key, 0))

    def _waits_for(self, f: str) -> bool:
        return any(body.f == f for _, _, body in self._asked)

    def _answer_all(self, f: str, answer: Answer) -> None:
        answered = [asked for asked in self._asked if asked[2].f == f]
        self._asked = [asked for asked in self._asked if asked[2].f != f]
        for client, request, _ in answered:
            self._setting.answer(client, request, answer)

    def _is_waiting(self) -> bool:
        return bool(self._asked) or self._looks.are_open or super()._is_waiting()

    def _repeat(self) -> None:
        super()._repeat()
        for wanted in (self._creates, self._closes):
            if wanted is not None:
                self._put(wanted)
        if self._waits_for("recover") and self.takeover is None:
            self._get()
        self._looks.retry()
