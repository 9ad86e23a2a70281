"""The trail of a search: for each state, the state before it and the event between them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from clusters.sim.explore.state import packed, unpacked

if TYPE_CHECKING:
    from clusters.sim.explore.nodes import Event


class Trail:
    """The states so far, by number; 16 bytes for each."""

    def __init__(self) -> None:
        """Begins with the first state, number 0."""
        self._before = array("q", [-1])
        self._event = array("q", [0])

    def __len__(self) -> int:
        """Returns how many states there are."""
        return len(self._before)

    def add(self, before: int, index: int, event: Event) -> int:
        """Returns the number of the state after an event of the node at a place."""
        self._before.append(before)
        self._event.append(packed(index, event))
        return len(self._before) - 1

    def events(self, number: int) -> list[tuple[int, Event]]:
        """Returns the events that lead to a state, each with the place of its node."""
        events = []
        while self._before[number] >= 0:
            events.append(unpacked(self._event[number]))
            number = self._before[number]
        return events[::-1]
