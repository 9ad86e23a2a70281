"""Nodes that are alike: states that differ only in which of them is which are visited once.

The system names these nodes. A swap maps an order of events to another one: each event happens at the other node, and each
message has the other sender and receiver. If all nodes do the mapped things in the mapped order, both orders have the same
violations. This module checks this for each step that the search computes. So a wrong claim ends the symmetry, and the search
begins anew without it.

Source of the idea: C. N. Ip and D. L. Dill, "Better verification through symmetry" (Formal Methods in System Design 9, 1996).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from clusters.sim.explore.nodes import DEAD, Event, Kind
from clusters.sim.explore.state import COPIES, COPY_MASK, messages_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.explore.history import History
    from clusters.sim.explore.nodes import Nodes, Step
    from clusters.sim.explore.state import State

_MOST_KEPT: Final = 100_000  # least states of nodes


class NotAlikeError(Exception):
    """Nodes that the system calls alike do different things."""


class _Swap:
    """A permutation of the nodes that are alike.

    Attributes:
        places: The place that stands for each place.
        states: The state that stands for each state.
        messages: The message that stands for each message.
        bags: The messages that stand for some messages from and to one of the nodes, both in the form of a bag.
    """

    def __init__(self, places: Sequence[int], first: Sequence[int]) -> None:
        self.places = places
        self.states = {DEAD: DEAD}
        self.messages: dict[int, int] = {}
        self.bags: dict[int, int] = {}
        self._taken: dict[int, int] = {}  # the state for which a state stands
        for index, state in enumerate(first):
            self.maps(state, first[places[index]])

    def maps(self, state: int, other: int) -> None:
        """Learns that a state stands for another one.

        Raises:
            NotAlikeError: It stands for a third one, or a third one stands for it.
        """
        if self.states.setdefault(state, other) != other or self._taken.setdefault(other, state) != state:
            raise NotAlikeError


class Symmetry:
    """The permutations of some nodes of a search."""

    def __init__(self, nodes: Nodes, alike: Sequence[int]) -> None:
        """Begins.

        Args:
            nodes: The nodes, which have begun.
            alike: The places of the nodes that are alike.
        """
        self.alike = tuple(alike)
        self._nodes = nodes
        self._learned: set[tuple[int, Event]] = set()
        self._parts = dict.fromkeys(alike, 0)  # the messages from or to each of the nodes, in the form of a bag
        self._others = 0  # all other messages
        self._parted = 0  # how many messages are in `_parts` and `_others`
        self._least: dict[tuple[int, ...], tuple[tuple[int, ...], list[_Swap]]] = {}  # by the states of all nodes
        self._swaps = []
        for order in itertools.permutations(alike):
            places = list(range(len(nodes.names)))
            for index, other in zip(alike, order, strict=True):
                places[index] = other
            if places != sorted(places):
                self._swaps.append(_Swap(places, nodes.first))

    def learn(self, state: int, event: Event, step: Step) -> list[tuple[int, int]]:
        """Checks that the nodes do at a swapped event what the swap of a step says.

        Returns:
            The steps of the other nodes: the state before, and the state afterwards.

        Raises:
            NotAlikeError: They do something else.
        """
        if state == DEAD or (state, event) in self._learned:
            return []
        self._learned.add((state, event))
        pairs = []
        for swap in self._swaps:
            number = self._message(swap, event.number) if event.kind is Kind.MESSAGE else event.number
            other = self._nodes.step(swap.states[state], Event(event.kind, number))
            sent = sorted(self._message(swap, message) for message in step.sent)
            if (
                sent != sorted(other.sent)
                or step.replies != other.replies
                or (step.state == DEAD) != (other.state == DEAD)
            ):
                raise NotAlikeError
            pairs.append((swap.states[state], other.state))
            if step.state != DEAD:
                swap.maps(step.state, other.state)
        return pairs

    def check(self, history: History) -> None:
        """Checks that no client has asked one of the nodes.

        Raises:
            NotAlikeError: One has.
        """
        names = {self._nodes.names[index] for index in self.alike}
        if any(seen is not None and seen.node in names for seen in history):
            raise NotAlikeError

    def least(self, state: State) -> State:
        """Returns the least of the states that differ from a state only in which node is which."""
        least_nodes = self._least.get(state.nodes)
        if least_nodes is None:
            if len(self._least) >= _MOST_KEPT:
                self._least.clear()
            least_nodes = self._least[state.nodes] = self._least_nodes(state.nodes)
        nodes, swaps = least_nodes
        if not swaps:
            return state
        if self._parted < len(self._nodes.messages):
            self._part_new()
        parts = [state.bag & part for part in self._parts.values()]
        others = state.bag & self._others
        least, best = (state.bag, None) if nodes == state.nodes else (-1, None)
        for swap in swaps:
            bag = others
            for part in parts:
                bag |= self._bag(swap, part)
            if least < 0 or bag < least:
                least, best = bag, swap
        if best is None:
            return state
        duty = best.places[state.duty] if state.duty >= 0 else state.duty
        return state._replace(nodes=nodes, bag=least, duty=duty, owed=self._bag(best, state.owed))

    def _least_nodes(self, nodes: tuple[int, ...]) -> tuple[tuple[int, ...], list[_Swap]]:
        """Returns the least states of all nodes, and the permutations that lead to them."""
        least, swaps = nodes, list[_Swap]()
        for swap in self._swaps:
            moved = list(nodes)
            for index in self.alike:
                moved[swap.places[index]] = nodes[index]
            mapped = tuple([swap.states[node] for node in moved])
            if mapped < least:
                least, swaps = mapped, [swap]
            elif mapped == least:
                swaps.append(swap)
        return least, swaps

    def _part_new(self) -> None:
        nodes = self._nodes
        while self._parted < len(nodes.messages):
            source, target = nodes.names.index(nodes.messages[self._parted].source), nodes.targets[self._parted]
            mask = COPY_MASK << self._parted * COPIES
            if source in self._parts or target in self._parts:
                self._parts[source if source in self._parts else target] |= mask
            else:
                self._others |= mask
            self._parted += 1

    def _bag(self, swap: _Swap, bag: int) -> int:
        mapped = swap.bags.get(bag)
        if mapped is None:
            mapped = 0
            for message in messages_in(bag):
                copies = bag >> message * COPIES & COPY_MASK
                mapped |= copies << self._message(swap, message) * COPIES
            swap.bags[bag] = mapped
        return mapped

    def _message(self, swap: _Swap, message: int) -> int:
        mapped = swap.messages.get(message)
        if mapped is None:
            own, names = self._nodes.messages[message], self._nodes.names
            source, target = (names[swap.places[names.index(name)]] for name in (own.source, own.target))
            mapped = swap.messages[message] = self._nodes.number_of(own._replace(source=source, target=target))
        return mapped
