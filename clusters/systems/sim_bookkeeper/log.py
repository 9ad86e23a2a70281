"""A client node's part in one log: it takes over, writes and reads.

A client node knows the metadata of its last answer. If it is asked to write and is not the writer, it takes over
(`takeover`). Appends and reads wait until then. It stops to be the writer if a bookie refuses an entry, or if the metadata
have another owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.messages import Answer
from clusters.systems.sim_bookkeeper.reading import Readings
from clusters.systems.sim_bookkeeper.takeover import Takeover
from clusters.systems.sim_bookkeeper.writer import Writer
from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from clusters.sim.host import Timer
    from clusters.systems.sim_bookkeeper.messages import Meta
    from clusters.systems.sim_bookkeeper.setting import Setting


@dataclass(frozen=True, slots=True)
class Waiting:
    """A client's request that waits for a takeover."""

    client: str
    request: int
    body: messages.Append | messages.Query


class Log:
    """A client node's part in one log.

    Attributes:
        meta: The last known metadata.
        writer: Its part as the writer; None if it is not.
        takeover: The takeover under way; None if there is none.
    """

    def __init__(self, setting: Setting, meta: Meta, *, writes: bool) -> None:
        """Joins a log.

        Args:
            setting: The setting.
            meta: The metadata at the beginning.
            writes: Whether it is the writer in this metadata, and has just begun to be.
        """
        self.meta = meta
        self.takeover: Takeover | None = None
        self._setting = setting
        self.writer: Writer | None = Writer(setting, meta, 0) if writes else None
        self._readings = Readings(setting)
        self._waiting: list[Waiting] = []
        self._timer: Timer | None = None

    def ask(self, client: str, request: int, body: messages.Append | messages.Query) -> None:
        """Handles a client's request."""
        waiting = Waiting(client, request, body)
        if self.takeover is not None:
            self._waiting.append(waiting)
        elif self.writer is not None:
            self._serve(waiting)
        elif body.takes_over:
            self._waiting.append(waiting)
            self._take_over()
        else:
            self._refuse(waiting, outcomes.NOT_WRITER)
        self._settle()

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message of a bookie or of the metadata store."""
        match message:
            case messages.MetaIs(_, number, meta):
                self._handle_meta(number, meta)
            case messages.Added(_, term, offset) if self.writer is not None and term == self.writer.term:
                self.writer.added(sender, offset)
                self._next_ledger()
            case messages.Joined(_, term, version) if self.writer is not None and term == self.writer.term:
                self.writer.joined(sender, version)
            case messages.Refused(_, term) if self.writer is not None and term == self.writer.term:
                if self._setting.options.bug is Bug.REFUSED_IS_TIMEOUT:
                    self.writer.refused(sender)
                else:
                    self._stop_writing()
            case messages.Refused(_, term) if self.takeover is not None and term == self.takeover.term:
                self._lose_takeover()
            case messages.Fetched() if self.writer is not None:
                self._readings.fetched(sender, message)
            case messages.Added() | messages.Fenced() | messages.NextRead() if self.takeover is not None:
                self.takeover.receive(sender, message)
        if self._waiting and self.writer is not None and self.writer.has_room:
            self._serve_waiting()
        self._settle()

    def _handle_meta(self, number: int, meta: Meta) -> None:
        if self.takeover is not None and self.takeover.wanted is not None:
            self._handle_answer(self.takeover, self.takeover.wanted, meta)
            return
        if meta.version > self.meta.version:
            self.meta = meta
        if self.writer is not None and not self.writer.handle_meta(meta):
            self._stop_writing()
        if self.writer is not None and number:
            if (meta.term, meta.owner, meta.is_open) == (self.writer.term, self._setting.host.name, True):
                self._readings.confirm(number, self.meta.segments, self.writer.readable)
            elif meta.version >= self.meta.version:
                self._stop_writing()

    def _handle_answer(self, takeover: Takeover, wanted: Meta, meta: Meta) -> None:
        """Handles metadata while a takeover waits for its change of them."""
        if meta == wanted:
            self.meta = meta
            if meta.is_open:
                self._open(takeover)
            else:
                takeover.go_on()
        elif meta.version >= wanted.version or meta.version > self.meta.version:
            self.meta = meta
            if wanted.is_open:
                self._lose_takeover()
            else:
                self._take_over()

    def _take_over(self) -> None:
        """Begins a takeover from the known metadata."""
        self.takeover = Takeover(self._setting, self.meta)
        self.takeover.claim()

    def _open(self, takeover: Takeover) -> None:
        setting = self._setting
        self.takeover = None
        self.writer = Writer(setting, self.meta, takeover.next, takeover.lac)
        setting.host.log(f"writes {setting.key} from {self.writer.next} on in term {self.meta.term}")
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        """Carries out what waits."""
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._serve(request)

    def _serve(self, waiting: Waiting) -> None:
        """Carries out a request as the writer. An append waits for room."""
        assert self.writer is not None  # noqa: S101 - by the callers
        body = waiting.body
        if isinstance(body, messages.Query):
            self._readings.ask(waiting.client, waiting.request, body, self.meta.segments, self.writer.readable)
        elif self.writer.has_room:
            self.writer.append(waiting.client, waiting.request, body.value)
        else:
            self._waiting.append(waiting)
            self._next_ledger()

    def _next_ledger(self) -> None:
        """Takes over from itself if the ledger is full, and nothing is pending."""
        if self.writer is not None and self.writer.is_full and not self.writer.is_busy and self._waiting:
            self.writer = None
            self._readings.refuse_all()
            self._take_over()

    def _stop_writing(self) -> None:
        """Ends its part as the writer: somebody has taken over."""
        assert self.writer is not None  # noqa: S101 - by the callers
        setting = self._setting
        setting.host.log(f"is no longer the writer of {setting.key} in term {self.writer.term}")
        writer, self.writer = self.writer, None
        writer.stopped()
        self._readings.refuse_all()
        self._refuse_waiting(outcomes.NOT_WRITER)

    def _lose_takeover(self) -> None:
        assert self.takeover is not None  # noqa: S101 - by the callers
        self._setting.host.log(f"loses the takeover of {self._setting.key} in term {self.takeover.term}")
        self.takeover = None
        self._refuse_waiting(outcomes.TAKEOVER_LOST)

    def _refuse_waiting(self, code: str) -> None:
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._refuse(request, code)

    def _refuse(self, waiting: Waiting, code: str) -> None:
        setting = self._setting
        other = self.meta.owner if self.meta.owner != setting.host.name else None
        setting.answer(waiting.client, waiting.request, Answer(code, writer=other))

    def _settle(self) -> None:
        """Sets the timer for repetitions while something has no answer, and stops it otherwise."""
        setting, busy = self._setting, self._is_waiting()
        if busy and self._timer is None:
            self._timer = setting.host.after(setting.options.retry_ms * NS_PER_MS, self._retry)
        elif not busy and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_waiting(self) -> bool:
        """Returns whether something has no answer."""
        return self.takeover is not None or self._readings.are_open or (self.writer is not None and self.writer.is_busy)

    def _retry(self) -> None:
        self._timer = None
        self._repeat()
        self._settle()

    def _repeat(self) -> None:
        """Sends again what has no answer."""
        if self.takeover is not None:
            self.takeover.repeat()
        if self.writer is not None:
            self.writer.send()
            self._readings.retry()
