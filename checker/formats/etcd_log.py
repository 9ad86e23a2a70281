"""Reads events from Jepsen's console log, the format of porcupine's etcd histories.

An event is a line `INFO  jepsen.util - PROCESS<TAB>:type<TAB>:f<TAB>value`; the reader skips other lines. An operation that did
not succeed may have the cause, `:timed-out`, in place of a value: then the value of its invoke counts. So a read that failed by
a time-out has no known result, and observes nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from checker.edn.reader import loads
from checker.edn.values import Keyword
from checker.formats.errors import BadHistory, shown
from checker.formats.values import PlainValues
from harness.errors import InputError
from harness.op import NEMESIS, Op, OpType
from harness.pairing import Event

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker.formats.source import Source
    from harness.op import Value

MARK: Final = re.compile(rb"INFO\s+(?:\[[^\]]*\]\s*)?jepsen\.util\s+-\s")
_LINE_CHARACTERS: Final = 1 << 16
_EVENT: Final = re.compile(
    r"INFO\s+(?:\[[^\]]*\]\s*)?jepsen\.util\s+-\s+(?P<process>\d{1,18}|:nemesis)\s+:(?P<type>\S+)\s+:(?P<f>\S+)\s+(?P<value>\S.*?)\s*",
    re.ASCII,
)
_BEGINNING: Final = re.compile(
    r"INFO\s+(?:\[[^\]]*\]\s*)?jepsen\.util\s+-\s+(?:(?:-?\d+|:nemesis)(?:\s|$)|\S+\s+:(?:invoke|ok|fail|info)\s)",
    re.ASCII,
)
_TYPES: Final = {str(op_type): op_type for op_type in OpType}


class EtcdLogEvents:
    """Yields the events of a log; their indexes are their positions, and all times are 0, because the log has none."""

    timed: Final = False
    may_be_empty: Final = False
    warnings: Sequence[str] = ()

    def __init__(self, source: Source) -> None:
        """Prepares to read."""
        self._source = source
        self._plain = PlainValues()
        self._values: dict[str, tuple[Value, str | None]] = {}

    def __iter__(self) -> Iterator[Event]:
        """Yields each event.

        Raises:
            BadHistory: A line begins like an event but is malformed.
        """
        source = self._source
        index = 0
        while line := source.readline(_LINE_CHARACTERS):
            match = _EVENT.fullmatch(line)
            if match is None:
                if _BEGINNING.match(line):
                    raise self._bad(line, "an event: process, :type, :f and value")
                continue
            process, type_name, f, text = match.groups()
            op_type = _TYPES.get(type_name)
            if op_type is None:
                raise self._bad(line, "a type :invoke, :ok, :fail or :info")
            if process == ":nemesis":
                yield Event(source.line, Op(index, 0, op_type, NEMESIS, f))
            else:
                value, error = self._value(line, text)
                has_value = error is None or op_type in {OpType.INVOKE, OpType.OK}
                op = Op(index, 0, op_type, int(process), f, value, error=None if has_value else error)
                yield Event(source.line, op, has_value)
            index += 1

    def _value(self, line: str, text: str) -> tuple[Value, str | None]:
        """Returns the value in a text, and the error if the text is one."""
        known = self._values.get(text)
        if known is None:
            try:
                form = loads(text)
                known = (self._plain.value(form), form.name if isinstance(form, Keyword) else None)
            except (InputError, ValueError):
                raise self._bad(line, "a value at its end") from None
            self._values[text] = known
        return known

    def _bad(self, line: str, expected: str) -> BadHistory:
        return BadHistory(self._source.name, self._source.line, f"expected {expected}, found {shown(line.rstrip())}")
