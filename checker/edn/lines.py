"""A fast path for files with one map on each line, such as histories: it matches whole maps, without tokens.

The rule: the fast path gives exactly the value of the reader, or leaves the line to it. A pattern is made from a map that the
reader has read: its keys in their order, each with a value that is a number, a name, a string without escapes, or a vector of
numbers and names. A line that fits no pattern, or has a malformed value, is left to the reader.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from checker.edn.atoms import atom
from checker.edn.values import Keyword

if TYPE_CHECKING:
    from collections.abc import Callable

    from checker.edn.values import EdnMap, EdnValue

_PATTERNS: Final = 8
_KEYS: Final = range(1, 33)
_REMEMBERED: Final = 1 << 12
_REMEMBERED_CHARACTERS: Final = 40
_DIGITS: Final = 18

_WORD: Final = r"[^\s\x1c-\x1f,\"()\[\]{};\\#^`~@]++"
_VALUE: Final = rf'({_WORD}|"[^"\\]*+"|\[(?:{_WORD}(?: {_WORD})*+)?\])'
_SPACE: Final = r"[\s\x1c-\x1f,]"
_SHORT_NUMBER: Final = 3


class Row(NamedTuple):
    """A map of keywords, as its keys and its values.

    Attributes:
        keys: The keys; the same object for all rows of one pattern.
        values: Their values, in the same order.
    """

    keys: tuple[Keyword, ...]
    values: list[EdnValue]


class _Values(dict[str, "EdnValue"]):
    """The values of texts that are a number, a name, a string without escapes, or a vector; short ones are cached.

    This is a dict with a `__missing__`, because most values cost only a lookup.
    """

    def __missing__(self, text: str) -> EdnValue:
        """Returns the value of a new text.

        Raises:
            ValueError: It is not such a value.
        """
        value: EdnValue
        if text.isdecimal() and text[0] != "0" and len(text) <= _DIGITS and text.isascii():
            value = int(text)
            if len(text) > _SHORT_NUMBER:  # indexes and times all differ, so caching them is useless
                return value
        elif text[0] == "[":
            value = tuple(map(self.__getitem__, text[1:-1].split()))
        else:
            value = atom(text)
        if len(self) < _REMEMBERED and len(text) <= _REMEMBERED_CHARACTERS:
            self[text] = value
        return value


class Lines:
    """Reads lines with one map, after it has learned from some."""

    def __init__(self) -> None:
        """Starts without any pattern."""
        self._patterns: dict[tuple[Keyword, ...], Callable[[str], re.Match[str] | None]] = {}
        self._tried: list[tuple[tuple[Keyword, ...], Callable[[str], re.Match[str] | None]]] = []
        self._values = _Values()

    def learn(self, form: EdnMap) -> None:
        """Learns the pattern of a map that ended its line."""
        keys, _ = form.columns()
        match = self._patterns.get(keys)
        if match is None:
            if (
                len(self._patterns) >= _PATTERNS
                or len(keys) not in _KEYS
                or not all(type(key) is Keyword for key in keys)
            ):
                return
            members = f"{_SPACE}+".join(rf"{re.escape(str(key))}{_SPACE}+{_VALUE}" for key in keys)
            pattern = re.compile(rf"{_SPACE}*\{{{_SPACE}*{members}{_SPACE}*\}}{_SPACE}*", re.ASCII)
            match = self._patterns[keys] = pattern.fullmatch
        # First the most recent pattern, then the one before it: invocations and completions alternate.
        self._tried = [(keys, match), *(tried for tried in self._tried[:1] if tried[0] != keys)]

    def read(self, text: str) -> Row | None:
        """Returns the only map in a text of one or several lines; None if the reader has to read it."""
        for keys, fullmatch in self._tried:
            match = fullmatch(text)
            if match is not None:
                try:
                    return Row(keys, list(map(self._values.__getitem__, match.groups())))
                except ValueError:
                    return None
        return None
