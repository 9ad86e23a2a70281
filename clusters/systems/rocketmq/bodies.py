"""Bodies of messages that have a size: an entry of JSON, a line feed, and a filler that the entry decides.

The entry decides the size too, so a message has the same body in each run with the same options. A reader makes the filler
again. A body whose filler is another one is not an entry of the test. So a reader finds each changed byte, and each cut but the
one that leaves the whole entry and nothing else.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import Final

from harness.console.documents import shown
from harness.errors import InputError

MOST: Final = 1_000_000  # a broker takes 4 MiB with all fields; Labrys reads frames of at most 16 MiB
BEHIND_ENTRY: Final = b"\n"  # JSON of a client has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of bodies in bytes.

    Attributes:
        least: The smallest one. A body without a filler can be longer.
        most: The largest one; 0: no body has a filler.
    """

    least: int
    most: int

    def of(self, entry: bytes) -> int:
        """Returns the size of the body of an entry."""
        return self.least + zlib.crc32(entry) % (self.most - self.least + 1)


def parse_sizes(text: str) -> Sizes:
    """Reads a number of bytes, or a range `low-high`.

    Raises:
        InputError: It is neither.
    """
    low, dash, high = text.partition("-")
    numbers = [low, high] if dash else [low, low]
    if all(number.isascii() and number.isdigit() and len(number) <= len(str(MOST)) for number in numbers):
        least, most = map(int, numbers)
        if least <= most <= MOST:
            return Sizes(least=least, most=most)
    raise InputError(
        f"expected a number of bytes from 0 to {MOST}, or a range such as 100-65536, for --body-bytes; found {shown(text)}"
    )


def filled(entry: bytes, sizes: Sizes) -> bytes:
    """Returns the body of an entry. An entry that leaves no room for a filler is its own body."""
    room = sizes.of(entry) - len(entry) - len(BEHIND_ENTRY)
    return entry if room <= 0 else entry + BEHIND_ENTRY + _filler(entry, room)


def entry_in(body: bytes) -> bytes:
    """Returns the entry in a body; the whole body if its filler is not the one of its entry."""
    entry, line_feed, filler = body.partition(BEHIND_ENTRY)
    return entry if line_feed and filler == _filler(entry, len(filler)) else body


def _filler(entry: bytes, size: int) -> bytes:
    return hashlib.shake_128(b"%d %b" % (size, entry)).hexdigest((size + 1) // 2)[:size].encode()
