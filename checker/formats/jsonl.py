"""Reads the events of history.jsonl, our own format, from any stream: a header, then one JSON object on each line.

`harness.event_lines` decodes and checks the lines. If the run ended while it wrote the last line, this torn line is left out,
with a warning.

A file of another tool may begin with an event. Then there is no header, the order of the lines is the order of the events, and
a line may lack the index, the time and the value. One warning states this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from checker.formats.errors import BadHistory
from checker.formats.transactional import ArrayObjects, softened, without_process
from harness.event_lines import MAX_LINE_BYTES, EventLines, header_of
from harness.op import NEMESIS, OpType
from harness.pairing import Event, torn_warning
from harness.values import hold_to_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.formats.source import Source
    from harness.op import Op, Value


EVENT: Final = frozenset({"type", "process", "f"})  # members that each event has, and no header
TYPE_ONLY: Final = frozenset({"type"})
IN_VAIN: Final = frozenset({OpType.FAIL, OpType.INFO})
CAS: Final = "cas"
CAS_OF_THREE: Final = 3  # a key, the expected and the new value


class JsonlEvents:
    """Yields the events of a history.

    Attributes:
        warnings: Warnings as sentences; known at the end.
        timed: Whether the events have times; known after the first event was requested.
    """

    may_be_empty: Final = True

    def __init__(self, source: Source | ArrayObjects, *, keyed: bool | None, transactional: bool = False) -> None:
        """Prepares to read.

        Args:
            source: The lines, or the objects of an array.
            keyed: Whether the values of events without a key are lists of a key and a value. None: no, with a warning if an
                event without a header looks otherwise.
            transactional: Whether an event without a header may lack its process and its function; see
                `checker.formats.transactional`.
        """
        self._transactional = transactional
        self._lines = EventLines()
        self.warnings: list[str] = []
        self.timed = True
        self._bare = False
        self._keyed = bool(keyed)
        self._may_be_keyed = keyed is None  # until an event shows it
        self._source = source

    def __iter__(self) -> Iterator[Event]:
        """Yields each event.

        Raises:
            BadHistory: The file is not a history, or has a malformed line that is not its torn last one.
        """
        try:
            for fields in self._objects():
                event = self._event(fields)
                if event is not None:
                    yield event
        except ValueError as error:
            raise BadHistory(self._source.name, self._source.line, str(error)) from None

    def _objects(self) -> Iterator[dict[str, Any]]:
        """Yields the object of each line but that of a torn end."""
        source = self._source
        if isinstance(source, ArrayObjects):
            yield from source
            return
        while line := source.readline_bytes(MAX_LINE_BYTES + 1):
            fields = self._lines.fields(line, begun=self._bare)
            if fields is None:
                self.warnings.append(torn_warning(source.line))
            else:
                yield fields

    def _event(self, fields: dict[str, Any]) -> Event | None:
        """Returns the event of an object; None for the header."""
        lines = self._lines
        if not lines.header and not self._bare:
            if not fields.keys() >= (TYPE_ONLY if self._transactional and "format" not in fields else EVENT):
                lines.header = own_header(fields)
                return None
            self._begin_bare(softened(fields)[0] if self._transactional else fields)
        has_process = True
        if self._bare:
            fields, has_process = softened(fields) if self._transactional else (fields, True)
            fields = self._completed(fields)
        op = lines.event(fields)
        if not has_process:
            op = without_process(op)
        hold_to_bounds(op.value)
        if self._may_be_keyed and self._bare and _asks_for_key(op):
            self._may_be_keyed = False
            self.warnings.append(asks_for_key_warning(self._source.line))
        event = Event(self._source.line, op)
        return lifted(event) if self._keyed else event

    def _begin_bare(self, first: Mapping[str, Any]) -> None:
        """Sets the state for a history without a header, and determines whether it has times."""
        self._bare = True
        self.timed = "time" in first
        self.warnings.append(bare_warning(timed=self.timed))

    def _completed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Returns an event with the index of its line, the time 0 if there are no times, and nil for a missing value."""
        if ("time" in fields) != self.timed:
            expected = "a time, as in the first event" if self.timed else "no time, because the first event has none"
            raise ValueError(f"expected {expected}")
        return {"value": None, "time": 0, **fields, "index": self._lines.count}


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


def _asks_for_key(op: Op) -> bool:
    """Returns whether an invoke has the value of a keyed read of Jepsen."""
    return op.type is OpType.INVOKE and is_key_and_nil(op.value)


def is_key_and_nil(value: Value) -> bool:
    """Returns whether a value is a list of a text, which may be a key, and nil."""
    return type(value) is list and len(value) == 2 and type(value[0]) is str and value[1] is None


def bare_warning(*, timed: bool) -> str:
    """Returns the warning about a history without a header."""
    untimed = "" if timed else ", and they have no times"
    return f"line 1 is an event and not the header of a history.jsonl; the events are taken in the order of the lines{untimed}"


def asks_for_key_warning(line: int) -> str:
    """Returns the warning about values that look like a key and a value, the first of them in a line."""
    return (
        f"line {line} has a value like [key, null], and the values are taken as they are; "
        "--keyed takes each as a key and a value"
    )


def own_header(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the header of a history.

    Raises:
        ValueError: The object is neither a header nor an event.
    """
    return header_of(fields, "the header ", ", or an event with at least type, process and f")
