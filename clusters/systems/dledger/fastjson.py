"""Parses the JSON of RocketMQ's servers: fastjson writes numbers as keys without quotes.

`{1:"a"}` is not legal JSON. `read` parses it as `{"1": "a"}`, and everything else as JSON. The system under test writes the
bodies, so the parser takes time and memory linear in their length for any content. A body above `MAX_BARE_BYTES` must be legal
JSON.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from msgspec import DecodeError
from msgspec.json import Decoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.op import Value

MAX_BARE_BYTES = 1024 * 1024  # a group of a thousand brokers has a twentieth of that
_STRICT = Decoder()
# The quantifiers are possessive, so that the match never backtracks.
_BARE_KEY = re.compile(r"([{,][ \t\r\n]*+)(-?+[0-9]++)(?=[ \t\r\n]*+:)")


def read(data: bytes) -> Value:
    """Returns the value of a body.

    Raises:
        ValueError: The body is not JSON, even with quoted keys.
        RecursionError: The value is nested too deeply.
    """
    with suppress(
        DecodeError, UnicodeDecodeError
    ):  # the same value in a sixth of the time; it refuses more than `json` does
        return cast("Value", _STRICT.decode(data))
    try:
        return json.loads(data)
    except UnicodeDecodeError:
        raise
    except ValueError as strict:
        if len(data) > MAX_BARE_BYTES:
            raise
        quoted = "".join(_quoted(data.decode()))
        try:
            return json.loads(quoted)
        except ValueError:
            raise strict from None  # its message has positions in the original data


def _quoted(text: str) -> Iterator[str]:
    """Yields a text piece by piece, with quotes around numbers that are keys. Strings stay unchanged."""
    at = 0
    while at < len(text):
        begin = text.find('"', at)
        begin = len(text) if begin < 0 else begin
        yield _BARE_KEY.sub(r'\1"\2"', text[at:begin])
        end = _string_end(text, begin)
        yield text[begin:end]
        at = end


def _string_end(text: str, begin: int) -> int:
    """Returns the end of the string that begins at `begin`; the end of the text if the string is not closed."""
    at = begin + 1
    while (quote := text.find('"', at)) >= 0:
        first = quote
        while first > at and text[first - 1] == "\\":
            first -= 1
        if (quote - first) % 2 == 0:
            return quote + 1
        at = quote + 1
    return len(text)
