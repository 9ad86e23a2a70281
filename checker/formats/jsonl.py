"""Reads the events of history.jsonl, our own format, from any stream: a header, then one JSON object on each line.

`harness.event_lines` decodes and checks the lines. If the run ended while it wrote the last line, this torn line is left out,
with a warning.

A file of another tool may begin with an event. Then there is no header, the order of the lines is the order of the events, and
a line may lack the index, the time and the value. One warning states this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from checker.formats.errors import BadHistory
from checker.formats.pairing import Event, torn_warning
from checker.formats.parquet import hold_to_bounds
from harness.event_lines import MAX_LINE_BYTES, decode_event, decode_object
from harness.op import NEMESIS, OpType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.formats.source import Source
    from harness.op import Op


# As in `harness.history`, which would load asyncio and take a quarter of a short check; a test compares the two.
FORMAT: Final = "labrys-history"
VERSION: Final = 1
EVENT: Final = frozenset({"type", "process", "f"})  # members that each event has, and no header


class JsonlEvents:
    """Yields the events of a history.

    Attributes:
        header: The header; known after the first event was requested.
        warnings: Warnings as sentences; known at the end.
        timed: Whether the events have times; known after the first event was requested.
    """

    may_be_empty: Final = True

    def __init__(self, source: Source, *, keyed: bool | None) -> None:
        """Prepares to read.

        Args:
            source: The lines.
            keyed: Whether the values of events without a key are lists of a key and a value. None: no, with a warning if an
                event without a header looks otherwise.
        """
        self.header: Mapping[str, Any] = {}
        self.warnings: list[str] = []
        self.timed = True
        self._bare = False
        self._keyed = bool(keyed)
        self._may_be_keyed = keyed is None  # until an event shows it
        self._source = source
        self._index = 0

    def __iter__(self) -> Iterator[Event]:
        """Yields each event.

        Raises:
            BadHistory: The file is not a history, or has a malformed line that is not its torn last one.
        """
        source = self._source
        while line := source.readline_bytes(MAX_LINE_BYTES + 1):
            try:
                event = self._event(line)
            except ValueError as error:
                raise BadHistory(source.name, source.line, str(error)) from None
            if event is not None:
                yield event

    def _event(self, line: bytes) -> Event | None:
        """Returns the event of a line; None for the header and a torn end."""
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"expected a line of at most {MAX_LINE_BYTES} bytes")
        try:
            fields = decode_object(line)
        except ValueError:
            if not (self.header or self._bare) or line.endswith(b"\n"):
                raise
            self.warnings.append(torn_warning(self._source.line))
            return None
        if not self.header and not self._bare:
            if not fields.keys() >= EVENT:
                self.header = header_of(fields)
                return None
            self._begin_bare(fields)
        if self._bare:
            fields = self._completed(fields)
        op = decode_event(fields, self._index)
        self._index += 1
        hold_to_bounds(op.value)
        if self._may_be_keyed and self._bare and _asks_for_key(op):
            self._may_be_keyed = False
            self.warnings.append(
                f"line {self._source.line} has a value like [key, null], and the values are taken as they are; "
                "--keyed takes each as a key and a value"
            )
        return Event(self._source.line, self._lifted(op) if self._keyed else op)

    def _begin_bare(self, first: Mapping[str, Any]) -> None:
        """Sets the state for a history without a header, and determines whether it has times."""
        self._bare = True
        self.timed = "time" in first
        untimed = "" if self.timed else ", and they have no times"
        self.warnings.append(
            f"line 1 is an event and not the header of a history.jsonl; the events are taken in the order of the lines{untimed}"
        )

    def _completed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Returns an event with the index of its line, the time 0 if there are no times, and nil for a missing value."""
        if ("time" in fields) != self.timed:
            expected = "a time, as in the first event" if self.timed else "no time, because the first event has none"
            raise ValueError(f"expected {expected}")
        return {"value": None, "time": 0, **fields, "index": self._index}

    def _lifted(self, op: Op) -> Op:
        if op.key is not None or op.process == NEMESIS:
            return op
        if isinstance(op.value, list) and len(op.value) == 2 and isinstance(op.value[0], str):
            return op._replace(key=op.value[0], value=op.value[1])
        raise ValueError(
            "expected a value [key, value] with a text key, because this history is keyed (--keyed, or its conventions)"
        )


def _asks_for_key(op: Op) -> bool:
    """Returns whether an invoke has the value of a keyed read of Jepsen."""
    value = op.value
    return (
        op.type is OpType.INVOKE
        and type(value) is list
        and len(value) == 2
        and type(value[0]) is str
        and value[1] is None
    )


def header_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the header of a history.

    Raises:
        ValueError: It is another object.
    """
    if fields.get("format") != FORMAT:
        raise ValueError(
            f'expected the header {{"format": "{FORMAT}", "version": {VERSION}, ...}}, '
            "or an event with at least type, process and f"
        )
    if fields.get("version") != VERSION:
        raise ValueError(f"expected version {VERSION} of the format, found {fields.get('version')!r}")
    return fields
