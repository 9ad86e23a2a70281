"""What a history takes: the values, names and texts that every reader and writer of histories takes.

The answers of systems are foreign. A value that one writer takes and another refuses would cost a run its verdict. So there is
one rule, and the recorder of a run keeps it for each event:

- A value is JSON of exactly the types None, bool, int, float, str, list and dict, as a reader of the file gets it. A tuple
  becomes a list. The two halves of a character become the character. Half a character stays, because JSON and EDN can write it.
- It is nested at most `MAX_NESTING` deep, a number is finite, and an integer has at most as many digits as Python reads.
- A name, such as that of a key or a node, has whole characters only, because a column of Parquet has no others. In the text of
  an error, a replacement character takes the place of half a character.

What breaks the rule becomes an outcome at its operation (`harness.driver`).
"""

from __future__ import annotations

import math
import re
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from harness.errors import InputError

if TYPE_CHECKING:
    from harness.op import Value

MAX_NESTING: Final = 128
MAX_DIGITS: Final = sys.int_info.default_max_str_digits
SHOWN_CHARACTERS: Final = 80

_INTEGERS: Final = frozenset({int})
_TOO_DEEP: Final = f"expected a value nested at most {MAX_NESTING} deep"
_WORDS: Final = MappingProxyType({None: "null", True: "true", False: "false"})
_DEEP: Final = frozenset({float, list, dict})
_HALF: Final = re.compile("[\ud800-\udfff]")
_SMALL: Final = 2**63
_LITTLE_ENDIAN: Final = "utf-16-le"


def exact(value: Value) -> Value:
    """Returns a value as a reader of the history gets it. The result shares no list or dict with the value.

    Raises:
        InputError: A history does not take it.
    """
    if value is None or (type(value) is int and -_SMALL <= value < _SMALL):
        return value  # most values are small integers or null
    try:
        return _exact(value, 0)
    except ValueError as error:
        raise InputError(str(error)) from None


def _exact(value: Value, depth: int) -> Value:
    """Returns the exact value in `depth` lists and dicts; a ValueError has the reason why a history does not take it."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, list | tuple | dict):
        if depth >= MAX_NESTING:
            raise ValueError(_TOO_DEEP)
        return _members(value, depth + 1) if isinstance(value, dict) else _list(value, depth + 1)
    if kind is str:
        return value if value.isascii() else joined(value)
    return bounded(value) if kind is int else _rare(value)


def _list(value: list[Value] | tuple[Value, ...], depth: int) -> list[Value]:
    if value and _INTEGERS.issuperset(map(type, value)) and min(value) >= -_SMALL and max(value) < _SMALL:
        return list(value)  # the elements of a set or a log; 20 times as fast as one by one
    return [_exact(member, depth) for member in value]


def _members(value: dict[Value, Value], depth: int) -> dict[str, Value]:
    """Returns a dict with keys of text."""
    members = {_key(key): _exact(member, depth) for key, member in value.items()}
    if len(members) < len(value):
        raise ValueError("expected keys that differ in JSON, found two that become the same text")
    return members


def _key(key: Value) -> str:
    """Returns the key of a dict as JSON writes it: a number, a truth value and None become their text."""
    if isinstance(key, str):
        return joined(str.__str__(key))
    if key is None or isinstance(key, bool):
        return _WORDS[key]
    if isinstance(key, int | float):
        return repr(_exact(key, 0))
    raise ValueError(f"expected the key of a dict in JSON, found a {type(key).__name__}")


def _rare(value: Value) -> Value:
    """Returns a float, or the value of an object of a class below int, float or str, e.g. a member of an enumeration."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"expected a value that JSON can represent, found {float(value)}")
        return float(value)
    if isinstance(value, int):
        return bounded(int(value))
    if isinstance(value, str):
        return joined(str.__str__(value))
    raise ValueError(f"expected a value that JSON can represent, found a {type(value).__name__}")


def bounded(value: int) -> int:
    """Returns an integer.

    Raises:
        ValueError: It has more digits than Python reads.
    """
    if not -_SMALL <= value < _SMALL and abs(value) >= 10**MAX_DIGITS:
        raise ValueError(f"expected an integer of at most {MAX_DIGITS:,} digits, found a longer one")
    return value


def hold_to_bounds(value: Value, depth: int = 0) -> None:
    """Refuses values that the parser of JSON accepts, and that a history does not take.

    Args:
        value: A value that the parser returned.
        depth: The number of lists and dicts around it.

    Raises:
        ValueError: A number is not finite, or the value is nested too deeply.
    """
    kind = type(value)
    if kind is float and not math.isfinite(value):
        raise ValueError(f"expected a finite number, found {value}")
    if kind is list or kind is dict:
        if depth >= MAX_NESTING:
            raise ValueError(_TOO_DEEP)
        for member in value if kind is list else value.values():
            if type(member) in _DEEP:
                hold_to_bounds(member, depth + 1)


def is_whole(text: str) -> bool:
    """Returns whether a text has whole characters only."""
    return text.isascii() or _HALF.search(text) is None


def joined(text: str) -> str:
    """Returns a text whose halves of characters that stand side by side are characters; a lone half stays."""
    if is_whole(text):
        return text
    return text.encode(_LITTLE_ENDIAN, "surrogatepass").decode(_LITTLE_ENDIAN, "surrogatepass")


def whole(text: str) -> str:
    """Returns a text with a replacement character in place of each half of a character."""
    return text if is_whole(text) else _HALF.sub("\ufffd", joined(text))


def hold_name(text: Value, what: str) -> None:
    """Refuses a name that is no text of whole characters.

    Raises:
        ValueError: It is none.
    """
    if type(text) is not str or not is_whole(text):
        shown = ascii(text)[:SHOWN_CHARACTERS]
        raise ValueError(f"expected a text of whole characters as the name of a {what}, found {shown}")
