"""Waits for the n-th message between nodes of a sort, so that a fault can begin with it.

From this message on, the network holds all messages between nodes for `HELD_NS`, as after a rare one: the fault is on before a
node can react to it. The message itself goes on.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusters.sim.rarity import HELD_NS
from harness.world import PassedMessage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from harness.world import Pair


@dataclass(slots=True)
class _Wait:
    """Somebody who waits. `left` is the number of messages that are still to come."""

    links: AbstractSet[Pair]
    left: int
    has: bytes


class AwaitedMessages:
    """The waits of one run.

    Attributes:
        waiting: Those that go on. Without one, and when no message is held, nobody need ask `held_ns`.
    """

    def __init__(self, fulfil: Callable[[asyncio.Future[PassedMessage], PassedMessage], None]) -> None:
        """Makes it. `fulfil` gives a future its result, and wakes the loop."""
        self.waiting: dict[asyncio.Future[PassedMessage], _Wait] = {}
        self._fulfil = fulfil
        self._held_until_ns = 0

    @contextlib.contextmanager
    def waited_for(
        self, links: AbstractSet[Pair], nth: int, has: bytes, future: asyncio.Future[PassedMessage]
    ) -> Iterator[None]:
        """Gives a future the n-th message from now."""
        self.waiting[future] = _Wait(links, nth, has)
        try:
            yield
        finally:
            del self.waiting[future]

    def held_ns(self, now_ns: int, source: str, target: str, message: Any) -> int:
        """Takes note of a message between nodes, and returns for how long the network holds it."""
        held_ns = max(0, self._held_until_ns - now_ns)
        if not self.waiting:
            return held_ns
        content = message if isinstance(message, bytes) else repr(message).encode()
        for future, wait in self.waiting.items():
            if future.done() or (source, target) not in wait.links or wait.has not in content:
                continue
            wait.left -= 1
            if not wait.left:
                self._held_until_ns = now_ns + HELD_NS
                self._fulfil(future, PassedMessage(source=source, target=target, content=content))
        return held_ns
