"""The visited states of a search, and whether one of them makes a new state needless.

States with the same nodes and the same operations are in one group. A group can have tens of thousands of states, which differ
in their messages under way. So their messages are rows of a matrix, and one operation compares a state with all rows. A state
that equals a visited one is found by its hash first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from clusters.sim.explore.orders import DOMINATED
from clusters.sim.explore.state import dominates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusters.sim.explore.found import Used
    from clusters.sim.explore.state import State

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
        own = state.bag, state.used, state.duty, state.owed, state.ends
        equal = group.numbers.get(own)
        if equal is not None:
            return equal
        if self._dominance:
            if group.dominates(state):
                return DOMINATED
            group.states.append(state)
        group.numbers[own] = number
        return None


class _Group:
    """States that differ only in their messages, and in what may follow.

    Attributes:
        states: The states.
        numbers: Their numbers, by what may differ.
    """

    __slots__ = ("_matrix", "_rows", "numbers", "states")

    def __init__(self) -> None:
        self.states: list[State] = []
        self.numbers: dict[tuple[int, Used, int, int, bool], int] = {}
        self._rows = 0  # how many states are in the matrix
        self._matrix: NDArray[np.uint64] = np.zeros((0, 1), np.uint64)

    def dominates(self, state: State) -> bool:
        """Returns whether one of the states dominates another one."""
        states = self.states
        if len(states) <= _FEW:
            return any(dominates(other, state) for other in states)
        if any(dominates(other, state) for other in states[self._rows :]):
            return True
        if len(states) - self._rows > _FEW:
            self._fill()
        width = self._matrix.shape[1]
        if state.bag.bit_length() > 8 * _WORD_BYTES * width:
            return False  # no row has its last message
        more = _row(state.bag, width) & ~self._matrix[: self._rows]
        return any(dominates(states[int(place)], state) for place in np.flatnonzero(~more.any(axis=1)))

    def _fill(self) -> None:
        """Adds rows for all states."""
        width = max(self._matrix.shape[1], *(-(-each.bag.bit_length() // 64) for each in self.states[self._rows :]))
        if len(self.states) > len(self._matrix) or width > self._matrix.shape[1]:
            grown = np.zeros((2 * len(self.states), width), np.uint64)
            grown[: self._rows, : self._matrix.shape[1]] = self._matrix[: self._rows]
            self._matrix = grown
        for place in range(self._rows, len(self.states)):
            self._matrix[place] = _row(self.states[place].bag, width)
        self._rows = len(self.states)


def _row(bag: int, width: int) -> NDArray[np.uint64]:
    return np.frombuffer(bag.to_bytes(width * _WORD_BYTES, "little"), "<u8")
