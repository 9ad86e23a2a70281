"""What a search is given and what it finds: its bounds, and a violation with the events that lead to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.explore.nodes import Event, Step
    from harness.op import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a search.

    Attributes:
        timers: The number of timers that fire, on all nodes together.
        restarts: The number of restarts.
        power_losses: The number of restarts that lose what a disk has not synced.
        duplicates: The number of messages that arrive twice.
        states: The number of states, after which the search gives up.
        seconds: The time, after which the search gives up.
        reduced: Whether the search leaves out states and events by the reductions.
        one_clock: Whether all nodes have one clock. Then the search has no reductions, since timers commute with nothing.
    """

    timers: int
    restarts: int = 0
    power_losses: int = 0
    duplicates: int = 0
    states: int = 1_000_000
    seconds: float = 600.0
    reduced: bool = True
    one_clock: bool = False


class Happened(NamedTuple):
    """An event on the way to a violation, with what the node did.

    Attributes:
        node: The node.
        event: The event.
        step: What the node did.
    """

    node: str
    event: Event
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation, after as few events as any.

    Attributes:
        reason: What is wrong.
        events: The events that lead to it, in order.
        operations: The operations of the clients.
    """

    reason: str
    events: Sequence[Happened]
    operations: Sequence[Operation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """The result of a search.

    Attributes:
        states: The number of states visited.
        events: The number of events carried out in them.
        depth: The number of events of the longest order visited.
        orders: The number of orders visited (`orders`); None if the search did not visit everything, or if they have no end.
        node_states: The number of states of single nodes.
        messages: The number of different messages.
        histories: The number of different histories of the clients, each of which was judged.
        alike: The number of nodes that are alike, so that states which differ in their order were visited once; 0: none.
        seconds: The time it took.
        left: What the search did not visit, as a sentence; empty if it visited everything within the bounds.
        violation: The violation; None if there is none.
    """

    states: int
    events: int
    depth: int
    orders: int | None
    node_states: int
    messages: int
    histories: int
    alike: int
    seconds: float
    left: str
    violation: Violation | None


class Used(NamedTuple):
    """What is used of the bounds."""

    timers: int = 0
    restarts: int = 0
    power_losses: int = 0
    duplicates: int = 0
