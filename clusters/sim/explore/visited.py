"""The visited states of a search, and whether one of them makes a new state needless.

States with the same nodes and the same operations are in one group. A group can have tens of thousands of states, which differ
in their messages under way. So their messages are rows of a matrix, and one operation compares a state with all rows. A state
that equals a visited one is found by its hash first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from clusters.sim.explore.orders import DOMINATED
from clusters.sim.explore.state import dominates, rest_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusters.sim.explore.state import Rest, State

_WORD_BYTES: Final = 8
_FEW: Final = 48  # states that are compared one by one


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
            group.rests.append(rest)
        group.numbers[rest] = number
        return None


class _Group:
    """States that differ only in their messages, and in what may follow.

    Attributes:
        rests: What differs, of each state.
        numbers: The numbers of the states.
    """

    __slots__ = ("_matrix", "_rows", "numbers", "rests")

    def __init__(self) -> None:
        self.rests: list[Rest] = []
        self.numbers: dict[Rest, int] = {}
        self._rows = 0  # how many states are in the matrix
        self._matrix: NDArray[np.uint64] | None = None

    def dominates(self, rest: Rest) -> bool:
        """Returns whether one of the states dominates another one."""
        bag = rest[0]
        if len(self.rests) - self._rows > _FEW:
            self._fill()
        for own in self.rests[self._rows :] if self._rows else self.rests:
            if not bag & ~own[0] and dominates(own, rest):
                return True
        if self._matrix is None:
            return False
        width = self._matrix.shape[1]
        if bag.bit_length() > 8 * _WORD_BYTES * width:
            return False  # no row has its last message
        more = _row(bag, width) & ~self._matrix[: self._rows]
        return any(dominates(self.rests[int(place)], rest) for place in np.flatnonzero(~more.any(axis=1)))

    def _fill(self) -> None:
        """Adds rows for all states."""
        before = np.zeros((0, 1), np.uint64) if self._matrix is None else self._matrix
        width = max(before.shape[1], *(-(-bag.bit_length() // 64) for bag, *_ in self.rests[self._rows :]))
        if self._matrix is None or len(self.rests) > len(before) or width > before.shape[1]:
            self._matrix = np.zeros((2 * len(self.rests), width), np.uint64)
            self._matrix[: self._rows, : before.shape[1]] = before[: self._rows]
        for place in range(self._rows, len(self.rests)):
            self._matrix[place] = _row(self.rests[place][0], width)
        self._rows = len(self.rests)


def _row(bag: int, width: int) -> NDArray[np.uint64]:
    return np.frombuffer(bag.to_bytes(width * _WORD_BYTES, "little"), "<u8")
