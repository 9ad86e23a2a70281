"""Members of `test.json` and `results.json`, with checks of their type and range.

The rule: a run's folder may come from anyone. So this module checks each member before anything uses it. A member of another
type or range is an error that names it; nothing is converted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from harness.console.documents import shown
from harness.units import NS_PER_S
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value

Word = TypeVar("Word", bound=StrEnum)

MAX_S: Final = 1e9  # thirty years; more than any run, and its nanoseconds fit into 64 bits
MAX_WHOLE: Final = 2**63 - 1


def member(holder: Mapping[str, Value], name: str) -> Value:
    """Returns a required member."""
    if name not in holder:
        raise BadRecord(f"the member {name} is missing")
    return holder[name]


def text(value: Value, name: str) -> str:
    """Returns a text."""
    if not isinstance(value, str):
        raise _wrong(name, "a text", value)
    return value


def text_or_none(value: Value, name: str) -> str | None:
    """Returns a text, or None."""
    return None if value is None else text(value, name)


def flag(value: Value, name: str) -> bool:
    """Returns a boolean."""
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def whole(value: Value, name: str, *, minimum: int = 0) -> int:
    """Returns a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= MAX_WHOLE:
        raise _wrong(name, f"a whole number from {minimum} to {MAX_WHOLE}", value)
    return value


def seconds(value: Value, name: str) -> float:
    """Returns a number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_S <= value <= MAX_S:
        raise _wrong(name, f"a number of seconds of at most {MAX_S:g}", value)
    return float(value)


def nanoseconds(value: Value, name: str) -> int:
    """Returns the nanoseconds of a number of seconds."""
    return round(seconds(value, name) * NS_PER_S)


def mapping(value: Value, name: str) -> dict[str, Value]:
    """Returns an object."""
    if not isinstance(value, dict):
        raise _wrong(name, "an object", value)
    return value


def listed(value: Value, name: str) -> list[Value]:
    """Returns a list."""
    if not isinstance(value, list):
        raise _wrong(name, "a list", value)
    return value


def texts(value: Value, name: str) -> tuple[str, ...]:
    """Returns a list of texts."""
    return tuple(text(each, f"{name}[{index}]") for index, each in enumerate(listed(value, name)))


def one_of(value: Value, words: type[Word], name: str) -> Word:
    """Returns the member of an enumeration with this text."""
    try:
        return words(text(value, name))
    except ValueError:
        raise _wrong(name, f"one of {', '.join(map(str, words))}", value) from None


def instant(value: Value, name: str) -> datetime:
    """Returns a date with time, in UTC."""
    try:
        return datetime.fromisoformat(text(value, name)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise _wrong(name, "a date and time as 2026-07-29T10:11:12+00:00", value) from None


def _wrong(name: str, expected: str, value: Value) -> BadRecord:
    return BadRecord(f"{name}: expected {expected}, found {shown(value)}")
