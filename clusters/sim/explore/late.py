"""Messages that come too late: whatever their receiver still does, they change nothing in it, and cause no message.

Such a message is left out of the messages under way. So two states of the cluster that differ only in it are one state.

A message is late in a state of its receiver if it has no effect there, nor in any state to which the search has seen the
receiver go from there. The search may see more later. Then it begins anew with what it knows. A search that ends without such
a surprise is right: take the first event in any order of events by which a message that was left out has an effect. All events
before it were visited, so the search has seen its receiver go to this state, and knows that the message is not late.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from clusters.sim.explore.nodes import DEAD, Event, Kind
from clusters.sim.explore.state import COPIES, COPY_MASK, messages_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusters.sim.explore.nodes import Nodes


class Late:
    """What a search knows about late messages.

    Attributes:
        is_wrong: Whether a message was left out that can have an effect.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.is_wrong = False
        self._nodes = nodes
        self._of_place = [0] * len(nodes.names)  # the messages to each node, in the form of a bag
        self._placed = 0  # how many messages are in `_of_place`
        self._late: defaultdict[int, int] = defaultdict(int)  # late messages, by the state of their receiver
        self._timely: defaultdict[int, int] = defaultdict(int)
        self._after: defaultdict[int, set[int]] = defaultdict(set)  # the states after a state
        self._before: defaultdict[int, set[int]] = defaultdict(set)

    def learn(self, state: int, following: int) -> None:
        """Learns that a node can go from a state to another one."""
        if state in (following, DEAD) or following == DEAD or following in self._after[state]:
            return
        self._after[state].add(following)
        self._before[following].add(state)
        for message in messages_in(self._late[state] & ~self._late[following]):
            if not self._is_late(following, message):
                self._correct(state, message)

    def without(self, states: tuple[int, ...], bag: int, places: Iterable[int]) -> int:
        """Returns the messages under way that are not late, with the states of all nodes.

        Args:
            states: The states.
            bag: The messages. Those to other places than `places` are not late.
            places: The places of the nodes that have a new state, or to which new messages are under way.
        """
        if self._placed < len(self._nodes.messages):
            self._place_new()
        for index in places:
            own, state = bag & self._of_place[index], states[index]
            if own:
                unknown = own & ~(self._late[state] | self._timely[state])
                for message in messages_in(unknown):
                    self._is_late(state, message)
                bag &= ~(own & self._late[state])
        return bag

    def _place_new(self) -> None:
        nodes = self._nodes
        while self._placed < len(nodes.messages):
            self._of_place[nodes.targets[self._placed]] |= COPY_MASK << self._placed * COPIES
            self._placed += 1

    def _is_late(self, first: int, message: int) -> bool:
        """Finds out whether a message is late in a state, and remembers it."""
        mask = COPY_MASK << message * COPIES
        reached, waiting = {first}, [first]
        while waiting:
            state = waiting.pop()
            if self._timely[state] & mask or self._has_effect(state, message):
                self._timely[first] |= mask
                return False
            fresh = {other for other in self._after[state] - reached if not self._late[other] & mask}
            reached |= fresh
            waiting += fresh
        for state in reached:
            self._late[state] |= mask
        return True

    def _has_effect(self, state: int, message: int) -> bool:
        step = self._nodes.step(state, Event(Kind.MESSAGE, message))
        return step.state != state or bool(step.sent or step.replies)

    def _correct(self, first: int, message: int) -> None:
        """Corrects what was wrong: a message is not late in a state, nor in the states before it."""
        self.is_wrong = True
        mask = COPY_MASK << message * COPIES
        waiting = [first]
        while waiting:
            state = waiting.pop()
            if self._late[state] & mask:
                self._late[state] &= ~mask
                self._timely[state] |= mask
                waiting += self._before[state]
