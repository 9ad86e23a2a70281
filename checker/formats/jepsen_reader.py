"""Reads the events of a history in EDN of Jepsen and knossos, and of porcupine's key-value logs, which are EDN too.

A history is one vector or list of maps, or a sequence of maps; a map may have a tag, as records do. The order of keys does not
matter. `checker.formats.foreign` makes the events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from checker.edn.lines import Row
from checker.edn.reader import Reader
from checker.edn.values import EdnMap, Keyword, Tagged
from checker.formats.conventions import MEMBER
from checker.formats.foreign import MEMBERS, TYPE_KEYWORDS, ForeignEvents, Syntax
from checker.formats.texts import shown
from harness.values import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.edn.values import EdnValue
    from checker.formats.source import TextLines

_AROUND: Final = 2  # forms around a value: the map of its event, and its pair with the key
KEYS: Final = tuple(map(Keyword, MEMBERS))


class JepsenEvents(ForeignEvents):
    """Yields the events of a history in EDN."""

    SYNTAX: ClassVar[Syntax] = Syntax(members=KEYS, conventions=MEMBER)

    def __init__(self, source: TextLines, *, keyed: bool | None, transactional: bool = False) -> None:
        """Prepares to read.

        Args:
            source: The text.
            keyed: As in `ForeignEvents`.
            transactional: As in `ForeignEvents`.
        """
        super().__init__(source.name, keyed=keyed, transactional=transactional)
        keywords = [*KEYS, *TYPE_KEYWORDS]
        self._reader = Reader(
            source,
            name=source.name,
            see_through=True,
            keywords=keywords,
            rows=True,
            max_depth=MAX_NESTING + _AROUND,
        )

    def _rows(self) -> Iterator[tuple[int, Row]]:
        reader = self._reader
        for form in reader:
            yield reader.line, form if type(form) is Row else self._row(reader.line, form)
        self.may_be_empty = reader.saw_through

    def _row(self, line: int, form: EdnValue) -> Row:
        event = form.value if type(form) is Tagged else form
        if type(event) is not EdnMap:
            raise self._bad(line, f"expected the map of an event, found {shown(form)}")
        return Row(*event.columns())


def conventions_at(source: TextLines) -> Mapping[str, str]:
    """Returns the conventions in the first event of a history in EDN; empty if it has none.

    Raises:
        InputError: The text does not begin with an event in EDN, or the event is incomplete, or a convention is unknown.
    """
    events = JepsenEvents(source, keyed=None)
    next(iter(events), None)
    return events.conventions
