"""Reads of the writer.

A read is linearizable if the writer knows every acknowledged entry. So the writer asks the metadata store whether it is still
the writer. If it is, no later writer has acknowledged an entry before the read began. Then it reads the entries up to its last
add confirmed, fragment by fragment. It asks one bookie of the ensemble after the other until it has all, or all at once with
`--read-all`. An entry that no bookie of its ensemble has is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.ensemble import pieces
from clusters.systems.sim_bookkeeper.messages import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.sim_bookkeeper.messages import Entry, Segment
    from clusters.systems.sim_bookkeeper.setting import Setting
    from harness.op import Value

MOST_RETRIES: Final = 50


@dataclass(slots=True)
class Reading:
    """A client's read under way.

    Attributes:
        number: The number of its messages.
        client: The client.
        request: The number of the client's request.
        query: The request.
        pieces: The pieces of segments that it still reads: number, first and last offset, and the ensemble; None before it is
            confirmed.
        found: The entries so far, by offset.
        damaged: The offsets that are damaged on a bookie.
        bookie: The place in the ensemble of the bookie that it asks.
        answered: The bookies that have answered about the first piece.
        retries: How often the timer has fired.
    """

    number: int
    client: str
    request: int
    query: messages.Query
    pieces: list[tuple[int, int, int, tuple[str, ...]]] | None = None
    found: dict[int, Entry] = field(default_factory=dict)
    damaged: set[int] = field(default_factory=set)
    bookie: int = 0
    answered: set[str] = field(default_factory=set)
    retries: int = 0


class Readings:
    """The reads of one log."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._number = 0
        self._open: dict[int, Reading] = {}

    @property
    def are_open(self) -> bool:
        """Returns whether a read is under way."""
        return bool(self._open)

    def ask(self, client: str, request: int, query: messages.Query, segments: Sequence[Segment], last: int) -> None:
        """Begins a read. The segments and the last readable offset count only with the bug that does not ask."""
        self._number += 1
        reading = self._open[self._number] = Reading(self._number, client, request, query)
        if self._setting.options.bug is Bug.READS_WITHOUT_ASKING:
            self.confirm(self._number, segments, last)
        else:
            self._send(reading)

    def confirm(self, number: int, segments: Sequence[Segment], last: int) -> None:
        """Reads the entries: the metadata store says that this node is the writer.

        Args:
            number: The number of the read.
            segments: The segments of the log.
            last: The last readable offset.
        """
        reading = self._open.get(number)
        if reading is None or reading.pieces is not None:
            return
        query = reading.query
        reading.pieces = []
        for segment in segments:
            end = min(query.last, last if segment.last is None else segment.last)
            reading.pieces += pieces(segment, query.first, end)
        reading.bookie = self._setting.host.random.randrange(len(self._setting.layout.ensemble))
        self._advance(reading)

    def fetched(self, bookie: str, message: messages.Fetched) -> None:
        """Handles the answer of a bookie."""
        reading = self._open.get(message.number)
        if reading is None or not reading.pieces or reading.pieces[0][:2] != (message.segment, message.first):
            return
        _, first, last, ensemble = reading.pieces[0]
        for offset, entry in message.entries:
            if first <= offset <= last:
                reading.found.setdefault(offset, entry)
        reading.damaged.update(message.damaged)
        reading.answered.add(bookie)
        if all(offset in reading.found for offset in range(first, last + 1)) or reading.answered.issuperset(ensemble):
            reading.pieces.pop(0)
            reading.answered.clear()
            self._advance(reading)
        elif self._asked(reading) in reading.answered and not self._setting.options.read_all:
            self._next_bookie(reading)

    def retry(self) -> None:
        """Asks again, or the next bookie. Gives up reads whose clients have gone long ago."""
        for reading in list(self._open.values()):
            reading.retries += 1
            if reading.retries > MOST_RETRIES:
                self._close(reading, Answer(outcomes.NO_ANSWER))
            elif reading.pieces is None:
                self._send(reading)
            else:
                self._next_bookie(reading)

    def refuse_all(self) -> None:
        """Refuses all reads: this node is no longer the writer."""
        for reading in list(self._open.values()):
            self._close(reading, Answer(outcomes.NOT_WRITER))

    def _advance(self, reading: Reading) -> None:
        """Asks about the next piece, or answers."""
        if reading.pieces:
            self._send(reading)
            return
        entries = {offset: entry.value for offset, entry in sorted(reading.found.items()) if not entry.truncates}
        if reading.damaged - reading.found.keys():
            self._close(reading, Answer(outcomes.UNREADABLE))
            return
        value: Value = [[offset, body] for offset, body in entries.items()]
        if reading.query.single:
            value = entries.get(reading.query.first)
        self._close(reading, Answer(outcomes.OK, value))

    def _close(self, reading: Reading, answer: Answer) -> None:
        del self._open[reading.number]
        self._setting.answer(reading.client, reading.request, answer)

    def _asked(self, reading: Reading) -> str:
        """Returns the bookie that it asks about the first piece."""
        assert reading.pieces  # noqa: S101 - by the callers
        return reading.pieces[0][-1][reading.bookie]

    def _next_bookie(self, reading: Reading) -> None:
        """Asks the next bookie that has not answered. With `--read-all`, asks all of them."""
        assert reading.pieces  # noqa: S101 - by the callers
        bookies = reading.pieces[0][-1]
        for _ in bookies:
            reading.bookie = (reading.bookie + 1) % len(bookies)
            if bookies[reading.bookie] not in reading.answered:
                break
        self._send(reading)

    def _send(self, reading: Reading) -> None:
        setting = self._setting
        if reading.pieces is None:
            setting.host.send(setting.layout.metadata, messages.Get(setting.key, reading.number))
        else:
            number, first, last, ensemble = reading.pieces[0]
            fetch = messages.Fetch(setting.key, reading.number, number, first, last)
            if setting.options.read_all:
                setting.to_bookies(ensemble, fetch, without=reading.answered)
            else:
                setting.host.send(self._asked(reading), fetch)
