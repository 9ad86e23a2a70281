"""The entries that clients append to the log and read from it.

A read skips the library's own entries (`NOOP`, `CONFIG_CHANGE`) and the markers of reads. It does not skip an entry of an
unknown writer (`clusters.kit.stored.values_in`).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.kit.answers import NoAnswer
from clusters.kit.stored import values_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value

# The marker of a read. Once it is committed, all entries below it are committed too.
BARRIER = b'{"barrier":true}'
NORMAL = 1  # the magic number of an entry that a client has appended


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the log.

    Attributes:
        index: Its index.
        magic: The kind of the entry.
        body: The content that a client has appended.
    """

    index: int
    magic: int
    body: bytes


def entry_of(body: Mapping[str, Value], index: int) -> Entry:
    """Returns the entry in the answer to a request for the entry at an index.

    Raises:
        NoAnswer: The answer has no entry, or that of another index.
    """
    stored = body.get("entries")
    match stored:
        case [{"index": int(got), "magic": int(magic), **rest}] if got == index:
            return Entry(index=index, magic=magic, body=_bytes(rest.get("body"), index))
    raise NoAnswer(f"expected the entry at {index}, got {str(stored)[:100]}")


def _bytes(text: Value, index: int) -> bytes:
    if text is None:
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise NoAnswer(f"the body of the entry at {index} is not base64: {str(text)[:100]}") from error


def values_of(entries: list[Entry], key: str) -> list[tuple[int, Value]]:
    """Returns the index and the value of each entry of a key, and of each entry that no client of the run has written."""
    return [(entry.index, value) for entry in entries for value in _values(entry, key)]


def _values(entry: Entry, key: str) -> list[Value]:
    if entry.magic != NORMAL or entry.body == BARRIER:
        return []
    return values_in(entry.body, key)
