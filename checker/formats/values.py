"""Converts values of EDN to the JSON values of operations, so that different values stay different.

Keywords and symbols become their names, vectors and lists become lists, maps get text keys, and sets become sorted lists. If
two values of different kinds would become the same text in one history (`:a` and `"a"`, `1/2` and `"1/2"`), the second one gets
a text that no other value of the history has. So two values of a history are equal after the conversion exactly if they were
before. The only exception is a vector and a set with the same members.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from checker.edn.reader import loads
from checker.edn.spellings import usual
from checker.edn.values import EdnMap, EdnSet, Keyword, Symbol, Tagged, canonical
from checker.edn.writer import dumps
from checker.values import json_text
from harness.errors import InputError
from harness.values import MAX_NESTING, hold_name

if TYPE_CHECKING:
    from collections.abc import Hashable

    from checker.edn.values import EdnValue
    from harness.op import Value

_SAME: Final = frozenset({int, bool, type(None)})


class PlainValues:
    """Converts the values of one history."""

    def __init__(self) -> None:
        self._texts: dict[Hashable, str] = {}
        self._taken: set[str] = set()

    def value(self, value: EdnValue, depth: int = 0) -> Value:
        """Returns a value as JSON.

        Args:
            value: The value.
            depth: The number of collections around it.

        Raises:
            ValueError: It is not-a-number (NaN), which equals nothing, so a history with it has no verdict; or it is nested too
                deeply for a history.
        """
        kind = type(value)
        if kind in _SAME:
            return value
        if kind is str or kind is Keyword or kind is Symbol:
            return self.text(value)
        if isinstance(value, tuple):
            _hold_depth(depth)
            return [self.value(member, depth + 1) for member in value]
        if kind is float and math.isfinite(value):
            return value
        if kind is float and math.isnan(value):
            raise ValueError("expected a value that equals itself, found ##NaN")
        return self._rare(value, depth)

    def _rare(self, value: EdnValue, depth: int) -> Value:
        if isinstance(value, EdnSet | EdnMap | Tagged):
            _hold_depth(depth)
        if isinstance(value, EdnSet):
            members = [self.value(member, depth + 1) for member in value]
            return sorted(members) if all(type(member) is int for member in members) else sorted(members, key=_order)
        if isinstance(value, EdnMap):
            return {self.text(key): self.value(member, depth + 1) for key, member in value.items()}
        if isinstance(value, Tagged):
            return {f"#{value.tag}": self.value(usual(value.tag, value.value), depth + 1)}
        return self.text(value)

    def name(self, value: EdnValue) -> str:
        """Returns a text for the key of an object; see `text`.

        Raises:
            ValueError: It has half a character.
        """
        text = self.text(value)
        hold_name(text, "key")
        return text

    def text(self, value: EdnValue) -> str:
        """Returns a text for this value alone: its name or its characters if no other value has them."""
        if isinstance(value, Tagged):
            value = Tagged(value.tag, usual(value.tag, value.value))
        form = canonical(value)
        known = self._texts.get(form)
        if known is not None:
            return known
        text = (
            value.name
            if isinstance(value, Keyword | Symbol)
            else str(value)
            if isinstance(value, str)
            else dumps(value)
        )
        if text in self._taken:
            text = dumps(value)
        while text in self._taken:
            text += "'"
        self._texts[form] = text
        self._taken.add(text)
        return text


def initial_value(text: str) -> Value:
    """Returns the initial state of an object from EDN.

    Raises:
        InputError: It is not EDN.
    """
    try:
        return PlainValues().value(loads(text, name="--initial"))
    except ValueError as error:
        raise InputError(f"--initial: {error}") from error


def _order(value: Value) -> str:
    return json_text(value) or ""


def _hold_depth(depth: int) -> None:
    if depth >= MAX_NESTING:
        raise ValueError(f"expected a value nested at most {MAX_NESTING} deep")
