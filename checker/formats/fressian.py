"""Reads values in Fressian, a binary notation of Clojure's data, as values of EDN: what Jepsen's test.jepsen consists of.

The rule: any bytes give a value or a `ValueError` with the place, in time and memory proportional to their length. So nesting,
lengths and numbers are bounded. A reader of Fressian stores values that come again, and a few bytes can mean many values that
way; their number is bounded too. Nothing is evaluated: a value with an unknown tag is kept with its tag.

Source: the codes and tags of Fressian's reader and writer (Datomic), the handlers of clojure.data.fressian, and those of
jepsen.store.fressian. Footers, open lists and compressed bytes are missing, because Jepsen does not write them.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from checker.edn.reader import MAX_DEPTH
from checker.edn.tokens import MAX_TOKEN_CHARACTERS
from checker.edn.values import Char, EdnMap, EdnSet, Keyword, Symbol, Tagged, ratio
from checker.formats.foreign import MEMBERS
from harness.values import bounded, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checker.edn.values import EdnValue

TUPLE: Final = "jepsen.independent/tuple"  # the tag of a map's entry, which Jepsen's independent keys are
BLOCK: Final = "block-ref"
_OP: Final = tuple(map(Keyword, MEMBERS[:6]))  # the members of an operation of jepsen.history, before all others
_VALUE: Final = Keyword("value")

_MOST_SHARED: Final = 64  # values that a byte may mean on average, by values that come again
_MOST_NUMBER_BYTES: Final = 1 << 11
_MOST_SCALE: Final = 10_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_PACKED: Final = ((0x40, 0x50, 1), (0x60, 0x68, 2), (0x70, 0x72, 3), (0x74, 0x76, 4), (0x78, 0x7A, 5), (0x7C, 0x7E, 6))
_STORED, _STRUCTS, _ARRAYS = range(0x80, 0xA0), range(0xA0, 0xB0), range(0xB0, 0xB6)
_TAGS: Final = {
    0xC0: "map", 0xC1: "set", 0xC3: "uuid", 0xC4: "regex", 0xC5: "uri", 0xC6: "bigint", 0xC7: "bigdec", 0xC8: "inst",
    0xC9: "sym", 0xCA: "key",
}  # fmt: skip
_COMPONENTS: Final = 1  # of the tags with a code of their own that `_OF_TAGS` does not read: regex, uri
_GET, _PUT = 0xCC, 0xCD
_SHORT_BYTES, _BYTES_PART, _BYTES = range(0xD0, 0xD8), 0xD8, 0xD9
_SHORT_TEXT, _TEXT_PART, _TEXT = range(0xDA, 0xE2), 0xE2, 0xE3
_SHORT_LIST, _LIST, _CLOSED_LIST, _END = range(0xE4, 0xEC), 0xEC, 0xED, 0xFD
_STRUCT_TYPE, _STRUCT, _RESET = 0xEF, 0xF0, 0xFE
_INT, _FLOAT, _DOUBLE = 0xF8, 0xF9, 0xFA
_CONSTANTS: Final = {0xF5: True, 0xF6: False, 0xF7: None, 0xFB: 0.0, 0xFC: 1.0, 0xFF: -1}
_NUMBERS: Final = {_INT: struct.Struct(">q"), _FLOAT: struct.Struct(">f"), _DOUBLE: struct.Struct(">d")}


class _Stored(NamedTuple):
    """A value that may come again.

    Attributes:
        value: The value.
        size: How many values it consists of.
    """

    value: EdnValue
    size: int


class FressianReader:
    """Reads the values of a text of bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        """Begins at the first byte."""
        self._data = data
        self._at = 0
        self._left = _MOST_SHARED * (len(data) + 1)
        self._stored: list[_Stored | None] = []  # None while the value is read
        self._structs: list[tuple[EdnValue, int]] = []

    @property
    def has_more(self) -> bool:
        """Returns whether there are more bytes."""
        return self._at < len(self._data)

    def value(self) -> EdnValue:
        """Returns the next value.

        Raises:
            ValueError: There is none.
        """
        try:
            return self._value(0)
        except ValueError as error:
            raise ValueError(f"{error} (before byte {self._at})") from None

    def _value(self, depth: int) -> EdnValue:  # noqa: C901, PLR0911, PLR0912 - a case for each kind of code
        if depth > MAX_DEPTH:
            raise ValueError(f"expected values nested at most {MAX_DEPTH} deep")
        self._count(1)
        code = self._byte()
        if code < _PACKED[0][0]:
            return code
        if code < _STORED[0]:
            return self._packed(code)
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _STORED:
            return self._again(code - _STORED[0])
        if code in _TAGS:
            return self._tagged(_TAGS[code], _COMPONENTS, depth)
        if code in _STRUCTS or code == _STRUCT:
            return self._struct(code - _STRUCTS[0] if code in _STRUCTS else self._length(), depth)
        if code in _SHORT_TEXT or code in {_TEXT_PART, _TEXT}:
            return self._text(code)
        if code in _SHORT_LIST or code in {_LIST, _CLOSED_LIST}:
            return tuple(map(plain, self._list(code, depth)))
        if code == _PUT:
            return self._put(depth)
        if code == _GET:
            return self._again(self._length())
        if code == _STRUCT_TYPE:
            tag = self._value(depth + 1)
            self._structs.append((tag, self._length()))
            return self._struct(len(self._structs) - 1, depth)
        if code in _NUMBERS:
            return self._number(code)
        if code in _SHORT_BYTES or code in {_BYTES_PART, _BYTES}:
            return Tagged("bytes", self._bytes(code).hex())
        if code in _ARRAYS:
            return tuple(plain(self._value(depth + 1)) for _ in range(self._length()))
        if code == _RESET:
            self._stored.clear()
            self._structs.clear()
            return self._value(depth + 1)
        raise ValueError(f"expected the code of a value in Fressian, found 0x{code:02x}")

    def _count(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise ValueError(f"expected values that come again to mean at most {_MOST_SHARED} values for each byte")

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError(f"expected {size} more bytes, found {len(self._data) - self._at}")
        part = self._data[self._at : end]
        self._at = end
        return part

    def _packed(self, code: int) -> int:
        _, zero, size = next(packed for packed in reversed(_PACKED) if code >= packed[0])
        return ((code - zero) << (8 * size)) | int.from_bytes(self._take(size))

    def _number(self, code: int) -> int | float:
        form = _NUMBERS[code]
        number: int | float = form.unpack(self._take(form.size))[0]
        return number

    def _integer(self) -> int:
        code = self._byte()
        number = self._packed(code) if _PACKED[0][0] <= code < _STORED[0] else _CONSTANTS.get(code)
        if code < _PACKED[0][0]:
            number = code
        elif code == _INT:
            number = self._number(code)
        if type(number) is not int:
            raise ValueError(f"expected an integer, found the code 0x{code:02x}")
        return number

    def _length(self) -> int:
        """Returns the number of things that follow, each of at least a byte, or a place in a list of what was stored."""
        length = self._integer()
        if not 0 <= length <= len(self._data):
            raise ValueError(f"expected a length that fits into {len(self._data)} bytes, found {length}")
        return length

    def _put(self, depth: int) -> EdnValue:
        slot = len(self._stored)
        self._stored.append(None)
        before = self._left
        value = self._value(depth + 1)
        if slot < len(self._stored):
            self._stored[slot] = _Stored(value, before - self._left)
        return value

    def _again(self, slot: int) -> EdnValue:
        stored = self._stored[slot] if slot < len(self._stored) else None
        if stored is None:
            raise ValueError(f"expected a stored value, found none with the number {slot}")
        self._count(stored.size)
        return stored.value

    def _bytes(self, code: int) -> bytes:
        parts = []
        while code == _BYTES_PART:
            parts.append(self._take(self._length()))
            code = self._byte()
        if code != _BYTES and (parts or code not in _SHORT_BYTES):
            raise ValueError(f"expected bytes, found 0x{code:02x}")
        parts.append(self._take(self._length() if code == _BYTES else code - _SHORT_BYTES[0]))
        return b"".join(parts)

    def _text(self, code: int) -> str:
        parts = []
        while code == _TEXT_PART:
            parts.append(self._take(self._length()))
            code = self._byte()
        if code != _TEXT and code not in _SHORT_TEXT:
            raise ValueError(f"expected a text, found 0x{code:02x}")
        parts.append(self._take(self._length() if code == _TEXT else code - _SHORT_TEXT[0]))
        whole = b"".join(parts)
        if len(whole) > 3 * MAX_TOKEN_CHARACTERS:
            raise ValueError(f"expected a text of at most {MAX_TOKEN_CHARACTERS} characters")
        # Each half of a character beyond the basic plane has three bytes of its own.
        return joined(whole.decode("utf-8", "surrogatepass"))

    def _list(self, code: int, depth: int) -> list[EdnValue]:
        if code != _CLOSED_LIST:
            length = self._length() if code == _LIST else code - _SHORT_LIST[0]
            return [self._value(depth + 1) for _ in range(length)]
        members = []
        while self._data[self._at : self._at + 1] != bytes([_END]):
            members.append(self._value(depth + 1))
        self._at += 1
        return members

    def _members(self, depth: int) -> list[EdnValue]:
        """Returns the members of the list that follows; none for nil."""
        self._count(1)
        code = self._byte()
        if code in _CONSTANTS and _CONSTANTS[code] is None:
            return []
        if code not in _SHORT_LIST and code not in {_LIST, _CLOSED_LIST}:
            raise ValueError(f"expected a list, found 0x{code:02x}")
        return self._list(code, depth + 1)

    def _struct(self, slot: int, depth: int) -> EdnValue:
        if slot >= len(self._structs):
            raise ValueError(f"expected a known tag, found none with the number {slot}")
        tag, count = self._structs[slot]
        name = tag.name if isinstance(tag, Symbol | Keyword) else tag
        return self._tagged(name if isinstance(name, str) else "unknown", count, depth)

    def _tagged(self, tag: str, count: int, depth: int) -> EdnValue:
        """Returns the value of a tag, whose components follow."""
        if depth > MAX_DEPTH:
            raise ValueError(f"expected values nested at most {MAX_DEPTH} deep")
        read = _OF_TAGS.get(tag)
        if read is not None:
            return read(self, depth + 1)
        components = tuple(plain(self._value(depth + 1)) for _ in range(count))
        try:
            return Tagged(tag, components[0] if count == 1 else components)
        except ValueError:
            return Tagged("unknown", components)

    def _map(self, depth: int) -> EdnValue:
        members = self._members(depth)
        # Only the value of an operation may be a tuple of a key and a value.
        return EdnMap.of([
            member if index % 2 and members[index - 1] == _VALUE else plain(member)
            for index, member in enumerate(members)
        ])  # fmt: skip

    def _set(self, depth: int) -> EdnValue:
        return EdnSet(map(plain, self._members(depth)))

    def _uuid(self, _: int) -> EdnValue:
        digits = self._bytes(self._byte()).hex()
        if len(digits) != 32:
            raise ValueError(f"expected 16 bytes of a UUID, found {len(digits) // 2}")
        return Tagged("uuid", "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]]))

    def _big(self) -> int:
        data = self._bytes(self._byte())
        if len(data) > _MOST_NUMBER_BYTES:
            raise ValueError(f"expected a number of at most {_MOST_NUMBER_BYTES} bytes, found {len(data)}")
        return bounded(int.from_bytes(data, signed=True))

    def _big_integer(self, _: int) -> EdnValue:
        return self._big()

    def _decimal(self, _: int) -> EdnValue:
        unscaled, scale = self._big(), self._integer()
        if abs(scale) > _MOST_SCALE:
            raise ValueError(f"expected a scale within {_MOST_SCALE}, found {scale}")
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    def _instant(self, _: int) -> EdnValue:
        time_ms = self._integer()
        try:
            time = _EPOCH + timedelta(milliseconds=time_ms)
        except OverflowError:
            raise ValueError(f"expected a time before the year 10000, found {time_ms} ms") from None
        return Tagged("inst", f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}-00:00")

    def _name(self, kind: type[Keyword | Symbol], depth: int) -> EdnValue:
        namespace, name = self._value(depth), self._value(depth)
        if not isinstance(name, str) or not (namespace is None or isinstance(namespace, str)):
            raise ValueError(f"expected the name of a {kind.__name__.lower()}, found {name!r:.60}")
        whole = name if namespace is None else f"{namespace}/{name}"
        try:
            return kind(whole)
        except ValueError:  # Clojure makes names that EDN cannot represent
            return Tagged(kind.__name__.lower(), whole)

    def _keyword(self, depth: int) -> EdnValue:
        return self._name(Keyword, depth)

    def _symbol(self, depth: int) -> EdnValue:
        return self._name(Symbol, depth)

    def _character(self, _: int) -> EdnValue:
        number = self._integer()
        if not 0 <= number < 1 << 16 or 0xD800 <= number < 0xE000:
            raise ValueError(f"expected the number of a character, found {number}")
        return Char(chr(number))

    def _ratio(self, depth: int) -> EdnValue:
        # Its parts are values: clojure.data.fressian writes them as big integers.
        numerator, denominator = self._value(depth), self._value(depth)
        if type(numerator) is not int or type(denominator) is not int:
            raise ValueError(f"expected two integers of a ratio, found {numerator!r:.60} and {denominator!r:.60}")
        return ratio(numerator, denominator)

    def _byte_number(self, _: int) -> EdnValue:
        return self._integer()

    def _pair(self, depth: int) -> EdnValue:
        key, value = self._value(depth), self._value(depth)
        return Tagged(TUPLE, (plain(key), plain(value)))

    def _record(self, depth: int) -> EdnValue:
        name, members = self._value(depth), self._value(depth)
        try:
            return Tagged(name.name if isinstance(name, Symbol) else "record", members)
        except ValueError:
            return Tagged("record", members)

    def _component(self, depth: int) -> EdnValue:
        return self._value(depth)

    def _block(self, _: int) -> EdnValue:
        return Tagged(BLOCK, self._integer())

    def _operation(self, depth: int) -> EdnValue:
        """Returns an operation: the six members that each has, and a map of others."""
        members = [self._value(depth) for _ in _OP]
        others = self._value(depth)
        if not (others is None or isinstance(others, EdnMap)):
            raise ValueError(f"expected a map of the other members of an operation, found {others!r:.60}")
        return EdnMap([*zip(_OP, members, strict=True), *([] if others is None else others.items())])


def plain(value: EdnValue) -> EdnValue:
    """Returns a map's entry as a vector of two, which it equals wherever it is no tuple of an independent key."""
    return value.value if type(value) is Tagged and value.tag == TUPLE else value


_OF_TAGS: Final[Mapping[str, Callable[[FressianReader, int], EdnValue]]] = {
    name: getattr(FressianReader, method)
    for name, method in {
        "map": "_map", "set": "_set", "persistent-hash-set": "_set", "persistent-sorted-set": "_set", "uuid": "_uuid",
        "bigint": "_big_integer", "bigdec": "_decimal", "inst": "_instant", "key": "_keyword", "sym": "_symbol",
        "char": "_character", "ratio": "_ratio", "byte": "_byte_number", "map-entry": "_pair", "record": "_record",
        "atom": "_component", "vec": "_component", BLOCK: "_block", "jepsen.history.Op": "_operation",
    }.items()
}  # fmt: skip
