"""How many orders of events a search has visited.

The visited states and the events between them are a graph. An order is a path from the first state to its end. It ends in a
state without a further event, or with an event whose state can show nothing new, since all that can follow was visited from a
state with more messages under way (`state.dominates`). Without the reductions, the second kind of end does not occur. Then each
order is a complete sequence of events: nothing more can happen. Any other sequence of events is the beginning of one of them.

The orders are counted, not listed: the orders through a state are the orders up to it, times those from it on. If states can
come back, as when two nodes answer each other for ever, there is no longest order, and they cannot be counted.
"""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np

DOMINATED: Final = -1  # a state that can show nothing new, and that equals no visited one


class Orders:
    """The events of a search, by the states before and after; 16 bytes for each."""

    def __init__(self) -> None:
        self._before = array("q")
        self._after = array("q")

    def add(self, before: int, after: int) -> None:
        """Adds an event.

        Args:
            before: The number of the state before it.
            after: The number of the state afterwards; or `DOMINATED`.
        """
        self._before.append(before)
        self._after.append(after)

    def count(self, states: int, first: int) -> int | None:
        """Returns the number of orders, exactly; None if states can come back.

        Args:
            states: The number of states.
            first: The number of the first one.
        """
        before = np.frombuffer(self._before, np.int64) if self._before else np.zeros(0, np.int64)
        after = np.frombuffer(self._after, np.int64) if self._after else np.zeros(0, np.int64)
        by_state = np.argsort(before, kind="stable")
        targets = after[by_state].tolist()
        starts = np.searchsorted(before[by_state], np.arange(states + 1)).tolist()
        waits = np.bincount(after[after != DOMINATED], minlength=states).tolist()  # the events before each state
        orders = [0] * states
        orders[first] = 1
        ready = [state for state in range(states) if not waits[state]]
        counted = total = 0
        while ready:
            state = ready.pop()
            counted += 1
            own, orders[state] = orders[state], 0
            if starts[state] == starts[state + 1]:
                total += own
            for target in targets[starts[state] : starts[state + 1]]:
                if target == DOMINATED:
                    total += own
                    continue
                orders[target] += own
                waits[target] -= 1
                if not waits[target]:
                    ready.append(target)
        return total if counted == states else None
