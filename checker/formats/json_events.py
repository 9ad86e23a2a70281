"""Makes events of JSON objects as other tools write them: on lines, in an array, or over several lines each.

The rule: what EDN accepts, JSON accepts, because `checker.formats.foreign` makes the events. Only `index` does not count: the
order of the objects is the order of the events. Objects come one after the other, so the length of a history has no limit, but
an object has one.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from checker.edn.lines import Row
from checker.edn.values import EdnMap
from checker.formats.errors import BadHistory, shown
from checker.formats.foreign import MEMBERS, ForeignEvents, Syntax
from checker.formats.missing import INDEX, OF_EVENTS, May
from checker.formats.values import PlainValues
from harness.event_lines import FORMAT, MAX_LINE_BYTES, object_at
from harness.values import hold_to_bounds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from checker.edn.values import EdnValue
    from checker.formats.source import ByteLines
    from harness.op import Value

ARRAY_START: Final = re.compile(rb'\s*\[\s*\{\s*"(?:[^"\\]|\\.){0,100}"\s*:')
SPREAD_START: Final = re.compile(rb'\s*\{[ \t\r]*\n\s*"(?:[^"\\]|\\.){0,100}"\s*:')
_PIECE_BYTES: Final = 1 << 16
_VALUE: Final = "value"
_FORMAT: Final = "format"
_TYPE: Final = "type"
_CONTAINERS: Final = (list, dict)
_SPACE: Final = re.compile(r"[ \t\r\n]*+")


class JsonValues(PlainValues):
    """Converts the values of one history in JSON, which are what an operation has."""

    def value(self, value: EdnValue, depth: int = 0) -> Value:
        """Returns a value.

        Args:
            value: The value.
            depth: The number of collections around it.

        Raises:
            ValueError: It is nested too deeply, or not finite.
        """
        hold_to_bounds(value, depth)
        return value

    def text(self, value: EdnValue) -> str:
        """Returns a text for this value alone, as in EDN.

        Raises:
            ValueError: It is nested too deeply, or not finite.
        """
        return super().text(_hashable(value) if type(value) in _CONTAINERS else value)


class JsonEvents(ForeignEvents):
    """Yields the events of JSON objects."""

    MAY_LACK: ClassVar[Mapping[str, May]] = {**OF_EVENTS, INDEX: May.YES}
    SYNTAX: ClassVar[Syntax] = Syntax(members=(None, *MEMBERS[1:]), said='"{}"', name="text", values=JsonValues)

    def __init__(
        self,
        objects: Iterable[tuple[int, Mapping[str, Any]]],
        name: str,
        *,
        keyed: bool | None,
        transactional: bool = False,
    ) -> None:
        """Prepares to read.

        Args:
            objects: The objects, each with its line or its number, from 1.
            name: As in `ForeignEvents`.
            keyed: As in `ForeignEvents`.
            transactional: As in `ForeignEvents`.
        """
        super().__init__(name, keyed=keyed, transactional=transactional)
        self._objects = objects
        self._known: dict[tuple[str, ...], tuple[Hashable, ...]] = {}

    def _rows(self) -> Iterator[tuple[int, Row]]:
        known = self._known
        for line, fields in self._objects:
            names = tuple(fields)
            keys = known.setdefault(names, names)  # the same object for the same names, which is compared fast
            try:
                values = [
                    _hashable(value) if type(value) in _CONTAINERS and name != _VALUE else value
                    for name, value in fields.items()
                ]
            except ValueError as error:
                raise self._bad(line, str(error)) from None
            yield line, Row(keys, values)  # type: ignore[arg-type]  # names in place of keywords


def _hashable(value: Value) -> EdnValue:
    """Returns a value of JSON as one of EDN.

    Raises:
        ValueError: It is nested too deeply.
    """
    hold_to_bounds(value)
    return _of_edn(value)


def _of_edn(value: Value) -> EdnValue:
    if isinstance(value, list):
        return tuple(map(_of_edn, value))
    if isinstance(value, dict):
        return EdnMap((key, _of_edn(member)) for key, member in value.items())
    return value


def begins_events(fields: Mapping[str, Any]) -> bool:
    """Returns whether the first object of a file is an event, and no header."""
    return _TYPE in fields and fields.get(_FORMAT) != FORMAT


class JsonObjects:
    """The objects of an array of JSON, or objects one after the other, wherever their lines end.

    Attributes:
        count: The number of objects so far.
    """

    def __init__(self, source: ByteLines) -> None:
        """Takes the text."""
        self.count = 0
        self._source = source
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""  # what was read and not yet taken
        self._at = 0
        self._has_more = True

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields the number and the members of each object.

        Raises:
            BadHistory: The text is no array of JSON objects, and no sequence of them.
        """
        closes = self._sign() == "["
        if closes:
            self._at += 1
        while (sign := self._sign()) not in {"", "]"}:
            if self.count and closes:
                if sign != ",":
                    raise self._bad(f"expected a comma or ] after element {self.count}, found {sign!r}")
                self._at += 1
                self._sign()
            self.count += 1
            yield self.count, self._object()
        if not closes and sign:
            raise self._bad(f"expected a JSON object, found {sign!r}")
        if closes and not sign:
            raise self._bad(f"expected ] at the end of the JSON array; it breaks off after element {self.count}")
        self._at += closes
        if rest := self._sign():
            raise self._bad(f"expected the end of the file after the JSON array, found {rest!r}")

    def _sign(self) -> str:
        """Goes to the next character that is no space, and returns it; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches anything
            if self._at < len(self._text) or not self._read(_PIECE_BYTES):
                return self._text[self._at : self._at + 1]

    def _read(self, size: int) -> bool:
        """Reads at least so many bytes more, if there are; returns whether there were any.

        Raises:
            BadHistory: The text is not UTF-8.
        """
        if not self._has_more:
            return False
        pieces = []
        while size > 0:
            piece = self._source.readline_bytes(_PIECE_BYTES)
            if not piece:
                self._has_more = False
                break
            pieces.append(piece)
            size -= len(piece)
        try:
            text = self._decode(b"".join(pieces), not self._has_more)
        except UnicodeDecodeError as error:
            raise self._bad(f"expected UTF-8 text: {error}") from None
        self._text, self._at = self._text[self._at :] + text, 0
        return bool(text)

    def _object(self) -> dict[str, Any]:
        """Takes the next object.

        Raises:
            BadHistory: There is none.
        """
        if self._sign() != "{":
            raise self._bad(f"expected a JSON object, found {shown(self._text[self._at :])}")
        try:
            while (parsed := object_at(self._text, self._at)) is None:
                left = len(self._text) - self._at
                if left > MAX_LINE_BYTES:
                    raise self._bad(f"expected an object of at most {MAX_LINE_BYTES} bytes")
                if not self._read(
                    max(left, _PIECE_BYTES)
                ):  # twice as much each time, so that a long object costs little
                    raise self._bad("expected a JSON object, which breaks off here")
        except ValueError as error:
            raise self._bad(str(error)) from None
        fields, self._at = parsed
        return fields

    def _bad(self, reason: str) -> BadHistory:
        return BadHistory(self._source.name, max(self.count, 1), reason)
