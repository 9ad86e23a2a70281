"""The canonical JSON of values: equal values have equal text, and different values different text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.event_lines import without_doubles
from harness.values import hold_to_bounds

if TYPE_CHECKING:
    from harness.op import Value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=without_doubles)


def json_text(value: Value) -> str | None:
    """Returns the canonical JSON of a value; None for no value.

    Raises:
        InputError: JSON cannot represent the value.
    """
    if value is None:
        return None
    if type(value) is int:
        return str(value)
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"expected a value that JSON can represent, found {type(value).__name__}: {error}") from error


def decode_value(text: str) -> Value:
    """Returns the value of a JSON text.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected the JSON of a value, found {text[:80]!r}: {error}") from error
    hold_to_bounds(value)
    return value


class Values:
    """Parses the JSON of values, and caches a bounded number of texts, because most histories repeat a few."""

    _LIMIT = 1 << 12

    def __init__(self) -> None:
        """Starts without any text."""
        self._scalars: dict[str | None, Value] = {None: None}

    def decode(self, text: str | None) -> Value:
        """Returns the value of a JSON text; None for no text.

        Raises:
            ValueError: It is not JSON.
        """
        known = self._scalars.get(text, self)
        if known is not self:
            return known
        value = decode_value(text or "")
        if not isinstance(value, list | dict) and len(self._scalars) < self._LIMIT:
            self._scalars[text] = value
        return value
