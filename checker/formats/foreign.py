"""Makes events of what other tools write, whatever the format: the rules of Jepsen's and knossos' events.

The rule: what one format accepts, all of them accept. So a reader of a format only finds the members of each event, and this
module alone decides what they mean and what may be missing. docs/reference/formats.md describes the values of each member. If
the first event has an index, all events have one, in ascending order; otherwise none has, and positions are the indexes. The
same holds for times, without the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from checker.edn.values import Keyword, Symbol, Tagged
from checker.formats.conventions import parsed
from checker.formats.errors import BadHistory
from checker.formats.missing import FUNCTION, OF_EVENTS, PROCESS, May
from checker.formats.texts import error_text, function_name, name_text, shown
from checker.formats.transactional import NOBODY, TRANSACTION
from checker.formats.values import PlainValues
from harness.errors import InputError
from harness.event_lines import ORDER, is_order
from harness.op import NEMESIS, Op, OpType
from harness.pairing import Event

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from checker.edn.lines import Row
    from checker.edn.values import EdnValue
    from harness.op import Process

# The members of an event, in the order in which `_event` takes them.
MEMBERS: Final = (
    "index", "time", "type", "process", "f", "value", "key", "node", "error", "scheduled", "phase", "via", "order",
)  # fmt: skip
_TYPE, _PROCESS, _F, _VALUE, _KEY = range(2, 7)  # places in `MEMBERS`
IN_VAIN: Final = frozenset({OpType.FAIL, OpType.INFO})
CAS: Final = "cas"
CAS_OF_THREE: Final = 3  # a key, the expected and the new value
_AS_THEY_ARE: Final = frozenset({int, type(None)})
_TUPLE_TAGS: Final = frozenset({"jepsen.independent/tuple", "jepsen.independent.Tuple"})
_NEMESES: Final = (Keyword(NEMESIS), NEMESIS)
TYPE_KEYWORDS: Final = {Keyword(str(op_type)): op_type for op_type in OpType}
_TYPES: Final[dict[Any, OpType]] = {**TYPE_KEYWORDS, **{str(op_type): op_type for op_type in OpType}}
_MINUS_ONE: Final = -1
_TOO_GREAT: Final = 2**63
_OBSERVERS: Final = frozenset({"read", "r", "get", "dequeue"})
_new: Final[Any] = tuple.__new__  # bypasses the constructor of a NamedTuple, which takes as long as all the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """How a format spells its events.

    Attributes:
        members: The names of the members in the order of `MEMBERS`; None for one that the format does not have, or that does
            not count.
        conventions: The member of the first event that has the conventions; None if there is none.
        said: A member in errors, with `{}` for its name.
        name: What a name is, in errors.
        values: Makes the converter of the values of one history.
    """

    members: tuple[Hashable, ...]
    conventions: Hashable = None
    said: str = ":{}"
    name: str = "keyword"
    values: type[PlainValues] = PlainValues


class ForeignEvents:
    """Yields the events of a history of another tool; the base of the readers of formats.

    Attributes:
        MAY_LACK: What an event may lack; see `checker.formats.missing`.
        SYNTAX: How the format spells its events.
        may_be_empty: Whether the text is an explicitly empty history, as `[]` is; an empty text is not. Known at the end.
        timed: Whether the events have times; if not, all are 0. Known after the first event of a client.
        keyed: Whether values are `[key value]` tuples. Known at the end.
        conventions: The conventions in the first event; empty if it has none.
    """

    MAY_LACK: ClassVar[Mapping[str, May]] = OF_EVENTS
    SYNTAX: ClassVar[Syntax]
    may_be_empty: bool = False

    def __init__(self, name: str, *, keyed: bool | None, transactional: bool = False) -> None:
        """Prepares to read.

        Args:
            name: The name of the file in errors.
            keyed: Whether values are tuples of a key and a value, as Jepsen's independent generators make them. None: as in the
                conventions of the first event; without these, only if the first invoke of a read or of a transaction has such
                a value.
            transactional: Whether an event may lack its process, its function and an ascending index, and a named process may
                complete what it did not begin; see `checker.formats.transactional`.
        """
        lacking = {May.YES, May.OF_TRANSACTIONS} if transactional else {May.YES}
        self._may_lack = frozenset(thing for thing, may in self.MAY_LACK.items() if may in lacking)
        self._transactional = transactional
        self.timed = False
        self.keyed = keyed
        self.conventions: Mapping[str, str] = {}
        self._name = name
        self._said = self.SYNTAX.said.format
        self._plain = self.SYNTAX.values()
        self._plain_keys = self.SYNTAX.values()  # separate from values, because keys are never compared with them
        self._names: dict[EdnValue, str] = {}
        self._clients: dict[EdnValue, str] = {}  # clients that have names instead of numbers
        self._keys: tuple[Hashable, ...] | None = None
        self._pick = itemgetter(*range(len(MEMBERS)))
        self._has_value = True
        # The keys of a map, to their places in `MEMBERS`.
        self._shapes: dict[tuple[Hashable, ...], tuple[int, ...]] = {}
        self._indexed: bool | None = None  # None until the first event of a client
        self._placed = False  # whether the events have both indexes and times
        self._index = -1
        self._moved = 0  # events with an index that is not above the one before
        self._count = 0
        self._begun = False

    def _rows(self) -> Iterator[tuple[int, Row]]:
        """Yields the line and the members of each event. Only values may have lists; other members are values of EDN.

        Raises:
            InputError: The text has another format.
        """
        raise NotImplementedError

    def __iter__(self) -> Iterator[Event]:
        """Yields each event.

        Raises:
            EdnError: The text is not EDN.
            BadHistory: A form is not an event.
        """
        waiting: list[tuple[int, Row]] = []  # until it is known whether values are tuples
        for line, row in self._rows():
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

    def _begin(self, line: int, row: Row) -> None:
        """Reads the conventions in the first event."""
        self._begun = True
        keys, values = row
        member = self.SYNTAX.conventions
        if member is None or member not in keys:
            return
        try:
            self.conventions, keyed = parsed(values[keys.index(member)])
        except ValueError as error:
            raise self._bad(line, str(error)) from None
        self.keyed = keyed if self.keyed is None else self.keyed

    @property
    def warnings(self) -> Sequence[str]:
        """Returns warnings as sentences; known at the end."""
        if not self._moved:
            return ()
        told = (
            f"events have an {self._said('index')} that is not above the one before; they have the next numbers instead"
        )
        return (f"{self._moved} {told}, and the order of the file is what counts",)

    def _events(self, rows: list[tuple[int, Row]]) -> Iterator[Event]:
        for line, row in rows:
            yield self._event(line, row)

    def _shows_keys(self, row: Row) -> bool | None:
        """Returns whether the values of the history are tuples; None if this event does not determine it."""
        members: dict[Any, EdnValue] = dict(zip(*row, strict=True))
        names = self.SYNTAX.members
        f, value = members.get(names[_F]), members.get(names[_VALUE])
        if members.get(names[_PROCESS]) in _NEMESES or _TYPES.get(members.get(names[_TYPE])) is not OpType.INVOKE:
            return None
        if isinstance(value, Tagged) and value.tag in _TUPLE_TAGS:
            return True
        if members.get(names[_KEY]) is not None:
            return False
        name = str(getattr(f, "name", f)) if isinstance(f, Keyword | str) else None
        parts = value if isinstance(value, tuple | list) else ()
        if parts and (name == TRANSACTION or self._transactional):
            # Each member of a transaction is a micro-operation; the key of a tuple is none.
            return len(parts) == 2 and not isinstance(parts[0], tuple | list) and isinstance(parts[1], tuple | list)
        if name in _OBSERVERS:
            return len(parts) == 2 and parts[0] is not None and parts[1] is None
        return True if name == CAS and len(parts) == CAS_OF_THREE else None

    def _learn(self, keys: tuple[Hashable, ...]) -> None:
        """Stores the places of the keys of the next events."""
        places = self._shapes.get(keys)
        if places is None:
            # The place of a missing key is -1, where `_event` puts a nil.
            places = self._shapes[keys] = tuple(
                keys.index(name) if name is not None and name in keys else -1 for name in self.SYNTAX.members
            )
        # Events with conventions are not stored, because only the first event may have them.
        self._keys = None if self.SYNTAX.conventions in keys else keys
        self._pick = itemgetter(*places)
        self._has_value = places[_VALUE] >= 0

    def _event(self, line: int, row: Row) -> Event:  # noqa: C901, PLR0912 - the inner loop, whose short cuts make it fast
        keys, values = row
        if keys is not self._keys:
            self._learn(keys)
            if self._keys is None and self._count:
                raise self._bad(
                    line, f"expected {self.SYNTAX.conventions} in the first event alone, found it in a later one"
                )
        values.append(None)
        index, time, type_name, process, f, value, key, node, error, scheduled, phase, via, order = self._pick(values)
        op_type = _TYPES.get(type_name)
        if op_type is None:
            raise self._bad(line, self._no_type(type_name))
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
        has_value, is_lifted = self._has_value, False
        try:
            if not is_client:
                value = key = None
            elif self.keyed and key is None:
                is_lifted = True
                pair = _pair(name, value)
                if pair is None and op_type in IN_VAIN:
                    # The completion of a failed operation may have a reason, and lack the key.
                    value, has_value = None, False
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
                self._hold_order(order, is_completion=is_client and op_type is not OpType.INVOKE)
            op = _new(
                Op, (index, time_ns, op_type, process, name, value, key, node, error, scheduled, phase, via, order)
            )
        except (ValueError, InputError) as problem:
            raise self._bad(line, str(problem)) from None
        event: Event = _new(Event, (line, op, has_value, is_lifted))
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
            raise self._bad(line, f"expected {_all_or_none(self._said('index'), all_have=not indexed)}")
        if timed != self.timed:
            raise self._bad(line, f"expected {_all_or_none(self._said('time'), all_have=not timed)}")
        index = self._above(line, index) if indexed else position
        self._index = index
        if not timed:
            time = 0
        elif type(time) is not int or not 0 <= time < _TOO_GREAT:
            raise self._no_time(line, time)
        return index, time

    def _above(self, line: int, index: EdnValue) -> int:
        """Returns an index if it is above the one before; a transaction without such an index gets the next one."""
        if type(index) is int and self._index < index < _TOO_GREAT:
            return index
        if not self._transactional or type(index) is not int or not 0 <= index <= self._index:
            raise self._bad(line, f"expected an {self._said('index')} above {self._index}, found {shown(index)}")
        self._moved += 1
        return self._index + 1

    def _hold_other(self, line: int, index: EdnValue, time: EdnValue) -> None:
        """Checks the index and the time of an event that is not a client's by the rules of all events."""
        if index is not None and index != _MINUS_ONE and self._indexed is not False:
            self._index = self._above(line, index)
        if time is not None and time != _MINUS_ONE and (type(time) is not int or not 0 <= time < _TOO_GREAT):
            raise self._no_time(line, time)

    def _no_type(self, value: EdnValue) -> str:
        *others, last = map(self._said, OpType)
        return f"expected a {self._said('type')} {', '.join(others)} or {last}, found {shown(value)}"

    def _no_time(self, line: int, time: EdnValue) -> BadHistory:
        said = self._said("time")
        return self._bad(line, f"expected a {said} in whole nanoseconds from 0 on, found {shown(time)}")

    def _other_process(self, line: int, process: EdnValue, op_type: OpType) -> Process:
        """Returns the name of a process without a number; a named process that invokes is a client."""
        if process in _NEMESES:
            return NEMESIS
        if process is None and PROCESS in self._may_lack:
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
            f"expected a {self._said('process')} that is a number from 0 on, {self._said(NEMESIS)}, or a name that has "
            f"invoked, found {shown(process)}",
        )

    def _function(self, line: int, f: EdnValue, process: int | str) -> str:
        if f is None and FUNCTION in self._may_lack:
            return TRANSACTION
        try:
            return self._names.setdefault(f, function_name(f))
        except ValueError:
            if process == NEMESIS:
                return shown(f)
            expected = f"an {self._said('f')} that is a {self.SYNTAX.name}"
            raise self._bad(line, f"expected {expected}, found {shown(f)}") from None

    @staticmethod
    def _no_pair(value: EdnValue) -> NoReturn:
        raise ValueError(
            f"expected a value [key value], because this history is taken to be keyed, found {shown(value)}; "
            "--no-keyed takes values as they are"
        )

    def _hold_order(self, order: EdnValue, *, is_completion: bool) -> None:
        said = self._said("order")
        if not is_order(order):
            raise ValueError(f"expected {ORDER} in {said}, found {shown(order)}")
        if not is_completion:
            raise ValueError(f"expected {said} on completions of clients alone, found {order} on another event")

    def _bad(self, line: int | None, reason: str) -> BadHistory:
        return BadHistory(self._name, line, reason)


def _pair(f: str, value: EdnValue) -> tuple[EdnValue, EdnValue] | None:
    """Returns the key and the value in a tuple; None for another form. A cas may have both of its values after the key."""
    members = value.value if isinstance(value, Tagged) and value.tag in _TUPLE_TAGS else value
    if not isinstance(members, tuple | list) or not members or members[0] is None:
        return None
    if f == CAS and len(members) == CAS_OF_THREE:
        return members[0], members[1:]
    return (members[0], members[1]) if len(members) == 2 else None


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


def _all_or_none(key: str, *, all_have: bool) -> str:
    if all_have:
        return f"an {key} as the events before have; either all events have one or none"
    return f"no {key}, since the events before have none; either all events have one or none"
