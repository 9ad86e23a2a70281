"""The value of a single token of EDN.

Numbers are read as in Clojure: `0x1f`, `017` and `36rZZ` are integers, because many histories contain `#object[Foo 0x1f
"..."]`. Strings must be Unicode text: the two halves of a character outside the basic plane are joined, and a single half is an
error.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from checker.edn.values import Char, Keyword, Symbol, ratio
from harness.values import MAX_DIGITS, bounded, is_whole, joined

if TYPE_CHECKING:
    from checker.edn.values import EdnValue

_LONG_CHARACTERS: Final = 1000  # a shorter number has few digits in any base
MAX_NUMBER_CHARACTERS: Final = MAX_DIGITS + 2  # with a sign and an `N`

_CONSTANTS: Final = {
    "nil": None,
    "true": True,
    "false": False,
    "##Inf": math.inf,
    "##-Inf": -math.inf,
    "##NaN": math.nan,
}
_NUMERIC: Final = re.compile(r"[-+.]?[0-9]")
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<decimal>0|[1-9][0-9]*)|0[xX](?P<hex>[0-9A-Fa-f]+)|0(?P<octal>[0-7]+)"
    r"|(?P<base>[1-9][0-9]?)[rR](?P<digits>[0-9A-Za-z]+))N?"
)
_FLOAT: Final = re.compile(r"([-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)(M?)")
_RATIO: Final = re.compile(r"([-+]?[0-9]+)/([0-9]+)")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([0-3]?[0-7]{1,2})|([tbnrf\"\\]))|\\(.?)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}
_CHARACTER: Final = re.compile(r"u([0-9A-Fa-f]{4})|o([0-3]?[0-7]{1,2})")
CHARACTER_NAMES: Final = {
    "newline": "\n",
    "return": "\r",
    "space": " ",
    "tab": "\t",
    "formfeed": "\f",
    "backspace": "\b",
}


def atom(token: str) -> EdnValue:
    """Returns the value of a token that is not a bracket, a tag or a comment.

    Raises:
        ValueError: The token has no value; the message has what was expected.
    """
    if token in _CONSTANTS:
        return _CONSTANTS[token]
    first = token[0]
    if first == ":":
        return Keyword(token[1:])
    if first == '"':
        return _string(token)
    if first == "\\":
        return _character(token)
    if _NUMERIC.match(token):
        return _number(token)
    if first in "#^`~@'":
        raise ValueError(f"{token[:40]!r} is not EDN")
    return Symbol(token)


def _number(token: str) -> EdnValue:
    if len(token) > MAX_NUMBER_CHARACTERS:
        raise ValueError(f"expected a number of at most {MAX_NUMBER_CHARACTERS} characters, found {len(token)}")
    if match := _INTEGER.fullmatch(token):
        digits, base = match["decimal"], 10
        if digits is None:
            digits, base = match["hex"], 16
        if digits is None:
            digits, base = match["octal"], 8
        if digits is None:
            digits, base = match["digits"], int(match["base"])
        try:
            number = int(match["sign"] + digits, base)
        except ValueError:
            raise ValueError(f"{token[:40]!r} is no integer of base {base}") from None
        return number if len(token) < _LONG_CHARACTERS else bounded(number)
    if match := _FLOAT.fullmatch(token):
        return _decimal(match[1]) if match[2] else float(match[1])
    if match := _RATIO.fullmatch(token):
        return ratio(int(match[1]), int(match[2]))
    raise ValueError(f"{token!r} is no number")


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise ValueError(f"the exponent of {text}M is too great")
    return number


def _string(token: str) -> str:
    text = token[1:-1]
    if "\\" not in text:
        return text
    return joined(_ESCAPE.sub(_unescape, text))  # half a character stays, as in Java


def _unescape(match: re.Match[str]) -> str:
    unicode, octal, letter, other = match.groups()
    if other is not None:
        raise ValueError(f"'\\{other}' is no escape in a string")
    return _ESCAPED[letter] if letter is not None else _code_point(unicode, octal)


def _code_point(unicode: str | None, octal: str | None) -> str:
    return chr(int(unicode, 16) if unicode is not None else int(octal or "", 8))


def _character(token: str) -> Char:
    name = token[1:]
    if name in CHARACTER_NAMES:
        return Char(CHARACTER_NAMES[name])
    if len(name) == 1 and not name.isspace():
        return Char(name)
    if match := _CHARACTER.fullmatch(name):
        character = _code_point(*match.groups())
        if not is_whole(character):
            raise ValueError(f"expected a whole character, found half of a surrogate pair, {token!r}")
        return Char(character)
    raise ValueError(f"{token!r} is no character")
