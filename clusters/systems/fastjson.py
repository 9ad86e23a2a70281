"""The JSON of RocketMQ's servers: fastjson writes numbers as keys without quotes.

`{1:"a"}` is not legal JSON. `read` takes it for `{"1": "a"}`, and everything else as JSON. Bodies come from the system under
test, so time and memory are linear in their length for any content. A body above `MAX_BARE_BYTES` must be legal JSON.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.op import Value

MAX_BARE_BYTES = 1024 * 1024  # a group of a thousand brokers has a twentieth of that
# Possessive, so that it never tries a second way.
_BARE_KEY = re.compile(r"([{,][ \t\r\n]*+)(-?+[0-9]++)(?=[ \t\r\n]*+:)")


def read(data: bytes) -> Value:
    """Returns the value of a body.

    Raises:
        ValueError: It is not such JSON.
        RecursionError: It is nested too deeply.
    """
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
            raise strict from None  # its places are those of the data


def _quoted(text: str) -> Iterator[str]:
    """Gives a text piece by piece, with quotes around numbers that are keys; what is inside of strings stays."""
    at = 0
    while at < len(text):
        begin = text.find('"', at)
        begin = len(text) if begin < 0 else begin
        yield _BARE_KEY.sub(r'\1"\2"', text[at:begin])
        end = _string_end(text, begin)
        yield text[begin:end]
        at = end


def _string_end(text: str, begin: int) -> int:
    """Returns where the string ends that begins here; the text's end if it does not end."""
    at = begin + 1
    while (quote := text.find('"', at)) >= 0:
        first = quote
        while first > at and text[first - 1] == "\\":
            first -= 1
        if (quote - first) % 2 == 0:
            return quote + 1
        at = quote + 1
    return len(text)
