"""Finds the first difference of two logs of calls, which the controller writes (`controller/src/digest.rs`).

A line has the virtual time in nanoseconds, the node, the program and the number of the thread, and a call with its result. It
ends with a part of the digest of all before. So lines differ at once, even if what differs is no call, e.g. bytes that a
program got. A log may come from anyone, and be larger than the memory.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AFTER: Final = 3  # lines from the difference on
MAX_LINE: Final = 4096  # bytes; a longer line counts as several
_CALL: Final = re.compile(r"\s*(?P<time>\d{1,18}) (?P<node>\S+)/(?P<program>[^\s/]+)/(?P<thread>\d+) ")
_MARK: Final = re.compile(r" #[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first difference of two logs.

    Attributes:
        number: The number of the first line that differs, from 1.
        before: The lines before it, which are equal.
        first: The lines of the first log from there on, at most `AFTER`; none if the log is over.
        second: The same of the second log.
    """

    number: int
    before: Sequence[str]
    first: Sequence[str]
    second: Sequence[str]

    def describe(self) -> str:
        """Returns where the difference is, as one or two sentences."""
        one, other = _place(self.first), _place(self.second)
        where = f"at {one}" if one == other else f"at {one} in the first log, and at {other} in the second"
        text = f"The first difference is in line {self.number:,}, {where}."
        if self.first and self.second and _MARK.sub("", self.first[0]) == _MARK.sub("", self.second[0]):
            text += (
                " The line is the same, but not what came before: a choice among threads, or bytes that the log lacks."
            )
        return text


def _place(lines: Sequence[str]) -> str:
    """Returns the time, the program, its thread and its node of the first call among some lines."""
    if not lines:
        return "its end"
    match = next(filter(None, map(_CALL.match, lines)), None)
    if match is None:
        return "no call"
    seconds = int(match["time"]) / NS_PER_S
    return f"{seconds:.6f} s of virtual time, in thread {match['thread']} of {match['program']} on {match['node']}"


def first_difference(one: BinaryIO, other: BinaryIO, *, before: int) -> tuple[int, Difference | None]:
    """Compares two logs of calls.

    Args:
        one: The first log.
        other: The second log.
        before: How many equal lines to return with the difference.

    Returns:
        The number of equal lines, and the first difference; None if there is none.
    """
    first, second = _lines(one), _lines(other)
    equal: deque[bytes] = deque(maxlen=before)
    count = 0
    while True:
        mine, others = next(first, None), next(second, None)
        if mine == others:
            if mine is None:
                return count, None
            equal.append(mine)
            count += 1
            continue
        return count, Difference(
            number=count + 1,
            before=[_text(line) for line in equal],
            first=_from(mine, first),
            second=_from(others, second),
        )


def _lines(log: BinaryIO) -> Iterator[bytes]:
    while line := log.readline(MAX_LINE):
        yield line


def _from(line: bytes | None, others: Iterator[bytes]) -> list[str]:
    return [] if line is None else [_text(line), *map(_text, itertools.islice(others, AFTER - 1))]


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")
