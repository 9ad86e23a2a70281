"""The search: all states of a simulated cluster within bounds, the nearest first.

A state of the cluster is the state of each node, the messages under way, the operations of the clients so far, and what is used
of the bounds. Messages arrive in any order, or never. So a lost message needs no event of its own.

Six reductions leave out states and events without leaving out a violation (`rules`); without `Bounds.reduced`, there are none.

- **No effect.** A message that changes nothing in its receiver and causes no message is like a message that never arrives.
- **Too late.** A message that has no effect from now on is left out of the messages under way (`late`).
- **Dominance.** A state is left out if a visited state has the same nodes and the same operations, at least the same messages
  under way, and at most the same use of the bounds. Whatever can follow the one can follow the other.
- **Order.** Events of different nodes that do not concern clients commute. If such an event was possible before the last event,
  and its node comes first, the other order was visited, and leads to the same state. This is a sleep set of the last event
  (P. Godefroid, "Partial-order methods for the verification of concurrent systems", LNCS 1032, 1996). It stays exact beside
  visited states because the search visits states by their number of events. Several visited states may lead to one state. Of
  these, the one whose event concerns the last node is never left out.
- **On demand.** A reactor is a node that sends no message to another reactor, such as a server that only answers. Whatever
  happens in it shows only when another node gets one of its messages, a client its answer, or in its own state. So the events
  of a reactor wait until they are needed, and then follow each other at once: after a silent event of a reactor, either it has
  another event, or a message of this event arrives. All other orders of events differ from such a one only in events that
  commute, or that nobody learns of. What is wrong between two reactors shows after the last events of one, then of the other.
  The search takes every node for a reactor, and begins anew without a node that sends a message to another one.
- **Symmetry.** States that differ only in which of some nodes is which are visited once (`symmetry`).
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

from clusters.sim.explore.found import Explored, Happened, Used, Violation
from clusters.sim.explore.history import Histories, operations
from clusters.sim.explore.moves import Move
from clusters.sim.explore.nodes import DEAD, Event, Kind
from clusters.sim.explore.opening import Opening
from clusters.sim.explore.orders import Orders
from clusters.sim.explore.rules import NoReactorError, Rules
from clusters.sim.explore.state import COPIES, COPY_MASK, State, messages_in, with_one, without
from clusters.sim.explore.symmetry import NotAlikeError
from clusters.sim.explore.trail import Trail
from clusters.sim.explore.visited import Visited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from clusters.sim.explore.found import Bounds
    from clusters.sim.explore.history import Asked
    from clusters.sim.explore.nodes import Nodes, Step
    from harness.op import Operation, Outcome

_TOLD_EVERY_S: Final = 5.0


class Search:
    """A search that has not begun."""

    def __init__(
        self,
        nodes: Nodes,
        asked: Sequence[Asked],
        *,
        bounds: Bounds,
        outcome: Callable[[int, Any], Outcome],
        judge: Callable[[Sequence[Operation]], str | None],
        conflict: Callable[[int, int], str | None],
        matters: Callable[[int], bool],
        alike: Sequence[int] = (),
        after: str = "",
    ) -> None:
        """Makes a search.

        Args:
            nodes: The nodes.
            asked: The operations that clients may invoke, each once, at any time, at any node.
            bounds: The bounds.
            outcome: Returns the outcome of an operation from its answer.
            judge: Returns what is wrong with a history; None if nothing is.
            conflict: Returns what is wrong if two nodes are in two states at the same time; None if nothing is.
                The order of the two does not matter.
            matters: Returns whether anything can be wrong between a node in this state and another node.
            alike: The places of nodes that the system calls alike.
            after: The events before the search, in the form of `opening`.
        """
        self._nodes = nodes
        self._asked = asked
        self._bounds = bounds
        self._conflict = conflict
        self._rules = Rules(nodes, alike, outcome, matters) if bounds.reduced and not bounds.one_clock else None
        self._after_events = after
        self._histories = Histories(asked, outcome, judge)
        self._conflicts: dict[tuple[int, int], str | None] = {}
        self._forget()

    def _forget(self) -> None:
        """Begins anew; what is known of nodes and histories stays."""
        self._visited = Visited(dominance=self._rules is not None)
        self._trail = Trail()
        self._orders = Orders()
        self._moves: dict[tuple[int, Event], Move] = {}
        self._events = 0
        self._lost_copies = False

    def run(
        self,
        look: Callable[[int, Any], None],
        tell: Callable[[int, int, int], None],
        anew: Callable[[str], object],
    ) -> Explored:
        """Visits all states within the bounds, or those up to a violation.

        Args:
            look: See `Nodes.begin`.
            tell: Is called about every five seconds with the numbers of states, events, and events from the beginning.
            anew: Is called with the reason when the search begins anew after more than five seconds.
        """
        began_s = time.monotonic()
        gc.disable()  # millions of states without circles: looking for circles takes a fifth of the time
        try:
            return self._run(look, tell, anew, began_s)
        finally:
            gc.enable()

    def _run(
        self,
        look: Callable[[int, Any], None],
        tell: Callable[[int, int, int], None],
        anew: Callable[[str], object],
        began_s: float,
    ) -> Explored:
        states, steps = self._nodes.begin(look)
        rules = self._rules
        while rules is not None:
            pass_began_s = time.monotonic()
            try:
                rules.begin()
                explored = self._visit(states, steps, began_s, tell)
                if explored.left or rules.are_right:
                    return explored
                reason = "a message that was left out can have an effect"
            except NoReactorError as error:
                rules.reactors -= {error.place}
                reason = (
                    f"{self._nodes.names[error.place]} sends a message to another node that was taken for a reactor"
                )
            except NotAlikeError:
                rules.alike = ()
                reason = "nodes that the system calls alike are not"
            if time.monotonic() - pass_began_s > _TOLD_EVERY_S:
                anew(reason)
            self._forget()
        return self._visit(states, steps, began_s, tell)

    def _visit(
        self, states: tuple[int, ...], steps: Sequence[Step], began_s: float, tell: Callable[[int, int, int], None]
    ) -> Explored:
        """Visits the states by the rules so far.

        Raises:
            NoReactorError: A node that is taken for a reactor is none.
            NotAlikeError: Nodes that are taken for alike are not.
        """
        told_s = time.monotonic()
        bag = 0
        for step in steps:
            bag = self._with_sent(bag, step)
        first = State(
            nodes=states, history=self._histories.first, bag=bag, used=Used(), place=-1, free=False,
            bag_before=0, number=0,
        )  # fmt: skip
        first, wrong = self._opened(first, steps)
        if self._rules is not None and wrong is None:
            first = self._rules.first(first)
        self._visited.known(first if self._rules is None else self._rules.least(first), first.number)
        layer, depth, left = [first], 0, ""
        violation = self._found(first, wrong)
        while layer and violation is None and not left:
            following: list[State] = []
            for state in layer:
                for next_state, wrong in self._after(state):
                    following.append(next_state)
                    if wrong is not None:
                        violation = self._found(next_state, wrong)
                        break
                now_s = time.monotonic()
                if now_s - told_s >= _TOLD_EVERY_S:
                    told_s = now_s
                    tell(len(self._trail), self._events, depth + 1)
                left = self._given_up(now_s - began_s)
                if violation is not None or left:
                    break
            if following:
                depth += 1
            layer = following
        left = "" if violation is not None else left or self._lost
        whole = violation is None and not left
        return Explored(
            states=len(self._trail),
            orders=self._orders.count(len(self._trail), first.number) if whole else None,
            alike=len(self._rules.alike) if self._rules is not None else 0,
            events=self._events,
            depth=depth,
            node_states=self._nodes.count,
            messages=len(self._nodes.messages),
            histories=len(self._histories.seen),
            seconds=time.monotonic() - began_s,
            left=left,
            violation=violation,
        )

    def _opened(self, state: State, steps: Sequence[Step]) -> tuple[State, str | None]:
        """Returns the state after the opening, or the first one in which something is wrong."""
        opening = Opening(self._nodes, steps, one_clock=self._bounds.one_clock)
        opening.carry_out(self._after_events)
        wrong = self._between(state.nodes)
        for index, event in opening.events if wrong is None else ():
            before = state
            state, wrong = self._next(before, index, event, self._move(before.nodes[index], index, event), before.used)
            number = self._trail.add(before.number, index, event)
            state = state._replace(number=number, place=-1, free=False, duty=-1, owed=0, ends=False)
            if wrong is not None:
                return state, wrong
        return state._replace(bag=opening.bag), wrong

    @property
    def _lost(self) -> str:
        return f"it kept only {COPIES} copies of a message that was under way more often" if self._lost_copies else ""

    def _given_up(self, seconds: float) -> str:
        bounds = self._bounds
        if len(self._trail) >= bounds.states:
            return f"it gave up after {len(self._trail):,} states"
        return f"it gave up after {seconds:.0f} s" if seconds >= bounds.seconds else ""

    def _after(self, state: State) -> Iterator[tuple[State, str | None]]:
        """Yields each new state that follows, with what is wrong with it."""
        rules, moves, nodes = self._rules, self._moves, state.nodes
        for index, event, spent in self._timed(state) if self._bounds.one_clock else self._possible(state):
            move = moves.get((nodes[index], event)) or self._move(nodes[index], index, event)
            if rules is not None and rules.leave_out(state, index, event, move):
                continue
            self._events += 1
            next_state, wrong = self._next(state, index, event, move, spent)
            if wrong is None:
                known = self._known(next_state)
                self._orders.add(state.number, len(self._trail) if known is None else known)
                if known is not None:
                    continue
            yield next_state._replace(number=self._trail.add(state.number, index, event)), wrong

    def _move(self, state: int, index: int, event: Event) -> Move:
        """Returns what a node in a state does at an event, and remembers it."""
        step = self._nodes.step(state, event)
        if self._rules is not None:
            self._rules.learn(state, event, step)
        move = self._moves[state, event] = Move(
            step=step,
            is_silent=event.kind is not Kind.REQUEST and not step.replies,
            is_idle=self._rules is not None and self._rules.is_idle(state, step),
            sent=sum(1 << message * COPIES for message in set(step.sent)),
            touched=tuple({index, *(self._nodes.targets[message] for message in step.sent)}),
        )
        return move

    def _possible(self, state: State) -> Iterator[tuple[int, Event, Used]]:
        """Yields the events that can happen, each with its node and what is used of the bounds afterwards."""
        bounds, used, nodes = self._bounds, state.used, self._nodes
        for message in messages_in(state.bag):
            yield nodes.targets[message], nodes.arrivals[message], used
            if used.duplicates < bounds.duplicates:
                yield nodes.targets[message], nodes.arrivals[message], used._replace(duplicates=used.duplicates + 1)
        for index, own in enumerate(state.nodes):
            if used.timers < bounds.timers and nodes.has_timer(own):
                yield index, Event(Kind.TIMER), used._replace(timers=used.timers + 1)
            if used.restarts < bounds.restarts:
                yield index, Event(Kind.RESTART), used._replace(restarts=used.restarts + 1)
            if used.power_losses < bounds.power_losses:
                yield index, Event(Kind.POWER_LOSS), used._replace(power_losses=used.power_losses + 1)
            for number, seen in enumerate(self._histories.seen[state.history]):
                if seen is None and self._may_be_asked(state.history, number):
                    yield index, Event(Kind.REQUEST, number), used

    def _timed(self, state: State) -> Iterator[tuple[int, Event, Used]]:
        """Yields the events that can happen if all nodes have one clock."""
        for index, event, spent in self._possible(state):
            timed = self._nodes.timed(state.nodes, state.now_ns, index, event)
            if timed is not None:
                yield index, timed, spent

    def _may_be_asked(self, history: int, number: int) -> bool:
        equal = self._asked[number].equals
        return equal is None or self._histories.seen[history][equal] is not None

    def _next(self, state: State, index: int, event: Event, move: Move, spent: Used) -> tuple[State, str | None]:
        bag, step = state.bag, move.step
        if event.kind is Kind.MESSAGE and spent.duplicates == state.used.duplicates:
            bag = without(bag, event.number)
        if step.sent:
            bag = self._with_sent(bag, step)
        nodes = (*state.nodes[:index], step.state, *state.nodes[index + 1 :])
        history = state.history if move.is_silent else self._continued(state.history, index, event, step)
        next_state = State(
            nodes, history, bag, spent, index, free=False, bag_before=state.bag, number=-1, now_ns=event.at_ns
        )
        if self._rules is not None:
            next_state = self._rules.after(state, next_state, move)
        if step.state == DEAD:
            return next_state, f"the process of {self._nodes.names[index]} dies: {step.lines[0] if step.lines else ''}"
        wrong = self._histories.wrong[history] if history != state.history else None
        return next_state, wrong or (self._between(nodes, index) if step.state != state.nodes[index] else None)

    def _continued(self, history: int, index: int, event: Event, step: Step) -> int:
        """Returns the number of a history after a request or answers."""
        asked = event.number if event.kind is Kind.REQUEST else None
        number = self._histories.continued(history, self._nodes.names[index], asked, step.replies)
        if self._rules is not None:
            self._rules.check(self._histories.seen[number])
        return number

    def _between(self, nodes: tuple[int, ...], index: int | None = None) -> str | None:
        """Returns what is wrong between two nodes, one of which is at `index`, if it is given."""
        for first in range(len(nodes)) if index is None else (index,):
            for second, other in enumerate(nodes):
                if second == first:
                    continue
                pair = (nodes[first], other)
                if pair not in self._conflicts:
                    self._conflicts[pair] = self._conflict(*pair)
                if self._conflicts[pair] is not None:
                    return self._conflicts[pair]
        return None

    def _with_sent(self, bag: int, step: Step) -> int:
        """Returns the messages under way with those that a step sends."""
        for message in step.sent:
            self._lost_copies |= bag >> message * COPIES & COPY_MASK == COPY_MASK
            bag = with_one(bag, message)
        return bag

    def _known(self, state: State) -> int | None:
        """Returns what makes a state needless: `Visited.known`."""
        return self._visited.known(state if self._rules is None else self._rules.least(state), len(self._trail))

    def _found(self, state: State, wrong: str | None) -> Violation | None:
        """Returns the violation in a state, with the events that lead to it."""
        if wrong is None:
            return None
        now, happened, now_ns = list(self._nodes.first), [], 0
        for index, recorded in self._trail.events(state.number):
            event = (self._bounds.one_clock and self._nodes.timed(now, now_ns, index, recorded)) or recorded
            now_ns = event.at_ns
            step = self._nodes.step(now[index], event)
            happened.append(Happened(self._nodes.names[index], event, step))
            now[index] = step.state
        return Violation(
            reason=wrong, events=happened, operations=operations(self._histories.seen[state.history], self._asked)
        )
