"""Defines when two values of a history are equal.

In Python, 1, 1.0 and true are equal, and lists cannot be keys. In a history, values are equal if they have the same type and
content. Lists and tuples are one type, and so are dicts and maps, sets and frozen sets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from checker.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from harness.op import Value

_PLAIN = frozenset({int, str, type(None)})


def identity(value: Value) -> Hashable:  # noqa: PLR0911 - one return for each type
    """Returns a hashable form that is equal for equal values only.

    Raises:
        ModelError: The value is not-a-number (NaN), which does not equal itself.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]  # int, str and None are hashable
    if kind is tuple or kind is list:
        # States of models are such values, and some of them are long.
        return ("list", *(value if _PLAIN.issuperset(map(type, value)) else map(identity, value)))
    if kind is bool:
        return ("bool", value)
    if kind is float:
        if math.isnan(value):
            raise ModelError("expected values that are the same as themselves, found not-a-number (NaN)")
        return ("float", value)
    if isinstance(value, (str, bytes, int)):
        return (kind.__name__, value)
    if isinstance(value, Sequence):
        return ("list", *map(identity, value))
    if isinstance(value, Mapping):
        return ("map", frozenset((identity(key), identity(inner)) for key, inner in value.items()))
    if isinstance(value, Collection):
        return ("set", frozenset(map(identity, value)))
    return (kind.__name__, value)


def same(one: Value, other: Value) -> bool:
    """Returns whether two values are equal."""
    return identity(one) == identity(other)


def is_collection(value: Value) -> bool:
    """Returns whether a value is a list or a set, of Python or of EDN."""
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))


def plain_name(value: Value) -> str:
    """Returns the text of a name: a string, or a keyword of EDN without its colon."""
    return str(getattr(value, "name", value)).removeprefix(":")


def revived(form: Hashable) -> Value:
    """Returns a value with this identity; lists become tuples, and other collections Python's own types."""
    if not isinstance(form, tuple):
        return form
    kind, *rest = form
    if kind == "list":
        return tuple(map(revived, rest))
    if kind == "map":
        return {revived(key): revived(value) for key, value in rest[0]}
    if kind == "set":
        return frozenset(map(revived, rest[0]))
    return rest[0]
