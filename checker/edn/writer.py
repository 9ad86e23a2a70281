"""Writes EDN: `reader` reads back equal values of the same types.

Besides EDN's own values, a Python list becomes a vector, a dict a map, and a set a set sorted by the text of its members. So
equal values have equal text. Any other object is an error; nothing is written by its `repr`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from checker.edn.atoms import CHARACTER_NAMES
from checker.edn.reader import MAX_DEPTH
from checker.edn.values import Char, EdnList, EdnMap, EdnSet, Keyword, Ratio, Symbol, Tagged
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from checker.edn.values import EdnValue

_LONG: Final = range(-(2**63), 2**63)
# Besides EDN's own escapes, those of `harness.console.plain`, because the text goes to terminals.
_ESCAPED: Final = re.compile(
    r"[\"\\\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]"
)
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f", "\b": "\\b"}
_NAMED: Final = {character: name for name, character in CHARACTER_NAMES.items()}


def dumps(value: EdnValue) -> str:
    """Returns the value's text, on one line.

    Raises:
        InputError: EDN cannot represent it, or it is nested too deeply to be read back.
    """
    return _text(value, 0)


def keywordized(value: EdnValue, *, depth: int = 0) -> EdnValue:
    """Returns JSON values in the style of Clojure: the keys of dicts become keywords if they can.

    Args:
        value: The value.
        depth: Its depth in the whole value.

    Raises:
        InputError: It is nested too deeply to be read back.
    """
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, dict):
        return EdnMap((_keyword(key), keywordized(member, depth=depth + 1)) for key, member in value.items())
    if isinstance(value, list):
        return tuple(keywordized(member, depth=depth + 1) for member in value)
    return value


def _too_deep() -> InputError:
    return InputError(f"expected a value nested at most {MAX_DEPTH} deep")


def _keyword(key: EdnValue) -> EdnValue:
    try:
        return Keyword(key) if type(key) is str else key
    except ValueError:
        return key


def _text(value: EdnValue, depth: int) -> str:
    write = _ATOMS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, str):
        return _string(value)
    if depth >= MAX_DEPTH:
        raise _too_deep()
    return _collection(value, depth + 1)


def _collection(value: EdnValue, depth: int) -> str:
    if isinstance(value, Tagged):
        return f"#{value.tag} {_text(value.value, depth)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key, depth)} {_text(member, depth)}" for key, member in value.items()) + "}"
    if isinstance(value, EdnList):
        return f"({_joined(value, depth)})"
    if isinstance(value, tuple | list):
        return f"[{_joined(value, depth)}]"
    if isinstance(value, EdnSet):
        return f"#{{{_joined(value, depth)}}}"
    if isinstance(value, set | frozenset):
        return "#{" + " ".join(sorted(_text(member, depth) for member in value)) + "}"
    raise InputError(f"expected a value that EDN can represent, found a {type(value).__name__}")


def _joined(members: Iterable[EdnValue], depth: int) -> str:
    return " ".join(_text(member, depth) for member in members)


def _constant(value: bool | None) -> str:  # noqa: FBT001 - it is the value
    return "nil" if value is None else str(value).lower()


def _integer(value: int) -> str:
    try:
        return str(value) if value in _LONG else f"{value}N"
    except ValueError as error:
        raise InputError(f"expected an integer that can be read back: {error}") from error


def _number(value: float | Decimal | Ratio) -> str:
    if isinstance(value, Ratio):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InputError(f"expected a decimal that EDN can represent, found {value}")
        return f"{value}M"
    if math.isnan(value):
        return "##NaN"
    if math.isinf(value):
        return "##Inf" if value > 0 else "##-Inf"
    return repr(value)


def _string(value: str) -> str:
    escaped = _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", value)
    return f'"{escaped}"'


def _character(value: Char) -> str:
    if value in _NAMED:
        return f"\\{_NAMED[str(value)]}"
    return f"\\{_unicode(str(value))}" if value.isprintable() and not value.isspace() else _code_unit(value)


def _code_unit(value: str) -> str:
    if ord(value) > 0xFFFF:
        raise InputError(f"expected a character that EDN can represent, found {value!r}")
    return f"\\u{ord(_unicode(value)):04x}"


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"expected Unicode text, found half of a character in {text[:40]!r}") from None
    return text


_ATOMS: Final[Mapping[type, Callable[[Any], str]]] = {
    type(None): _constant,
    bool: _constant,
    int: _integer,
    float: _number,
    Decimal: _number,
    Ratio: _number,
    str: _string,
    Char: _character,
    Keyword: str,
    Symbol: str,
}
