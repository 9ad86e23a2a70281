"""Reads the transcript of a node, `nodes/NODE/messages.log`: the lines on its stdin and stdout with their times.

`clusters.pipes.transcript` writes it. A transcript may come from anyone, so its lines and its bytes have limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

FILE: Final = "messages.log"
IN: Final = b">"
_LINE: Final = re.compile(rb"(\d{1,9}\.\d{6}) ([<>]) (.*)", re.DOTALL)


_LEFT_OUT: Final = re.compile(
    rb"\(Labrys left out (\d{1,15} lines?, \d{1,15} bytes), from (\d{1,9}\.\d{6}) s on; SHA-256 [0-9a-f]{64}\)"
)
_MAX_NOTE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a transcript leaves out, because a program wrote more than Labrys keeps.

    Attributes:
        what: The lines and bytes, as text.
        from_s: The time of the first line, since the start of the world.
    """

    what: str
    from_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a transcript.

    Attributes:
        number: Its number in the file, from 1.
        seconds: Its time since the start of the world.
        is_in: Whether it is of stdin.
        text: The line, without its end.
    """

    number: int
    seconds: float
    is_in: bool
    text: bytes


def lines_of(file: BinaryIO, *, most_bytes: int, most_line: int) -> Iterator[Line]:
    """Yields the lines of a transcript. What is no line of one is left out.

    Args:
        file: The transcript.
        most_bytes: It reads no line that begins after so many bytes.
        most_line: The bytes of a line; the rest of a longer one is left out.
    """
    number, whole = 0, True
    while file.tell() < most_bytes and (raw := file.readline(most_line)):
        number, whole = number + whole, raw.endswith(b"\n")
        match = _LINE.fullmatch(raw.removesuffix(b"\n"))
        if match is not None:
            yield Line(number=number, seconds=float(match[1]), is_in=match[2] == IN, text=match[3])


def left_out_of(file: BinaryIO) -> LeftOut | None:
    """Returns what the last line of a transcript says that it leaves out; None if it says nothing."""
    file.seek(max(0, file.seek(0, 2) - _MAX_NOTE))
    match = _LEFT_OUT.fullmatch(file.read(_MAX_NOTE).removesuffix(b"\n").rpartition(b"\n")[2])
    return None if match is None else LeftOut(what=match[1].decode("ascii"), from_s=float(match[2]))
