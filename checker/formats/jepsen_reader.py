"""Reads the events of a history in EDN of Jepsen and knossos, and of porcupine's key-value logs, which are EDN too.

A history is one vector or list of maps, or a sequence of maps; a map may have a tag, as records do. The order of keys does not
matter. docs/formats.md describes the values of each key. If the first event has an `:index`, all events have one, in ascending
order; otherwise none has, and positions are the indexes. The same holds for `:time`, without the order.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NoReturn

from checker.edn.lines import Row
from checker.edn.reader import Reader
from checker.edn.values import EdnMap, Keyword, Symbol, Tagged
from checker.edn.writer import dumps
from checker.formats.conventions import MEMBER, parsed
from checker.formats.errors import BadHistory
from checker.formats.jsonl import CAS, CAS_OF_THREE, IN_VAIN
from checker.formats.transactional import NOBODY
from checker.formats.values import PlainValues
from harness.errors import InputError
from harness.event_lines import ORDER, is_order
from harness.op import NEMESIS, Op, OpType
from harness.pairing import Event
from harness.values import MAX_NESTING, hold_name, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker.edn.values import EdnValue
    from checker.formats.source import Source
    from harness.op import Process

_TYPE: Final = Keyword("type")
_PROCESS: Final = Keyword("process")
_F: Final = Keyword("f")
_VALUE: Final = Keyword("value")
_KEY: Final = Keyword("key")
KEYS: Final = (
    Keyword("index"),
    Keyword("time"),
    _TYPE,
    _PROCESS,
    _F,
    _VALUE,
    _KEY,
    Keyword("node"),
    Keyword("error"),
    Keyword("scheduled"),
    Keyword("phase"),
    Keyword("via"),
    Keyword("order"),
)
_VALUE_PLACE: Final = KEYS.index(_VALUE)
_AS_THEY_ARE: Final = frozenset({int, type(None)})
_TUPLE_TAGS: Final = frozenset({"jepsen.independent/tuple", "jepsen.independent.Tuple"})
_NEMESES: Final = (Keyword(NEMESIS), NEMESIS)
_TYPE_NAMES: Final = {Keyword(str(op_type)): op_type for op_type in OpType}
_TYPES: Final[dict[Any, OpType]] = {**_TYPE_NAMES, **{str(op_type): op_type for op_type in OpType}}
_MINUS_ONE: Final = -1
_TOO_GREAT: Final = 2**63
_TRANSACTION: Final = "txn"
_OBSERVERS: Final = frozenset({"read", "r", "get", "dequeue"})
_SHOWN_CHARACTERS: Final = 60
_AROUND: Final = 2  # forms around a value: the map of its event, and its pair with the key
_new: Final[Any] = tuple.__new__  # bypasses the constructor of a NamedTuple, which takes as long as all the rest


class JepsenEvents:
    """Yields the events of a history in EDN.

    Attributes:
        timed: Whether the events have times; if not, all are 0. Known after the first event of a client.
        keyed: Whether values are `[key value]` tuples. Known at the end.
        conventions: The conventions in the first event; empty if it has none.
    """

    def __init__(self, source: Source, *, keyed: bool | None, transactional: bool = False) -> None:
        """Prepares to read.

        Args:
            source: The text.
            keyed: Whether values are tuples of a key and a value, as Jepsen's independent generators make them. None: as in the
                conventions of the first event; without these, only if the first invoke of a read or of a transaction has such
                a value.
            transactional: Whether an event may lack its process, its function and an ascending index, and a named process may
                complete what it did not begin; see `checker.formats.transactional`.
        """
        self._transactional = transactional
        self.timed = False
        self.keyed = keyed
        self.conventions: Mapping[str, str] = {}
        self._name = source.name
        self._reader = Reader(
            source,
            name=source.name,
            see_through=True,
            keywords=[*KEYS, *_TYPE_NAMES],
            rows=True,
            max_depth=MAX_NESTING + _AROUND,
        )
        self._plain = PlainValues()
        self._plain_keys = PlainValues()  # separate from values, because keys are never compared with them
        self._names: dict[EdnValue, str] = {}
        self._clients: dict[EdnValue, str] = {}  # clients that have names instead of numbers
        self._keys: tuple[Keyword, ...] | None = None
        self._pick = itemgetter(*range(len(KEYS)))
        self._has_value = True
        self._shapes: dict[tuple[EdnValue, ...], tuple[int, ...]] = {}  # the keys of a map, to their places in `KEYS`
        self._indexed: bool | None = None  # None until the first event of a client
        self._placed = False  # whether the events have both indexes and times
        self._index = -1
        self._moved = 0  # events with an index that is not above the one before
        self._count = 0
        self._begun = False

    def __iter__(self) -> Iterator[Event]:
        """Yields each event.

        Raises:
            EdnError: The text is not EDN.
            BadHistory: A form is not an event.
        """
        waiting: list[tuple[int, Row]] = []  # until it is known whether values are tuples
        for form in self._reader:
            line = self._reader.line
            row = form if type(form) is Row else self._row(line, form)
            if not self._begun:
                self._begin(line, row)
            if self.keyed is not None:
                yield self._event(line, row)
                continue
            waiting.append((line, row))
            self.keyed = self._shows_keys(row)
            if self.keyed is not None:
                yield from self._events(waiting)
                waiting.clear()
        self.keyed = bool(self.keyed)
        yield from self._events(waiting)

    def _row(self, line: int, form: EdnValue) -> Row:
        event = form.value if type(form) is Tagged else form
        if type(event) is not EdnMap:
            raise self._bad(line, f"expected the map of an event, found {_shown(form)}")
        return Row(*event.columns())

    def _begin(self, line: int, row: Row) -> None:
        """Reads the conventions in the first event."""
        self._begun = True
        keys, values = row
        if MEMBER not in keys:
            return
        try:
            self.conventions, keyed = parsed(values[keys.index(MEMBER)])
        except ValueError as error:
            raise self._bad(line, str(error)) from None
        self.keyed = keyed if self.keyed is None else self.keyed

    @property
    def warnings(self) -> Sequence[str]:
        """Returns warnings as sentences; known at the end."""
        if not self._moved:
            return ()
        told = "events have an :index that is not above the one before; they have the next numbers instead"
        return (f"{self._moved} {told}, and the order of the file is what counts",)

    @property
    def may_be_empty(self) -> bool:
        """Returns whether the text is an explicitly empty history, as `[]` is; an empty text is not."""
        return self._reader.saw_through

    def _events(self, rows: list[tuple[int, Row]]) -> Iterator[Event]:
        for line, row in rows:
            yield self._event(line, row)

    def _shows_keys(self, row: Row) -> bool | None:
        """Returns whether the values of the history are tuples; None if this event does not determine it."""
        get = dict(zip(*row, strict=True)).get
        f, value = get(_F), get(_VALUE)
        if get(_PROCESS) in _NEMESES or _TYPES.get(get(_TYPE)) is not OpType.INVOKE:
            return None
        if isinstance(value, Tagged) and value.tag in _TUPLE_TAGS:
            return True
        if get(_KEY) is not None:
            return False
        name = str(getattr(f, "name", f)) if isinstance(f, Keyword | str) else None
        members = value if isinstance(value, tuple) else ()
        if members and (name == _TRANSACTION or self._transactional):
            # Each member of a transaction is a micro-operation; the key of a tuple is none.
            return len(members) == 2 and not isinstance(members[0], tuple) and isinstance(members[1], tuple)
        if name in _OBSERVERS:
            return len(members) == 2 and members[0] is not None and members[1] is None
        return True if name == CAS and len(members) == CAS_OF_THREE else None

    def _learn(self, keys: tuple[Keyword, ...]) -> None:
        """Stores the places of the keys of the next events."""
        places = self._shapes.get(keys)
        if places is None:
            # The place of a missing key is -1, where `_event` puts a nil.
            places = self._shapes[keys] = tuple(keys.index(key) if key in keys else -1 for key in KEYS)
        # Events with conventions are not stored, because only the first event may have them.
        self._keys = None if MEMBER in keys else keys
        self._pick = itemgetter(*places)
        self._has_value = places[_VALUE_PLACE] >= 0

    def _event(self, line: int, row: Row) -> Event:  # noqa: C901, PLR0912 - the inner loop, whose short cuts make it fast
        keys, values = row
        if keys is not self._keys:
            self._learn(keys)
            if self._keys is None and self._count:
                raise self._bad(line, f"expected {MEMBER} in the first event alone, found it in a later one")
        values.append(None)
        index, time, type_name, process, f, value, key, node, error, scheduled, phase, via, order = self._pick(values)
        op_type = _TYPES.get(type_name)
        if op_type is None:
            raise self._bad(line, f"expected a :type :invoke, :ok, :fail or :info, found {_shown(type_name)}")
        self._count += 1
        is_client = type(process) is int and 0 <= process < _TOO_GREAT
        if not is_client:
            process = self._other_process(line, process, op_type)
            is_client = process != NEMESIS
        if not is_client:
            self._hold_other(line, index, time)
            index = time_ns = 0
        elif self._placed and type(index) is type(time) is int and self._index < index < _TOO_GREAT > time >= 0:
            self._index, time_ns = index, time  # the result of `_place` in most cases
        else:
            index, time_ns = self._place(line, index, time)
        name = self._names.get(f) or self._function(line, f, process)
        has_value = self._has_value
        try:
            if not is_client:
                value = key = None
            elif self.keyed:
                pair = _pair(name, value)
                if pair is None and op_type in IN_VAIN:
                    value, has_value = (
                        None,
                        False,
                    )  # the completion of a failed operation may have a reason, and lack the key
                else:
                    key, value = pair or self._no_pair(value)
            if type(value) not in _AS_THEY_ARE:
                value = self._plain.value(value)
            if key is not None:
                key = self._plain_keys.name(key)
            if (
                error is not None
                or scheduled is not None
                or phase is not None
                or type(node) is not str
                or not node.isascii()
            ):
                node, error, scheduled, phase = _extras(node, error, scheduled, phase)
            if via is not None:
                via = name_text(via)
            if order is not None:
                _hold_order(order, is_completion=is_client and op_type is not OpType.INVOKE)
            op = _new(
                Op, (index, time_ns, op_type, process, name, value, key, node, error, scheduled, phase, via, order)
            )
        except (ValueError, InputError) as problem:
            raise self._bad(line, str(problem)) from None
        event: Event = _new(Event, (line, op, has_value, self.keyed))
        return event

    def _place(self, line: int, index: EdnValue, time: EdnValue) -> tuple[int, int]:
        """Returns an event's index and time; missing ones are counted, or 0."""
        position = self._count - 1
        indexed = index is not None and index != _MINUS_ONE
        timed = time is not None and time != _MINUS_ONE
        if self._indexed is None:
            self._indexed, self.timed = indexed, timed
            self._placed = indexed and timed
        if indexed != self._indexed:
            raise self._bad(line, f"expected {_all_or_none(':index', all_have=not indexed)}")
        if timed != self.timed:
            raise self._bad(line, f"expected {_all_or_none(':time', all_have=not timed)}")
        index = self._above(line, index) if indexed else position
        self._index = index
        if not timed:
            time = 0
        elif type(time) is not int or not 0 <= time < _TOO_GREAT:
            raise self._bad(line, f"expected a :time in whole nanoseconds from 0 on, found {_shown(time)}")
        return index, time

    def _above(self, line: int, index: EdnValue) -> int:
        """Returns an index if it is above the one before; a transaction without such an index gets the next one."""
        if type(index) is int and self._index < index < _TOO_GREAT:
            return index
        if not self._transactional or type(index) is not int or not 0 <= index <= self._index:
            raise self._bad(line, f"expected an :index above {self._index}, found {_shown(index)}")
        self._moved += 1
        return self._index + 1

    def _hold_other(self, line: int, index: EdnValue, time: EdnValue) -> None:
        """Checks the index and the time of an event that is not a client's by the rules of all events."""
        if index is not None and index != _MINUS_ONE and self._indexed is not False:
            self._index = self._above(line, index)
        if time is not None and time != _MINUS_ONE and (type(time) is not int or not 0 <= time < _TOO_GREAT):
            raise self._bad(line, f"expected a :time in whole nanoseconds from 0 on, found {_shown(time)}")

    def _other_process(self, line: int, process: EdnValue, op_type: OpType) -> Process:
        """Returns the name of a process without a number; a named process that invokes is a client."""
        if process in _NEMESES:
            return NEMESIS
        if process is None and self._transactional:
            return NOBODY
        if isinstance(process, Keyword | Symbol | str):
            begins = op_type is OpType.INVOKE or (self._transactional and op_type is not OpType.INFO)
            if begins and process not in self._clients:
                self._clients[process] = self._plain.text(process)
            if process in self._clients:
                return self._clients[process]
            if op_type is OpType.INFO:
                return NEMESIS  # not a client; its event is only information
        raise self._bad(
            line,
            f"expected a :process that is a number from 0 on, :nemesis, or a name that has invoked, found {_shown(process)}",
        )

    def _function(self, line: int, f: EdnValue, process: int | str) -> str:
        if f is None and self._transactional:
            return _TRANSACTION
        try:
            return self._names.setdefault(f, function_name(f))
        except ValueError as error:
            if process == NEMESIS:
                return _shown(f)
            raise self._bad(line, str(error)) from None

    @staticmethod
    def _no_pair(value: EdnValue) -> NoReturn:
        raise ValueError(
            f"expected a value [key value], because this history is taken to be keyed, found {_shown(value)}; "
            "--no-keyed takes values as they are"
        )

    def _bad(self, line: int, reason: str) -> BadHistory:
        return BadHistory(self._name, line, reason)


def _pair(f: str, value: EdnValue) -> tuple[EdnValue, EdnValue] | None:
    """Returns the key and the value in a tuple; None for another form. A cas may have both of its values after the key."""
    members = value.value if isinstance(value, Tagged) and value.tag in _TUPLE_TAGS else value
    if not isinstance(members, tuple) or not members or members[0] is None:
        return None
    if f == CAS and len(members) == CAS_OF_THREE:
        return members[0], members[1:]
    return members if len(members) == 2 else None


def conventions_at(source: Source) -> Mapping[str, str]:
    """Returns the conventions in the first event of a history in EDN; empty if it has none.

    Raises:
        InputError: The text does not begin with an event in EDN, or the event is incomplete, or a convention is unknown.
    """
    events = JepsenEvents(source, keyed=None)
    next(iter(events), None)
    return events.conventions


def _extras(
    node: EdnValue, error: EdnValue, scheduled: EdnValue, phase: EdnValue
) -> tuple[str | None, str | None, int | None, str | None]:
    """Returns an event's optional members, in the order of `Op`."""
    return (
        None if node is None else name_text(node),
        None if error is None else error_text(error),
        scheduled if type(scheduled) is int and 0 <= scheduled < _TOO_GREAT else None,
        None if phase is None else name_text(phase),
    )


def _hold_order(order: EdnValue, *, is_completion: bool) -> None:
    if not is_order(order):
        raise ValueError(f"expected {ORDER} in :order, found {_shown(order)}")
    if not is_completion:
        raise ValueError(f"expected :order on completions of clients alone, found {order} on another event")


def _all_or_none(key: str, *, all_have: bool) -> str:
    if all_have:
        return f"an {key} as the events before have; either all events have one or none"
    return f"no {key}, since the events before have none; either all events have one or none"


def function_name(form: EdnValue) -> str:
    """Returns the name of a function.

    Raises:
        ValueError: It is no keyword, symbol or string, or empty.
    """
    if isinstance(form, Keyword | Symbol):
        return form.name
    if isinstance(form, str) and form:
        return name_text(form)
    raise ValueError(f"expected an :f that is a keyword, found {_shown(form)}")


def name_text(value: EdnValue) -> str:
    """Returns the name of a keyword or a symbol, or the text of another value.

    Raises:
        ValueError: It has half a character.
    """
    text = _text(value)
    hold_name(text, "node, function or phase")
    return text


def error_text(value: EdnValue) -> str:
    """Returns an error as `code` or `code: text`: `:timeout`, `[:not-leader "n3"]`."""
    if isinstance(value, tuple) and value:
        code, *rest = map(_text, value)
        return whole(f"{code}: {' '.join(rest)}" if rest else code)
    return whole(_text(value))


def _text(value: EdnValue) -> str:
    if isinstance(value, Keyword | Symbol):
        return value.name
    return str(value) if isinstance(value, str) else dumps(value)


def _shown(value: EdnValue) -> str:
    try:
        text = dumps(value)
    except InputError:
        text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
