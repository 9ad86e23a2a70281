"""The visited states of a search, and whether one of them makes a new state needless.

States with the same nodes and the same operations are in one group. A group can have tens of thousands of states, which differ
in their messages under way. So their messages are rows of a matrix, and one operation compares a state with all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from clusters.sim.explore.state import State, dominates

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD_BYTES: Final = 8
_FEW: Final = 48  # states that are compared one by one


class Visited:
    """The visited states, in groups."""

    def __init__(self) -> None:
        self._groups: dict[tuple[tuple[int, ...], int], _Group] = {}

    def add(self, state: State) -> None:
        """Adds a state."""
        key = state.nodes, state.history
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group()
        group.add(state)

    def dominate(self, state: State) -> bool:
        """Returns whether all that can follow a state can also follow a visited one."""
        group = self._groups.get((state.nodes, state.history))
        return group is not None and group.dominates(state)

    def have(self, state: State) -> bool:
        """Returns whether a visited state has the same messages under way and the same use of the bounds."""
        group = self._groups.get((state.nodes, state.history))
        return group is not None and any(other.bag == state.bag and other.used == state.used for other in group.states)


class _Group:
    """States that differ only in their messages, and in what may follow.

    Attributes:
        states: The states.
    """

    __slots__ = ("_matrix", "_rows", "states")

    def __init__(self) -> None:
        self.states: list[State] = []
        self._rows = 0  # how many states are in the matrix
        self._matrix: NDArray[np.uint64] = np.zeros((0, 1), np.uint64)

    def add(self, state: State) -> None:
        """Adds a state."""
        self.states.append(state)

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
