"""A state of the cluster in a search, the messages under way, and packed events.

Messages under way are one whole number, the bag: message `m` has the bits from `COPIES * m` on, as many of them set as there
are copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from clusters.sim.explore.nodes import Event, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.sim.explore.found import Used

COPIES: Final = 4  # of one message under way at the same time; further ones are lost
COPY_MASK: Final = (1 << COPIES) - 1
_PLACES: Final = 64
_KINDS: Final = tuple(Kind)


class State(NamedTuple):
    """A state of the cluster.

    Attributes:
        nodes: The state of each node.
        history: The number of the history of the clients.
        bag: The messages under way.
        used: What is used of the bounds.
        place: The place of the last event's node; -1 at the beginning.
        free: Whether the last event commutes with events of other nodes, and they could happen before it.
        bag_before: The messages under way before the last event.
        number: The number of the state.
        duty: The place of the reactor that had the last event; -1 if the next event may concern any node.
        owed: The messages of that event, one bit for each, as in `bag`.
        ends: Whether only events of that reactor may follow, since another one's last events are over.
        now_ns: The time on the clock of all nodes, if they have one; otherwise 0.
    """

    nodes: tuple[int, ...]
    history: int
    bag: int
    used: Used
    place: int
    free: bool
    bag_before: int
    number: int
    duty: int = -1
    owed: int = 0
    ends: bool = False
    now_ns: int = 0


Rest = tuple[int, "Used", int, int, bool, int]
"""Of a state, without its nodes and history: `bag`, `used`, `duty`, `owed`, `ends`, `now_ns`."""


def dominates(one: Rest, other: Rest) -> bool:
    """Returns whether all that can follow a state can also follow another one with the same nodes and history."""
    bag, used, duty, owed, ends, now_ns = one
    other_bag, other_used, other_duty, other_owed, other_ends, other_now_ns = other
    if (
        now_ns != other_now_ns
        or other_bag & ~bag
        or (used != other_used and any(own > least for own, least in zip(used, other_used, strict=True)))
    ):
        return False
    return duty < 0 or (duty == other_duty and not other_owed & ~owed and (other_ends or not ends))


def messages_in(bag: int) -> Iterator[int]:
    """Yields the numbers of the messages under way."""
    while bag:
        message = ((bag & -bag).bit_length() - 1) // COPIES
        bag &= ~(COPY_MASK << message * COPIES)
        yield message


def with_one(bag: int, message: int) -> int:
    """Returns the messages under way with one more copy of a message, if there is room for it."""
    copies = bag >> message * COPIES & COPY_MASK
    return bag | ((copies << 1 | 1) & COPY_MASK) << message * COPIES


def without(bag: int, message: int) -> int:
    """Returns the messages under way without one copy of a message."""
    copies = bag >> message * COPIES & COPY_MASK
    return bag & ~(COPY_MASK << message * COPIES) | (copies >> 1) << message * COPIES


def rest_of(state: State) -> Rest:
    """Returns what a state has besides its nodes and history."""
    return state.bag, state.used, state.duty, state.owed, state.ends, state.now_ns


def packed(index: int, event: Event) -> int:
    """Returns an event of the node at a place as a whole number."""
    return (event.number * len(_KINDS) + _KINDS.index(event.kind)) * _PLACES + index


def unpacked(number: int) -> tuple[int, Event]:
    """Returns the place and the event of a whole number of `packed`."""
    rest, index = divmod(number, _PLACES)
    event, kind = divmod(rest, len(_KINDS))
    return index, Event(_KINDS[kind], event)
