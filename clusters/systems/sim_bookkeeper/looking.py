"""Reads of a ledger without a recovery: of its last add confirmed, and of the entries up to it.

A client node asks the metadata store for the metadata. If the ledger is closed, they have the last entry. Otherwise it asks the
ensemble of the last fragment for the last add confirmed, until every ack quorum has a bookie that answered. Then it asks all
bookies of each fragment for the entries. Source: apache/bookkeeper, ReadLastConfirmedOp, PendingReadOp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.ensemble import pieces
from clusters.systems.sim_bookkeeper.ledger_messages import AskConfirmed, ConfirmedIs, LedgerRequest
from clusters.systems.sim_bookkeeper.messages import Answer

if TYPE_CHECKING:
    from clusters.systems.sim_bookkeeper.messages import Entry, Meta, Segment
    from clusters.systems.sim_bookkeeper.setting import Setting

MOST_RETRIES: Final = 20


@dataclass(slots=True)
class Look:
    """A read under way.

    Attributes:
        number: The number of its messages.
        client: The client.
        request: The number of the client's request.
        body: The request: `read` or `confirmed`.
        segment: The ledger in the metadata; None before they are known.
        answered: The last add confirmed of each bookie that has told it.
        pieces: The parts of the range that it still reads, as `ensemble.pieces` returns them; None before the end is known.
        found: The entries so far, by offset.
        without: The bookies that have answered about the first piece.
        retries: How often the timer has fired.
    """

    number: int
    client: str
    request: int
    body: LedgerRequest
    segment: Segment | None = None
    answered: dict[str, int] = field(default_factory=dict)
    pieces: list[tuple[int, int, int, tuple[str, ...]]] | None = None
    found: dict[int, Entry] = field(default_factory=dict)
    without: set[str] = field(default_factory=set)
    retries: int = 0


class Looks:
    """The reads of one ledger at one client node."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._number = 0
        self._open: dict[int, Look] = {}

    @property
    def are_open(self) -> bool:
        """Returns whether a read is under way."""
        return bool(self._open)

    def ask(self, client: str, request: int, body: LedgerRequest) -> None:
        """Begins a read."""
        self._number += 1
        look = self._open[self._number] = Look(self._number, client, request, body)
        self._send(look)

    def meta_is(self, number: int, meta: Meta, *, exists: bool) -> None:
        """Handles the metadata for a read."""
        look = self._open.get(number)
        if look is None or look.segment is not None:
            return
        if not exists:
            self._close(look, Answer(outcomes.NO_LEDGER))
            return
        look.segment = meta.segments[-1]
        if look.segment.last is None:
            self._send(look)
        else:
            self._know_end(look, look.segment.last)

    def confirmed(self, bookie: str, message: ConfirmedIs) -> None:
        """Handles a bookie's last add confirmed."""
        look = self._open.get(message.number)
        if look is None or look.segment is None or look.pieces is not None:
            return
        look.answered[bookie] = message.last
        fragment = look.segment.fragments[-1]
        if len(look.answered) > len(fragment.bookies) - self._setting.options.ack_quorum:
            self._know_end(look, max(*look.answered.values(), fragment.first - 1))

    def fetched(self, bookie: str, message: messages.Fetched) -> None:
        """Handles the entries of a bookie."""
        look = self._open.get(message.number)
        if look is None or not look.pieces or look.pieces[0][1] != message.first:
            return
        _, first, last, ensemble = look.pieces[0]
        look.found.update(dict(message.entries))
        look.without.add(bookie)
        if all(offset in look.found for offset in range(first, last + 1)):
            look.pieces.pop(0)
            look.without.clear()
            self._go_on(look)
        elif look.without.issuperset(ensemble):
            self._close(look, Answer(outcomes.UNREADABLE))

    def retry(self) -> None:
        """Asks again. Gives up reads whose clients have gone long ago."""
        for look in [*self._open.values()]:
            look.retries += 1
            if look.retries > MOST_RETRIES:
                self._close(look, Answer(outcomes.NO_ANSWER))
            else:
                self._send(look)

    def _know_end(self, look: Look, last: int) -> None:
        assert look.segment is not None  # noqa: S101 - by the callers
        if look.body.f == "confirmed":
            self._close(look, Answer(outcomes.OK, last))
            return
        first, end = look.body.value
        look.pieces = pieces(look.segment, first, min(end, last))
        self._go_on(look)

    def _go_on(self, look: Look) -> None:
        if look.pieces:
            self._send(look)
        else:
            entries = [[offset, entry.value] for offset, entry in sorted(look.found.items())]
            self._close(look, Answer(outcomes.OK, entries))

    def _close(self, look: Look, answer: Answer) -> None:
        del self._open[look.number]
        self._setting.answer(look.client, look.request, answer)

    def _send(self, look: Look) -> None:
        setting = self._setting
        if look.segment is None:
            setting.host.send(setting.layout.metadata, messages.Get(setting.key, look.number))
        elif look.pieces is None:
            ask = AskConfirmed(setting.key, look.number, look.segment.number)
            setting.to_bookies(look.segment.fragments[-1].bookies, ask, without=look.answered.keys())
        else:
            number, first, last, ensemble = look.pieces[0]
            fetch = messages.Fetch(setting.key, look.number, number, first, last)
            setting.to_bookies(ensemble, fetch, without=look.without)
