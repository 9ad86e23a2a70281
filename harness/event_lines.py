"""One event of a history as one line of JSON, and back.

An event has the keys index, time, type, process, f and value. If they are not null, it also has key, node, error, scheduled,
phase, via and order. Times are nanoseconds since the start of the run. A line is ASCII, is JSON, and has a limited length. The
reader checks all of this, because a history may come from anywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NoReturn

from harness.errors import InputError
from harness.op import NEMESIS, Op, OpType
from harness.values import SHOWN_CHARACTERS, hold_name, is_whole, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.op import Value

FORMAT: Final = "labrys-history"
VERSION: Final = 1
MAX_LINE_BYTES = 1 << 24  # enough for a read of two million elements
TOO_GREAT: Final = 2**63  # times, indexes and processes become columns of 64 bits
_SHOWN_BYTES: Final = 4 * SHOWN_CHARACTERS
_LONGEST_TOKEN: Final = 20  # of JSON, besides strings and long numbers, whose errors are at their ends
_OPEN_STRING: Final = "Unterminated string"
ORDER: Final = "an integer from -2^63 to 2^63 - 1"

_TYPES = {str(op_type): op_type for op_type in OpType}


class LineEncoder:
    """Writes events as lines, and caches quoted names, because a run has few of them."""

    def __init__(self) -> None:
        self._encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
        self._quoted: dict[str, str] = {}

    def value(self, value: Value) -> str:
        """Writes a value.

        Raises:
            InputError: JSON cannot represent it.
        """
        # Most values are small integers or null; this special case halves the cost of a line.
        if value is None:
            return "null"
        try:
            return str(value) if type(value) is int else self._encoder.encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            kind = type(value).__name__
            raise InputError(f"expected a value that JSON can represent, found a {kind}: {error}") from error

    def event(self, op: Op) -> str:
        """Writes an event, without a newline.

        Raises:
            InputError: JSON cannot represent its value, a name has half a character, its order is not an integer of 64 bits, or
                the line would be too long.
        """
        index, time_ns, op_type, process, f, value, key, node, error, scheduled_ns, phase, via, order = op
        quoted = self._quoted
        # Adding the text of an enum is twice as fast as formatting it, and this runs for every event.
        line = (
            f'{{"index":{index},"time":{time_ns},"type":"'
            + op_type
            + f'","process":{self.value(process)},"f":{quoted.get(f) or self._quote(f, "function")},"value":{self.value(value)}'
        )
        if key is not None:
            line += f',"key":{quoted.get(key) or self._quote(key, "key")}'
        if node is not None:
            line += f',"node":{quoted.get(node) or self._quote(node, "node")}'
        if error is not None:
            line += f',"error":{self.value(error)}'
        if scheduled_ns is not None:
            line += f',"scheduled":{scheduled_ns}'
        if phase is not None:
            line += f',"phase":{quoted.get(phase) or self._quote(phase, "phase")}'
        if via is not None:
            line += f',"via":{quoted.get(via) or self._quote(via, "node")}'
        if order is not None:
            if not is_order(order):
                raise InputError(f"expected {ORDER} as the order of {f!r}, found {str(order)[:SHOWN_CHARACTERS]!r}")
            line += f',"order":{order}'
        line += "}"
        if len(line) >= MAX_LINE_BYTES:
            raise InputError(f"an event of {len(line)} bytes is too long for a history (at most {MAX_LINE_BYTES})")
        return line

    def _quote(self, text: str, what: str) -> str:
        try:
            hold_name(text, what)
        except ValueError as error:
            raise InputError(str(error)) from None
        return self._quoted.setdefault(text, self.value(text))


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object; a hook for JSON decoders.

    Raises:
        ValueError: It has a key twice, so readers may take different values of it.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        doubled = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {doubled[:SHOWN_CHARACTERS]!r} is a duplicate")
    return fields


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
EXACT_JSON: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=without_doubles)


def _more_colons(text: str, fields: dict[str, Any]) -> bool:
    """Returns whether there may be more colons than those of the members and those in texts without escapes."""
    in_texts = sum(value.count(":") for value in fields.values() if type(value) is str)
    return "\\" in text or text.count(":") != len(fields) + in_texts


def _exact(text: str, fields: Any) -> Any:
    """Returns the decoded value of a text, or decodes it again, slowly, if a key may be a duplicate.

    Raises:
        ValueError: A key is a duplicate.
    """
    # Each member has a colon. If there are no more colons than members, no key is a duplicate. Else the slow decoder looks.
    if type(fields) is not dict or (text.count(":") != len(fields) and _more_colons(text, fields)):
        return EXACT_JSON.decode(text)
    return fields


def decode_object(line: bytes) -> dict[str, Any]:
    """Reads a line that must be a JSON object.

    Raises:
        ValueError: It is not a JSON object, or has a key twice.
    """
    try:
        text = line.decode()
        fields = _exact(text, _DECODER.decode(text))
    except (ValueError, RecursionError) as error:
        raise _no_object(line, error) from error
    if not isinstance(fields, dict):
        raise _no_object(line)
    return fields


def object_at(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """Reads the JSON object that begins at a place of a text.

    Returns:
        The object and the place of its end; None if the text may end within it.

    Raises:
        ValueError: There is no JSON object, or it has a key twice.
    """
    try:
        fields, end = _DECODER.raw_decode(text, at)
        fields = _exact(text[at:end], fields)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) - _LONGEST_TOKEN or error.msg.startswith(_OPEN_STRING):
            return None
        shift = json.JSONDecodeError(error.msg, text[at : error.pos + 1], error.pos - at)
        raise _no_object(text[at : at + _SHOWN_BYTES].encode(errors="replace"), shift) from None
    except (ValueError, RecursionError) as error:
        raise _no_object(text[at : at + _SHOWN_BYTES].encode(errors="replace"), error) from error
    if not isinstance(fields, dict):
        raise _no_object(text[at:end].encode(errors="replace"))
    return fields, end


def _no_object(line: bytes, error: Exception | None = None) -> ValueError:
    why = f"{error.msg.lower()} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
    return ValueError(f"expected a JSON object, found {shown(line)}" + ("" if error is None else f": {why}"))


def decode_event(fields: Mapping[str, Any], index: int) -> Op:
    """Makes an event of a line's object.

    Args:
        fields: The object.
        index: The index that the event must have.

    Raises:
        ValueError: A member is missing, unknown or of a wrong type; the message names it.
    """
    if not _is_plain(fields, index):
        _check(fields, index)
    get = fields.get
    error = get("error")
    return Op(
        index,
        fields["time"],
        _TYPES[fields["type"]],
        fields["process"],
        fields["f"],
        fields["value"],
        get("key"),
        get("node"),
        None if error is None else whole(error),
        get("scheduled"),
        get("phase"),
        get("via"),
        get("order"),
    )


class EventLines:
    """Decodes the lines of a history, one after the other: the header, then events.

    Attributes:
        header: The header; empty before the first line.
        torn: Whether the last line was without an end, and was left out.
        count: The number of events.
    """

    def __init__(self) -> None:
        self.header: Mapping[str, Any] = {}
        self.torn = False
        self.count = 0

    def decode(self, line: bytes) -> Op | None:
        """Returns the event of a line; None for the header and a torn end.

        Raises:
            ValueError: The line is malformed, or longer than `MAX_LINE_BYTES`.
        """
        fields = self.fields(line)
        if fields is None:
            return None
        if not self.header:
            self.header = header_of(fields, "the header of a history, ")
            return None
        return self.event(fields)

    def fields(self, line: bytes, *, begun: bool = False) -> dict[str, Any] | None:
        """Returns the object of a line; None for a torn end, which only follows a header or other events (`begun`).

        Raises:
            ValueError: The line is no object, or too long.
        """
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"expected a line of at most {MAX_LINE_BYTES} bytes")
        try:
            return decode_object(line)
        except ValueError:
            if not (self.header or begun) or line.endswith(b"\n"):
                raise
            self.torn = True
            return None

    def event(self, fields: Mapping[str, Any]) -> Op:
        """Returns the next event.

        Raises:
            ValueError: See `decode_event`.
        """
        op = decode_event(fields, self.count)
        self.count += 1
        return op


def header_of(fields: Mapping[str, Any], expected: str, otherwise: str = "") -> Mapping[str, Any]:
    """Returns the object of a first line, if it is a header.

    Args:
        fields: The object.
        expected: What was expected, for the error.
        otherwise: What else may be there, for the error.

    Raises:
        ValueError: It is none, or has another version.
    """
    if fields.get("format") != FORMAT:
        raise ValueError(f'expected {expected}{{"format": "{FORMAT}", "version": {VERSION}, ...}}{otherwise}')
    if fields.get("version") != VERSION:
        raise ValueError(f"expected version {VERSION} of the format, found {fields.get('version')!r}")
    return fields


def _is_plain(fields: Mapping[str, Any], index: int) -> bool:
    """Returns True only if an event is well-formed. This test is fast, and `_check` is exact."""
    get = fields.get
    position, time_ns, op_type, process = get("index"), get("time"), get("type"), get("process")
    return (
        type(position) is type(time_ns) is type(process) is int
        and position == index
        and 0 <= time_ns < TOO_GREAT
        and 0 <= process < TOO_GREAT
        and type(op_type) is type(f := get("f")) is type(key := get("key", "")) is type(node := get("node", "")) is str
        and f.isascii()
        and key.isascii()
        and node.isascii()
        and op_type in _TYPES
        and fields.keys() <= _PLAIN
        and "value" in fields
    )


def _check(fields: Mapping[str, Any], index: int) -> None:
    if fields.keys() - _EXPECTED.keys():
        raise ValueError(f"unknown key {min(fields.keys() - _EXPECTED.keys())!r}")
    for name, (expected, fits) in _EXPECTED.items():
        if name not in fields:
            if name in REQUIRED:
                raise ValueError(f"expected the key {name!r}")
        elif not fits(fields[name]):
            bounds = "; numbers go from 0 to 2^63 - 1" if type(fields[name]) is int and name != "order" else ""
            raise ValueError(f"expected {expected} in {name!r}, found {str(fields[name])[:SHOWN_CHARACTERS]!r}{bounds}")
    if fields["index"] != index:
        raise ValueError(f"expected index {index}, found {fields['index']}")
    if fields.get("order") is not None and (fields["type"] == OpType.INVOKE or fields["process"] == NEMESIS):
        raise ValueError(f"expected 'order' on completions of clients alone, found {fields['order']} on another event")
    if fields["process"] == NEMESIS and fields["type"] != OpType.INFO:
        raise ValueError(f"expected type 'info' for the nemesis, found {fields['type']!r}")


def shown(line: bytes) -> str:
    """Returns the beginning of a line, for a message."""
    text = line.decode(errors="replace").rstrip("\n")
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "...")


def is_order(value: Any) -> bool:
    """Returns whether a value can be the `order` of an operation."""
    return type(value) is int and -TOO_GREAT <= value < TOO_GREAT


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < TOO_GREAT


def _is_type(value: Any) -> bool:
    return type(value) is str and value in _TYPES


def _is_process(value: Any) -> bool:
    return value == NEMESIS or _is_count(value)


def _is_name(value: Any) -> bool:
    return type(value) is str and is_whole(value)


def _is_name_or_null(value: Any) -> bool:
    return value is None or _is_name(value)


def _is_text_or_null(value: Any) -> bool:
    return value is None or type(value) is str


def _is_time_or_null(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_order_or_null(value: Any) -> bool:
    return value is None or is_order(value)


def _is_anything(value: Any) -> bool:  # noqa: ARG001 - a value may be any JSON
    return True


_EXPECTED: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "index": ("a position", _is_count),
    "time": ("nanoseconds since the run's start", _is_count),
    "type": (f"one of {', '.join(_TYPES)}", _is_type),
    "process": (f"a number or {NEMESIS!r}", _is_process),
    "f": ("the name of a function in whole characters", _is_name),
    "value": ("a value", _is_anything),
    "key": ("a string of whole characters or null", _is_name_or_null),
    "node": ("a string of whole characters or null", _is_name_or_null),
    "error": ("a string or null", _is_text_or_null),
    "scheduled": ("nanoseconds since the run's start or null", _is_time_or_null),
    "phase": ("a string of whole characters or null", _is_name_or_null),
    "via": ("a string of whole characters or null", _is_name_or_null),
    "order": (f"{ORDER} or null", _is_order_or_null),
}
REQUIRED = frozenset({"index", "time", "type", "process", "f", "value"})
_PLAIN = REQUIRED | {"key", "node"}
