"""The form in which clients store values in systems that hold texts or bytes: JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import UNSUPPORTED, NoAnswer, NotDone
from harness.op import ONLY_KEY

if TYPE_CHECKING:
    from harness.op import Value

MAX_FOREIGN_CHARACTERS: Final = 100


def value_of(text: Any) -> Value:
    """Returns the value of a text that a client wrote.

    Raises:
        NoAnswer: It is no JSON, so no client wrote it.
    """
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise NoAnswer(f"expected a value of JSON, found {str(text)[:MAX_FOREIGN_CHARACTERS]!r}") from None


def entry_body(key: str, value: Value) -> bytes:
    """Returns the body of an entry of a log, with a value of a key; the key is null in that of `ONLY_KEY`.

    Raises:
        NotDone: JSON does not have this value.
    """
    try:
        return json.dumps({"key": _stored(key), "value": value}, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError):
        raise NotDone(UNSUPPORTED, f"{str(value)[:MAX_FOREIGN_CHARACTERS]} is not a value of JSON") from None


def queued_value(body: bytes, key: str) -> Value:
    """Returns the value in the body of a message; a text that names the message if no client of this queue sent it."""
    values = values_in(body, key)
    return values[0] if values else f"not an entry of this queue: {body[:MAX_FOREIGN_CHARACTERS]!r}"


def values_in(body: bytes, key: str) -> list[Value]:
    """Returns the value in the body of an entry if it is one of this key.

    An entry that no client of the run wrote becomes a text: an element without an append, which the checker reports.
    """
    try:
        stored = json.loads(body)
    except (ValueError, RecursionError):
        stored = None
    if not isinstance(stored, dict) or stored.keys() != {"key", "value"}:
        return [f"not an entry of this test: {body[:MAX_FOREIGN_CHARACTERS]!r}"]
    return [stored["value"]] if stored["key"] == _stored(key) else []


def _stored(key: str) -> str | None:
    return None if key == ONLY_KEY else key
