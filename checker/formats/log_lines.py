"""Reads events that Jepsen prints on lines: its console and its log, of old and of today, and its history.txt.

An event is `PROCESS<TAB>:type<TAB>:f<TAB>value`, and maybe `<TAB>error`. In a log, the logger `jepsen.util` stands before it,
after a time and a thread; the reader skips other lines. A history.txt has only events. There, a line that does not begin as an
event continues the error of the event before; otherwise it is an error, because nothing may be left out silently.

An operation that did not succeed may have its cause, `:timed-out`, in place of a value: then the value of its invoke counts. So
a read that failed by a time-out has no known result, and observes nothing. It may also have the cause after its value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from checker.edn.atoms import atom
from checker.edn.forms import first_form
from checker.edn.lines import Row
from checker.edn.reader import loads
from checker.edn.values import Keyword, Symbol
from checker.formats.errors import BadHistory, shown
from checker.formats.foreign import MEMBERS, TYPE_KEYWORDS, ForeignEvents, Syntax
from checker.formats.missing import FUNCTION, INDEX, OF_EVENTS, PROCESS, TIME, VALUE, May
from checker.formats.texts import error_text
from harness.errors import InputError
from harness.event_lines import MAX_LINE_BYTES
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.edn.values import EdnValue
    from checker.formats.source import TextLines

_TYPES: Final = "|".join(OpType)
_LOGGER: Final = re.compile(r"\bjepsen\.util(?:[ \t]+-|:)?[ \t]+", re.ASCII)
_BETWEEN_TABS: Final = re.compile(rf"(?:^|[ \t])([^ \t]+\t+:(?:{_TYPES})\t)", re.ASCII)
_EVENT: Final = re.compile(rf"\s*([^ \t]+)[ \t]+:({_TYPES})[ \t]+(.*?)\s*\Z", re.ASCII | re.DOTALL)
_BEGINNING: Final = re.compile(r"\s*(?:-?\d+|:nemesis)(?:\s|\Z)", re.ASCII)
_OLD_LOG: Final = re.compile(rb"INFO\s+(?:\[[^\]\n]*\]\s*)?jepsen\.util\s+-\s")
_LOG: Final = re.compile(
    rb"^[^\n]*\bjepsen\.util(?:[ \t]+-|:)?[ \t]+\S+[ \t]+:(?:invoke|ok|fail|info)[ \t]", re.MULTILINE
)
_LOG_START: Final = re.compile(rb"(?:INFO|WARN|DEBUG|ERROR)\s")
_LOG_OF_TODAY: Final = re.compile(rb"(?:(?:INFO|WARN|DEBUG|ERROR)\s+\[)?\d{4}-\d\d-\d\d[ T]\d\d:")
_TEXT_START: Final = re.compile(rb"\s*+[^\s,\"()\[\]{};]++[ \t]+:(?:invoke|ok|fail|info)[ \t]+\S")
_TABS: Final = re.compile(rb"^[^\n]*[ \t][^ \t\n]+\t+:(?:invoke|ok|fail|info)\t", re.MULTILINE)
_DIGITS: Final = 18
_REMEMBERED: Final = 1 << 12
_REMEMBERED_CHARACTERS: Final = 100

_WITH_VALUE: Final = tuple(map(Keyword, ("type", "process", "f", "value", "error")))
_WITHOUT_VALUE: Final = tuple(map(Keyword, ("type", "process", "f", "error")))
_KEYWORDS: Final = {str(op_type): keyword for keyword, op_type in TYPE_KEYWORDS.items()}
_IN_VAIN: Final = frozenset({str(OpType.FAIL), str(OpType.INFO)})
CAS: Final = "cas"
_CAS_KEYWORD: Final = Keyword(CAS)
DROP: Final[Mapping[str, str]] = {"failed_cas": "drop"}

CONSOLE_LOG: Final = "console-log"
JEPSEN_LOG: Final = "jepsen-log"
HISTORY_TXT: Final = "history-txt"


def kind_of_lines(head: bytes) -> str | None:
    """Returns which of the formats a text has, by its first bytes; None for another one."""
    if _TEXT_START.match(head):
        return HISTORY_TXT
    if _OLD_LOG.search(head):
        return CONSOLE_LOG
    if _LOG.search(head) or _LOG_OF_TODAY.match(head) or _TABS.search(head):
        return JEPSEN_LOG
    return CONSOLE_LOG if _LOG_START.match(head) else None


class _Members(NamedTuple):
    """What follows the type of an event.

    Attributes:
        f: The function.
        value: The value.
        error: The text of the error; None if there is none.
        has_value: Whether there is a value.
    """

    f: EdnValue
    value: EdnValue
    error: str | None
    has_value: bool


class LogEvents(ForeignEvents):
    """Yields the events of a log; their indexes are their positions, and all times are 0, because the lines have none."""

    MAY_LACK: ClassVar[Mapping[str, May]] = {
        **OF_EVENTS, FUNCTION: May.NO, PROCESS: May.NO, VALUE: May.NO, INDEX: May.ALWAYS, TIME: May.ALWAYS,
    }  # fmt: skip
    SYNTAX: ClassVar[Syntax] = Syntax(members=tuple(map(Keyword, MEMBERS)))
    conventions: Mapping[str, str]

    def __init__(self, source: TextLines, kind: str, *, keyed: bool | None, transactional: bool = False) -> None:
        """Prepares to read.

        Args:
            source: The text.
            kind: The result of `kind_of_lines`.
            keyed: As in `ForeignEvents`.
            transactional: As in `ForeignEvents`.
        """
        super().__init__(source.name, keyed=keyed, transactional=transactional)
        self._source = source
        self._kind = kind
        self._known: dict[tuple[str, str], _Members] = {}

    def _rows(self) -> Iterator[tuple[int, Row]]:
        source = self._source
        has_error = False  # whether a line may continue the error of the event before
        while line := source.readline(MAX_LINE_BYTES):
            rest = line if self._kind == HISTORY_TXT else _after_prefix(line)
            match = None if rest is None else _EVENT.match(rest)
            if rest is None or match is None:
                if rest is not None and _BEGINNING.match(rest):
                    raise self._no_event(line)
                if self._kind == HISTORY_TXT and not has_error and line.strip():
                    raise self._no_event(line)
                continue
            process, type_name, text = match.groups()
            members = self._members(line, type_name, text, is_client=process != ":nemesis")
            has_error = members.error is not None
            begun = [_KEYWORDS[type_name], self._process(line, process), members.f]
            if members.has_value:
                yield source.line, Row(_WITH_VALUE, [*begun, members.value, members.error])
            else:
                yield source.line, Row(_WITHOUT_VALUE, [*begun, members.error])
            if has_error and self._kind == CONSOLE_LOG and type_name == OpType.FAIL and members.f == _CAS_KEYWORD:
                self.conventions = DROP  # what failed for another reason says nothing about the value

    def _process(self, line: str, text: str) -> EdnValue:
        try:
            return int(text) if text.isdecimal() and text.isascii() and len(text) <= _DIGITS else atom(text)
        except ValueError:
            raise self._no_event(line) from None

    def _members(self, line: str, type_name: str, text: str, *, is_client: bool) -> _Members:
        known = self._known.get((type_name, text))
        if known is not None:
            return known
        try:
            members = _members(text, in_vain=type_name in _IN_VAIN)
        except (InputError, ValueError):
            if is_client:
                raise self._no_event(line) from None
            members = _Members(None, None, None, has_value=True)  # a fault is only counted
        if len(self._known) < _REMEMBERED and len(text) < _REMEMBERED_CHARACTERS:
            self._known[type_name, text] = members
        return members

    def _no_event(self, line: str) -> BadHistory:
        expected = "expected an event: process, :type, :f and value"
        return self._bad(self._source.line, f"{expected}, found {shown(line.rstrip())}")


def _after_prefix(line: str) -> str | None:
    """Returns what follows the time, the thread and the logger of a line of a log; None for a line of another logger."""
    if match := _LOGGER.search(line):
        return line[match.end() :]
    if match := _BETWEEN_TABS.search(line):
        return line[match.start(1) :]
    return None


def _members(text: str, *, in_vain: bool) -> _Members:
    """Returns the function, the value and the error in what follows the type of an event.

    Args:
        text: The text.
        in_vain: Whether the operation did not succeed.

    Raises:
        InputError: A form is not EDN.
        ValueError: There is no function or no value.
    """
    f_text, rest = first_form(text)
    f = loads(f_text)
    if not rest.strip():
        raise ValueError("expected a value")
    try:
        value_text, tail = first_form(rest)
        value = loads(value_text)
    except (InputError, ValueError):
        if not in_vain:
            raise
        return _Members(f, None, rest.strip(), has_value=False)
    error = _error(tail)
    if in_vain and isinstance(value, Keyword | Symbol):
        code = value.name
        return _Members(f, None, f"{code}: {error}" if error else code, has_value=False)
    if error and not in_vain and not tail.startswith("\t"):
        raise ValueError(f"expected nothing after the value, found {error}")
    return _Members(f, value, error or None, has_value=True)


def _error(text: str) -> str:
    """Returns the text of an error, which is one form, as in a map of EDN, or any words."""
    try:
        form, rest = first_form(text)
        return text.strip() if rest.strip() else error_text(loads(form))
    except (InputError, ValueError):
        return text.strip()


def conventions_of_log(source: TextLines) -> Mapping[str, str]:
    """Returns the conventions that an old log itself shows; empty if it shows none.

    Raises:
        InputError: The text is no such log.
    """
    events = LogEvents(source, CONSOLE_LOG, keyed=None)
    for _ in events:
        pass
    return events.conventions
