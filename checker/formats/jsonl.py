"""Reads the events of history.jsonl, our own format, from any stream: a header, then one JSON object on each line.

`harness.event_lines` decodes and checks the lines. If the run ended while it wrote the last line, this torn line is left out,
with a warning.

A file of another tool may begin with an event. Then there is no header, and `checker.formats.json_events` makes the events. One
warning states this.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

from checker.formats.errors import BadHistory, NoObject
from checker.formats.foreign import CAS, CAS_OF_THREE, IN_VAIN
from checker.formats.json_events import JsonEvents, begins_events
from checker.formats.missing import COMPLETION, FUNCTION, INDEX, INVOKE, KEY, PROCESS, TIME, TYPE, VALUE, May
from harness.event_lines import MAX_LINE_BYTES, REQUIRED, EventLines, header_of
from harness.op import NEMESIS
from harness.pairing import Event, torn_warning
from harness.values import hold_to_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker.formats.source import ByteLines
    from harness.op import Value

_MEMBERS: Final = {
    TYPE: "type", FUNCTION: "f", PROCESS: "process", VALUE: "value", INDEX: "index", TIME: "time", KEY: "key",
}  # fmt: skip


class JsonlEvents:
    """Yields the events of a history.

    Attributes:
        MAY_LACK: What an event after a header may lack; see `checker.formats.missing`.
        conventions: None, because each JSON value has one meaning.
    """

    MAY_LACK: ClassVar[Mapping[str, May]] = {
        **{thing: May.NO if member in REQUIRED else May.YES for thing, member in _MEMBERS.items()},
        INVOKE: May.OF_TRANSACTIONS,
        COMPLETION: May.YES,
    }
    may_be_empty: Final = True
    conventions: ClassVar[Mapping[str, str]] = {}

    def __init__(self, source: ByteLines, *, keyed: bool | None, transactional: bool = False) -> None:
        """Prepares to read.

        Args:
            source: The lines.
            keyed: Whether the values of events without a key are lists of a key and a value. None: after a header they are not;
                without one, as in `checker.formats.foreign.ForeignEvents`.
            transactional: As in `ForeignEvents`, for events without a header.
        """
        self._lines = EventLines()
        self._keyed = keyed
        self._transactional = transactional
        self._torn_line: int | None = None
        self._bare: JsonEvents | None = None
        self._source = source

    @property
    def timed(self) -> bool:
        """Returns whether the events have times; known after the first event of a client."""
        return self._bare is None or self._bare.timed

    @property
    def keyed(self) -> bool | None:
        """Returns whether the values of events without a key are tuples; known as in `ForeignEvents`."""
        return self._keyed if self._bare is None else self._bare.keyed

    @property
    def warnings(self) -> Sequence[str]:
        """Returns warnings as sentences; known at the end."""
        bare = [] if self._bare is None else [bare_warning(timed=self.timed)]
        return [*bare, *([] if self._torn_line is None else [torn_warning(self._torn_line)])]

    def __iter__(self) -> Iterator[Event]:
        """Yields each event.

        Raises:
            BadHistory: The file is not a history, or has a malformed line that is not its torn last one.
        """
        try:
            objects = self._objects()
            for first in objects:
                if begins_events(first[1]):
                    yield from self._without_header(chain([first], objects))
                    return
                self._lines.header = own_header(first[1])
                break
            for line, fields in objects:
                op = self._lines.event(fields)
                hold_to_bounds(op.value)
                event = Event(line, op)
                yield lifted(event) if self._keyed else event
        except ValueError as error:
            raise BadHistory(self._source.name, self._source.line, str(error)) from None

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields the line and the object of each line but that of a torn end."""
        source = self._source
        while line := source.readline_bytes(MAX_LINE_BYTES + 1):
            try:
                fields = self._lines.fields(line, begun=self._bare is not None)
            except ValueError as error:
                raise NoObject(source.name, source.line, str(error)) from None
            if fields is None:
                self._torn_line = source.line
            else:
                yield source.line, fields

    def _without_header(self, objects: Iterator[tuple[int, Mapping[str, Any]]]) -> Iterator[Event]:
        self._bare = JsonEvents(objects, self._source.name, keyed=self._keyed, transactional=self._transactional)
        return iter(self._bare)


def lifted(event: Event) -> Event:
    """Returns an event of a keyed history with its key apart from its value.

    A cas may have its key, the expected and the new value in one list. An operation that did not succeed may have a reason.

    Raises:
        ValueError: Its value is no pair of a key and a value.
    """
    op = event.op
    if op.key is not None or op.process == NEMESIS:
        return event
    value = with_pair(op.f, op.value)
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        return event._replace(op=op._replace(key=value[0], value=value[1]), is_lifted=True)
    if op.type in IN_VAIN:
        return event._replace(op=op._replace(value=None), has_value=False, is_lifted=True)
    raise ValueError(
        "expected a value [key, value] with a text key, because this history is keyed (--keyed, or its conventions)"
    )


def with_pair(f: str, value: Value) -> Value:
    """Returns the value of an operation of a keyed history; that of a cas of three as a key with `[expected, new]`."""
    return [value[0], value[1:]] if f == CAS and isinstance(value, list) and len(value) == CAS_OF_THREE else value


def bare_warning(*, timed: bool) -> str:
    """Returns the warning about a history without a header."""
    untimed = "" if timed else ", and they have no times"
    return f"line 1 is an event and not the header of a history.jsonl; the events are taken in the order of the lines{untimed}"


def own_header(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the header of a history.

    Raises:
        ValueError: The object is neither a header nor an event.
    """
    return header_of(fields, "the header ", ", or an event with at least type, process and f")
