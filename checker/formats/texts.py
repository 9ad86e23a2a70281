"""Texts of what a history says about its events: names, errors, and values in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from checker.edn.values import Keyword, Symbol
from checker.edn.writer import dumps
from harness.errors import InputError
from harness.values import hold_name, whole

if TYPE_CHECKING:
    from checker.edn.values import EdnValue

_SHOWN_CHARACTERS: Final = 60


def function_name(form: EdnValue) -> str:
    """Returns the name of a function.

    Raises:
        ValueError: It is no keyword, symbol or string, or empty.
    """
    if isinstance(form, Keyword | Symbol):
        return form.name
    if isinstance(form, str) and form:
        return name_text(form)
    raise ValueError(f"expected a name, found {shown(form)}")


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


def shown(value: EdnValue) -> str:
    """Returns the beginning of the text of a value, for a message."""
    try:
        text = dumps(value)
    except InputError:
        text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
