"""Finds rare messages, so that faults can begin with them.

Most messages of a protocol are heartbeats and entries. Bugs show at the others: votes, refusals, snapshots, transfers. A fault
that begins at a random time seldom meets one of them. So the world counts the messages between nodes by their shape: the type,
and which of its flags are set and which sequences are empty. A message is rare if nodes have seldom sent one of its shape.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from harness.randomness import stream
from harness.units import NS_PER_MS
from harness.world import RareMessage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

FEW: Final = 10  # the first messages of a shape are rare, and of later ones the n-th with the probability (FEW / n)^2
HELD_SHARE: Final = 0.5  # the share of rare messages that the network holds too, and not only those after them
HELD_NS: Final = 5 * NS_PER_MS  # a fault whose target is the leader asks the nodes for it, which takes up to 2 ms
TAKEN_SHARE: Final = 0.5  # the share of waiting faults that begin with a rare message; at least one of them does


class Rarity:
    """The messages between nodes by shape, and the faults that wait for a rare one.

    From a rare message with which faults begin, the network holds all messages between nodes for `HELD_NS`. So faults are on
    before a node can react to the message.

    Attributes:
        counts: Whether the world tells it of each message. Without it, no message is rare, and a run takes less time.
    """

    def __init__(self, seed: int, fulfil: Callable[[asyncio.Future[RareMessage], RareMessage], None]) -> None:
        """Makes it.

        Args:
            seed: The run's root seed.
            fulfil: Gives a future its result, and wakes the loop.
        """
        self.counts = False
        self._fulfil = fulfil
        self._held_until_ns = 0
        self._random = stream(seed, "sim/rarity").random
        self._counts: dict[tuple[Any, ...], int] = {}
        # For each type of messages, the places of its flags and sequences.
        self._flags: dict[type, tuple[int, ...]] = {}
        self._waiting: dict[asyncio.Future[RareMessage], AbstractSet[str]] = {}

    @contextlib.contextmanager
    def waited_for(self, nodes: AbstractSet[str], future: asyncio.Future[RareMessage]) -> Iterator[None]:
        """Gives a future a later rare message from or to one of these nodes: the next one, or one after it."""
        self._waiting[future] = nodes
        try:
            yield
        finally:
            self._waiting.pop(future, None)

    def held_ns(self, now_ns: int, source: str, target: str, message: Any) -> int:
        """Takes note of a message between nodes, and returns for how long the network holds it."""
        if now_ns < self._held_until_ns:
            return self._held_until_ns - now_ns
        rare = self._taken(source, target, message)
        if rare is None:
            return 0
        self._held_until_ns = now_ns + HELD_NS
        return HELD_NS if rare.held else 0

    def _taken(self, source: str, target: str, message: Any) -> RareMessage | None:
        """Counts a message, and gives it to the faults that begin with it. Returns None if there are none."""
        shape = self._shape(message)
        count = self._counts[shape] = self._counts.get(shape, 0) + 1
        if not self._waiting or (count > FEW and self._random() >= (FEW / count) ** 2):
            return None
        ends = {source, target}
        waiting = [future for future, nodes in self._waiting.items() if ends & nodes and not future.done()]
        taken = [future for future in waiting if self._random() < TAKEN_SHARE] or waiting[:1]
        if not taken:
            return None
        rare = RareMessage(kind=type(message).__name__, source=source, target=target, held=self._random() < HELD_SHARE)
        for future in taken:
            self._fulfil(future, rare)
        return rare

    def _shape(self, message: Any) -> tuple[Any, ...]:
        kind = type(message)
        places = self._flags.get(kind)
        if places is None:
            fields = message if isinstance(message, tuple) else ()
            places = tuple(index for index, value in enumerate(fields) if isinstance(value, bool | tuple))
            self._flags[kind] = places
        return (kind, *[not message[index] for index in places])
