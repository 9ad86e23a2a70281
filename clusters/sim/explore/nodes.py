"""The states of single nodes in a search, and the events that lead from one to the next.

An event concerns one node: a message arrives, its next timer fires, it restarts, or a client's request arrives. What the node
does depends on its own state alone. So this module carries out each event in each state of a node once, whatever the other
nodes do, and remembers the result. A state is kept as the events that led to it; to continue from there, the node repeats them.

Source of the idea: R. Guerraoui and M. Yabandeh, "Model checking a networked system without the network" (NSDI 2011). Unlike
theirs, this search never makes a message that no order of events can send.
"""

from __future__ import annotations

import enum
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clusters.sim.disk import SimDisk
from clusters.sim.explore.form import digest
from clusters.sim.explore.host import SearchHost
from clusters.sim.host import Reply, Request
from harness.console.documents import shown
from harness.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clusters.sim.host import Factory, Process

DEAD: Final = -1


class Kind(enum.StrEnum):
    """The kind of an event."""

    MESSAGE = "message"
    TIMER = "timer"
    RESTART = "restart"
    POWER_LOSS = "power-loss"
    REQUEST = "request"


class Event(NamedTuple):
    """An event of one node.

    Attributes:
        kind: Its kind.
        number: The number of the message, or of the client's operation; otherwise 0.
        at_ns: The time on the clock of all nodes, if they have one (`Nodes.timed`); otherwise 0.
    """

    kind: Kind
    number: int = 0
    at_ns: int = 0


class Message(NamedTuple):
    """A message between nodes.

    Attributes:
        source: The node that sends it.
        target: The node that receives it.
        body: The message.
    """

    source: str
    target: str
    body: Any


@dataclass(frozen=True, slots=True)
class Step:
    """What a node does at an event.

    Attributes:
        state: The number of its state afterwards; `DEAD` if an exception ended its process.
        sent: The numbers of the messages that it sends, in order.
        replies: The operations that it answers, each with the answer.
        lines: The lines that it logs; for a dead process, the traceback.
    """

    state: int
    sent: tuple[int, ...]
    replies: tuple[tuple[int, Any], ...]
    lines: tuple[str, ...]


@dataclass(slots=True)
class Live:
    """A node that has carried out the events of a state."""

    host: SearchHost
    disk: SimDisk
    process: Process


class Nodes:
    """All states of all nodes that a search has met.

    Attributes:
        names: The nodes, in order.
        messages: All messages that any node has sent, by number. Equal messages have one number.
        targets: The place of the receiver, by message.
        arrivals: The event of its arrival, by message.
        requests: The body of the request of each operation.
        first: The state of each node after its start.
    """

    def __init__(self, names: Sequence[str], factory: Callable[[str], Factory], requests: Sequence[Any]) -> None:
        """Makes the nodes.

        Args:
            names: Their names.
            factory: Returns the function that makes the process of a node.
            requests: The body of the request of each operation.
        """
        self.names = tuple(names)
        self.messages: list[Message] = []
        self.targets: list[int] = []
        self.arrivals: list[Event] = []
        self.first: tuple[int, ...] = ()
        self._factory = factory
        self.requests = tuple(requests)
        self._message_numbers: dict[tuple[str, str, bytes], int] = {}
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._paths: list[tuple[int, int, Event | None]] = []  # of each state: node, the state before, the event
        self._due_ns: list[int | None] = []
        self._known: dict[tuple[int, Event], Step] = {}

    def begin(self, look: Callable[[int, Live], None]) -> tuple[tuple[int, ...], list[Step]]:
        """Starts all nodes.

        Args:
            look: Is called with each new state and its node, also later. It must change nothing.

        Returns:
            The state of each node, and the steps of their starts.
        """
        self._look = look
        steps = []
        for index in range(len(self.names)):
            live = self._started(index, SimDisk(self.names[index]), 0)
            steps.append(self._kept(index, live, DEAD, None))
        self.first = tuple(step.state for step in steps)
        return self.first, steps

    @property
    def count(self) -> int:
        """Returns the number of states."""
        return len(self._paths)

    def has_timer(self, state: int) -> bool:
        """Returns whether a timer of a node in this state can fire."""
        return self._due_ns[state] is not None

    def timed(self, states: Sequence[int], now_ns: int, index: int, event: Event) -> Event | None:
        """Returns an event of a node with its time, if all nodes have one clock: only timers let time pass.

        Args:
            states: The states of all nodes.
            now_ns: The time on the clock.
            index: The place of the node.
            event: The event.

        Returns:
            The event; None if it is a timer, and another timer is due earlier.
        """
        if event.kind is not Kind.TIMER:
            return event._replace(at_ns=now_ns)
        due_ns = [due for state in states if (due := self._due_ns[state]) is not None]
        own_ns = self._due_ns[states[index]]
        return event._replace(at_ns=max(now_ns, own_ns)) if own_ns is not None and own_ns == min(due_ns) else None

    def step(self, state: int, event: Event) -> Step:
        """Returns what a node in a state does at an event."""
        step = self._known.get((state, event))
        if step is None:
            step = self._known[state, event] = self._carried_out(state, event)
        return step

    def _carried_out(self, state: int, event: Event) -> Step:
        index = self._paths[state][0]
        live = self._repeated(state)
        live.host.take()
        try:
            live = self._apply(index, live, event)
        except Exception as error:  # noqa: BLE001 - any exception ends a process, as in `clusters.sim.machine`
            lines = (*live.host.take()[1], f"{type(error).__name__}: {error}", *traceback.format_exc().splitlines())
            return Step(DEAD, (), (), lines)
        return self._kept(index, live, state, event)

    def _repeated(self, state: int) -> Live:
        """Returns a node that has carried out the events that led to a state."""
        events: list[Event] = []
        index, at = self._paths[state][0], state
        while True:
            _, before, event = self._paths[at]
            if event is None:
                break
            events.append(event)
            at = before
        live = self._started(index, SimDisk(self.names[index]), 0)
        for event in reversed(events):
            live = self._apply(index, live, event)
        return live

    def _apply(self, index: int, live: Live, event: Event) -> Live:
        live.host.now_ns = max(live.host.now_ns, event.at_ns)
        match event.kind:
            case Kind.MESSAGE:
                message = self.messages[event.number]
                live.process.receive(message.source, message.body)
            case Kind.REQUEST:
                live.process.receive(client_of(event.number), Request(event.number, self.requests[event.number]))
            case Kind.TIMER:
                live.host.fire()
            case Kind.RESTART | Kind.POWER_LOSS:
                if event.kind is Kind.POWER_LOSS:
                    live.disk.lose_power()
                return self._started(index, live.disk, live.host.now_ns)
        return live

    def _started(self, index: int, disk: SimDisk, now_ns: int) -> Live:
        name = self.names[index]
        host = SearchHost(name, self.names, disk, now_ns)
        process = self._factory(name)(host)
        process.start()
        return Live(host, disk, process)

    def _kept(self, index: int, live: Live, before: int, event: Event | None) -> Step:
        """Returns the step to the state that a node has now."""
        sent, lines = live.host.take()
        timers = live.host.pending()
        known = {id(live.host): "host", **{id(timer): f"timer {number}" for number, timer in enumerate(timers)}}
        waits = [(timer.due_ns, timer.action) for timer in timers]
        form = digest((live.process, waits, live.disk, live.host.now_ns), known)
        number = self._numbers.setdefault((index, form), len(self._paths))
        if number == len(self._paths):
            self._paths.append((index, before, event))
            self._due_ns.append(timers[0].due_ns if timers else None)
            self._look(number, live)
        messages, replies = [], []
        for to, body in sent:
            if isinstance(body, Reply):
                replies.append((body.id, body.body))
            else:
                messages.append(self.number_of(Message(self.names[index], to, body)))
        return Step(number, tuple(messages), tuple(replies), tuple(lines))

    def number_of(self, message: Message) -> int:
        """Returns the number of a message. Equal messages have one number."""
        key = (message.source, message.target, digest(message.body, {}))
        number = self._message_numbers.setdefault(key, len(self.messages))
        if number == len(self.messages):
            if message.target not in self.names:
                raise PluginError(
                    f"expected a message to a node, or a Reply; {message.source} sent {shown(repr(message.body))} to "
                    f"{shown(message.target)}; correct the system"
                )
            self.messages.append(message)
            self.targets.append(self.names.index(message.target))
            self.arrivals.append(Event(Kind.MESSAGE, number))
        return number


def client_of(operation: int) -> str:
    """Returns the name of the client that carries out an operation."""
    return f"client-{operation}"
