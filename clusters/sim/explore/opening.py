"""The opening of a search: events that happen before it, given as text.

A search from a state that a given order of events reaches can go further than one from the beginning. It says nothing about
orders that do not begin in this way.

- `client-0 > n1`: the request of the first operation arrives at n1.
- `n1 > n2`: the oldest message from n1 to n2 that has not arrived arrives.
- `n1 x n2`: this message is lost.
- `n1 ~ n2`: the opening passes over this message. It stays under way, and the search can deliver it.
- `lose`: all messages under way are lost, but not those that the opening has passed over.
- `settle n1,n2`: all messages between these nodes arrive, in the order in which they were sent.
- `n1 timer`, `n1 restart`, `n1 power-loss`: the next timer of n1 fires, or n1 restarts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.sim.explore.nodes import DEAD, Event, Kind
from clusters.sim.explore.state import with_one
from harness.console.documents import shown
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.explore.nodes import Nodes, Step

MOST_EVENTS: Final = 10_000
_KINDS: Final = {str(kind): kind for kind in (Kind.TIMER, Kind.RESTART, Kind.POWER_LOSS)}
_FORM: Final = "e.g. 'client-0 > n1; n1 > n2; n1 x n3; settle n1,n2; n1 timer'"


class Opening:
    """The events of an opening, found by carrying them out."""

    def __init__(self, nodes: Nodes, steps: Sequence[Step], *, one_clock: bool) -> None:
        """Begins after the start of the nodes.

        Args:
            nodes: The nodes.
            steps: The steps of their starts.
            one_clock: Whether all nodes have one clock.
        """
        self.events: list[tuple[int, Event]] = []
        self._nodes = nodes
        self._one_clock = one_clock
        self._now_ns = 0
        self._states = [step.state for step in steps]
        self._passed: list[int] = []
        self._way = [message for step in steps for message in step.sent]

    @property
    def bag(self) -> int:
        """Returns the messages under way."""
        bag = 0
        for message in (*self._passed, *self._way):
            bag = with_one(bag, message)
        return bag

    def carry_out(self, text: str) -> None:
        """Carries out events, separated by `;`.

        Raises:
            InputError: One is not possible.
        """
        for part in (piece.strip() for piece in text.split(";")):
            match part.split():
                case []:
                    continue
                case ["lose"]:
                    self._way.clear()
                case ["settle", names]:
                    self._settle({self._nodes.names[self._place(name, part)] for name in names.split(",")}, part)
                case [client, ">", name] if client.startswith("client-"):
                    self._happens(self._place(name, part), Event(Kind.REQUEST, self._operation(client, part)), part)
                case [source, ">" | "x" | "~" as fate, target]:
                    message = self._oldest(source, target, part)
                    self._way.remove(message)
                    if fate == ">":
                        self._happens(self._place(target, part), Event(Kind.MESSAGE, message), part)
                    elif fate == "~":
                        self._passed.append(message)
                case [name, kind] if kind in _KINDS:
                    self._happens(self._place(name, part), Event(_KINDS[kind]), part)
                case _:
                    raise InputError(f"--after: expected events, {_FORM}; found {shown(part)}")

    def _settle(self, names: set[str], part: str) -> None:
        while (
            message := next((candidate for candidate in self._way if self._between(candidate, names)), None)
        ) is not None:
            self._way.remove(message)
            self._happens(
                self._nodes.names.index(self._nodes.messages[message].target), Event(Kind.MESSAGE, message), part
            )

    def _between(self, message: int, names: set[str]) -> bool:
        own = self._nodes.messages[message]
        return own.source in names and own.target in names

    def _happens(self, index: int, event: Event, part: str) -> None:
        if len(self.events) >= MOST_EVENTS:
            raise InputError(f"--after: more than {MOST_EVENTS:,} events, at {shown(part)}")
        state = self._states[index]
        if event.kind is Kind.TIMER and not self._nodes.has_timer(state):
            raise InputError(f"--after: no timer waits at {shown(part)}")
        if self._one_clock:
            timed = self._nodes.timed(self._states, self._now_ns, index, event)
            if timed is None:
                raise InputError(f"--after: a timer of another node is due before {shown(part)}")
            event, self._now_ns = timed, timed.at_ns
        step = self._nodes.step(state, event)
        if step.state == DEAD:
            raise InputError(f"--after: the process of {self._nodes.names[index]} dies at {shown(part)}")
        self._states[index] = step.state
        self._way += step.sent
        self.events.append((index, event))

    def _oldest(self, source: str, target: str, part: str) -> int:
        names = self._nodes.names[self._place(source, part)], self._nodes.names[self._place(target, part)]
        for message in self._way:
            own = self._nodes.messages[message]
            if (own.source, own.target) == names:
                return message
        raise InputError(f"--after: no message is under way at {shown(part)}")

    def _place(self, name: str, part: str) -> int:
        if name not in self._nodes.names:
            raise InputError(f"--after: expected one of {', '.join(self._nodes.names)} in {shown(part)}; {_FORM}")
        return self._nodes.names.index(name)

    def _operation(self, client: str, part: str) -> int:
        number = client.removeprefix("client-")
        count = len(self._nodes.requests)
        if not (number.isascii() and number.isdigit()) or int(number) >= count:
            raise InputError(f"--after: expected client-0 to client-{count - 1} in {shown(part)}")
        if any(event[:2] == (Kind.REQUEST, int(number)) for _, event in self.events):
            raise InputError(f"--after: {client} has asked before {shown(part)}")
        return int(number)
