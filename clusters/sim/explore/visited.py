"""The visited states of a search, and whether one of them makes a new state needless.

States with the same nodes and the same operations are in one group. A group can have tens of thousands of states, which differ
in their messages under way. So a group knows for each message which of its states have it, as the bits of one number. A few
operations on these numbers then find all states that have at least the messages of a new one. A state that equals a visited one
is found by its hash first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusters.sim.explore.orders import DOMINATED
from clusters.sim.explore.state import dominates, rest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clusters.sim.explore.state import Rest, State


class Visited:
    """The visited states, in groups."""

    def __init__(self, *, dominance: bool) -> None:
        """Begins.

        Args:
            dominance: Whether a visited state with more messages makes a state needless.
        """
        self._groups: dict[tuple[tuple[int, ...], int], _Group] = {}
        self._dominance = dominance

    def known(self, state: State, number: int) -> int | None:
        """Returns the number of the visited state that equals a state, or `DOMINATED` if another one makes it needless.

        Returns None for a new state, and remembers it by the given number.
        """
        key = state.nodes, state.history
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group()
        rest = rest_of(state)
        equal = group.numbers.get(rest)
        if equal is not None:
            return equal
        if self._dominance:
            if group.dominates(rest):
                return DOMINATED
            group.add(rest)
        group.numbers[rest] = number
        return None


class _Group:
    """States that differ only in their messages, and in what may follow.

    Attributes:
        rests: What differs, of each state.
        numbers: The numbers of the states.
    """

    __slots__ = ("_having", "numbers", "rests")

    def __init__(self) -> None:
        self.rests: list[Rest] = []
        self.numbers: dict[Rest, int] = {}
        self._having: dict[int, int] = {}  # for each message, the states that have it under way: a bit for each state

    def add(self, rest: Rest) -> None:
        """Adds a state."""
        own = 1 << len(self.rests)
        for message in _bits(rest[0]):
            self._having[message] = self._having.get(message, 0) | own
        self.rests.append(rest)

    def dominates(self, rest: Rest) -> bool:
        """Returns whether one of the states dominates another one."""
        candidates = (1 << len(self.rests)) - 1
        for message in _bits(rest[0]):
            candidates &= self._having.get(message, 0)
            if not candidates:
                return False
        return any(dominates(self.rests[position], rest) for position in _places(candidates))


def _bits(bag: int) -> Iterator[int]:
    """Returns the bits of a number that are set, each as a power of two."""
    while bag:
        lowest = bag & -bag
        yield lowest
        bag ^= lowest


def _places(bits: int) -> Iterable[int]:
    """Returns the places of the bits that are set, from the lowest one on."""
    content = np.frombuffer(bits.to_bytes(-(-bits.bit_length() // 8), "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(content, bitorder="little")).tolist()
