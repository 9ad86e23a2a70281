"""The rules by which a search leaves out events and states; `search` says why none of them hides a violation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.sim.explore.late import Late
from clusters.sim.explore.nodes import DEAD, Kind
from clusters.sim.explore.state import COPIES
from clusters.sim.explore.symmetry import Symmetry
from harness.op import Fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from clusters.sim.explore.history import History
    from clusters.sim.explore.moves import Move
    from clusters.sim.explore.nodes import Event, Nodes, Step
    from clusters.sim.explore.state import State
    from harness.op import Outcome


class NoReactorError(Exception):
    """A node that was taken for a reactor sends a message to another one."""

    def __init__(self, index: int) -> None:
        self.place = index


class Rules:
    """What a search knows that lets it leave out events and states.

    Attributes:
        reactors: The places of the nodes that are taken for reactors.
        alike: The places of the nodes that are taken for alike.
    """

    def __init__(
        self,
        nodes: Nodes,
        alike: Sequence[int],
        outcome: Callable[[int, Any], Outcome],
        matters: Callable[[int], bool],
    ) -> None:
        """Takes every node for a reactor; see `clusters.sim.explore.search.Search`."""
        self.reactors = frozenset(range(len(nodes.names)))
        self.alike = tuple(alike)
        self._nodes = nodes
        self._outcome = outcome
        self._matters = matters
        self._late = Late(nodes)
        self._symmetry: Symmetry | None = None

    @property
    def are_right(self) -> bool:
        """Returns whether no message was left out that can have an effect."""
        return not self._late.is_wrong

    def begin(self) -> None:
        """Begins anew, with what is known."""
        self._late.is_wrong = False
        self._symmetry = Symmetry(self._nodes, self.alike) if self.alike else None

    def learn(self, state: int, event: Event, step: Step) -> None:
        """Learns what a node does at an event.

        Raises:
            NotAlikeError: Nodes that are taken for alike are not.
        """
        self._late.learn(state, step.state)
        if self._symmetry is not None:
            for own, other in self._symmetry.learn(state, event, step):
                self._late.learn(own, other)

    def is_idle(self, state: int, step: Step) -> bool:
        """Returns whether a step has no effect: nothing changes, and no client gets a result."""
        return (
            step.state == state
            and not step.sent
            and all(isinstance(self._outcome(number, answer), Fail) for number, answer in step.replies)
        )

    def check(self, history: History) -> None:
        """Checks that no client has asked one of the nodes that are alike.

        Raises:
            NotAlikeError: One has.
        """
        if self._symmetry is not None:
            self._symmetry.check(history)

    def leave_out(self, state: State, index: int, event: Event, move: Move) -> bool:
        """Returns whether an event can be left out.

        It has no effect, or it commutes with the last event, or it has to wait for an event of a reactor.
        """
        if move.is_idle or (state.duty >= 0 and not self._is_due(state, index, event, silent=move.is_silent)):
            return True
        if not (state.free and move.is_silent and index < state.place) or index in self.reactors:
            return False
        return event.kind is not Kind.MESSAGE or bool(state.bag_before >> event.number * COPIES & 1)

    def first(self, state: State) -> State:
        """Returns a state without late messages."""
        return state._replace(bag=self._late.without(state.nodes, state.bag, range(len(state.nodes))))

    def after(self, before: State, next_state: State, move: Move) -> State:
        """Returns the state after a move without what cannot matter, and with what may follow.

        Raises:
            NoReactorError: A reactor sends a message to another one.
        """
        index, bag = next_state.place, next_state.bag
        if index in self.reactors and any(target != index and target in self.reactors for target in move.touched):
            raise NoReactorError(index)
        if move.step.state != DEAD:
            bag = self._late.without(next_state.nodes, bag, move.touched)
        if move.is_silent and index in self.reactors:
            ends = before.ends or before.duty not in (-1, index)
            owed = 0 if ends else move.sent & bag
            return next_state._replace(bag=bag, duty=index, owed=owed, ends=ends)
        return next_state._replace(bag=bag, free=move.is_silent and before.duty < 0)

    def least(self, state: State) -> State:
        """Returns the state that stands for all that differ only in which node is which."""
        return state if self._symmetry is None else self._symmetry.least(state)

    def _is_due(self, state: State, index: int, event: Event, *, silent: bool) -> bool:
        """Returns whether an event may follow an event of a reactor."""
        if index == state.duty:
            return silent or not state.ends
        if state.ends:
            return False
        if event.kind is Kind.MESSAGE and state.owed >> event.number * COPIES & 1:
            return True
        # With symmetry, the state with the other order may stand for one that was left out, so both orders are visited.
        is_next = index > state.duty or self._symmetry is not None
        return silent and is_next and index in self.reactors and self._matters(state.nodes[state.duty])
