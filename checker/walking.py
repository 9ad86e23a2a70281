"""What the rules share that walk through a history: which operations are done, and which may come next by real time.

A walk puts operations in an order one by one. An operation may come next if no other one that remains has ended before it
begins. So what may come next is open at one moment, the least end of what remains, and what is done is all that began before
but a few. That makes a state small, however long the history is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from checker.models.opcodes import INFINITE

if TYPE_CHECKING:
    from collections.abc import Iterable

BEFORE: Final = -(2**63) + 1  # earlier than all that a history has
LAST: Final = (INFINITE, 0)  # later than all returns
MOST_STATES: Final = 500_000  # some 500 bytes each


class Kind:
    """The operations of one kind, by start.

    Attributes:
        starts: By number: when it began.
        ends: By number: when it ended.
        values: By number: its value.
        positions: By number: its position in the history; -1 for an element that is there at the beginning.
        by_end: The numbers in the order of the ends.
        inner: By number: the latest start of those of its value that lie within it.
    """

    def __init__(self, items: Iterable[tuple[int, int, int, int]]) -> None:
        """Takes (start, end, value, position) of each."""
        ordered = sorted(items)
        self.starts = [item[0] for item in ordered]
        self.ends = [item[1] for item in ordered]
        self.values = [item[2] for item in ordered]
        self.positions = [item[3] for item in ordered]
        self.by_end = sorted(range(len(ordered)), key=self.ends.__getitem__)
        self.inner = [BEFORE] * len(ordered)
        of_value: defaultdict[int, list[int]] = defaultdict(list)
        for number, value in enumerate(self.values):
            of_value[value].append(number)
        for numbers in of_value.values():
            least = [self.ends[number] for number in numbers]
            for place in range(len(numbers) - 2, -1, -1):
                least[place] = min(least[place], least[place + 1])
            for place, number in enumerate(numbers):
                inside = bisect_left(least, self.ends[number]) - 1
                if inside > place:
                    self.inner[number] = self.starts[numbers[inside]]

    def __len__(self) -> int:
        return len(self.starts)


class Done(NamedTuple):
    """Which operations of a kind are done.

    Attributes:
        begun: All before this number may come next, or are done.
        left: Those of them that are not done.
        ended: The place in the order of the ends before which all are done.
        least: The least end of those that are not done.
    """

    begun: int
    left: tuple[int, ...]
    ended: int
    least: int

    def opened(self, kind: Kind, until: int) -> Done:
        """Returns the same with what begins until a moment among `left`."""
        begun, starts = self.begun, kind.starts
        if begun == len(starts) or starts[begun] > until:
            return self
        left = list(self.left)
        while begun < len(starts) and starts[begun] <= until:
            left.append(begun)
            begun += 1
        return Done(begun, tuple(left), self.ended, self.least)

    def without(self, kind: Kind, number: int) -> Done:
        """Returns the same with one more that is done, of those in `left`."""
        left = tuple(each for each in self.left if each != number)
        ended, by_end = self.ended, kind.by_end
        while ended < len(by_end) and by_end[ended] < self.begun and by_end[ended] not in left:
            ended += 1
        least = kind.ends[by_end[ended]] if ended < len(by_end) else INFINITE
        return Done(self.begun, left, ended, least)


def nothing(kind: Kind) -> Done:
    """Returns what is done at the beginning."""
    return Done(0, (), 0, kind.ends[kind.by_end[0]] if len(kind) else INFINITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What a walk found.

    Attributes:
        valid: Whether there is a linearization; None if the budget ended before.
        order: The positions of the operations in the order of a linearization, if it was asked for.
        steps: How many steps were tried.
        stuck: Invalid: the latest return before which the search was stuck; a guess for the first that cannot be.
    """

    valid: bool | None
    order: list[int] | None = None
    steps: int = 0
    stuck: int = INFINITE
