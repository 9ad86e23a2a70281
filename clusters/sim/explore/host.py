"""The machine that a process sees in a search: its clock moves only with its timers, and its random numbers are all 0.

The clocks of two nodes are independent: a node may be slow or fast by any factor. A search therefore visits every schedule of
timers, whatever their lengths, as long as the timers of one node fire in the order in which they are due.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from clusters.sim.machine import EPOCH_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.disk import SimDisk
    from clusters.sim.host import Disk


class LeastRandom(Random):
    """Random numbers that are all the least possible. A search visits all orders, so it needs no chance."""

    def random(self) -> float:
        """Returns 0."""
        return 0.0

    def getrandbits(self, k: int, /) -> int:  # noqa: ARG002 - the same for any number of bits
        """Returns 0."""
        return 0


class SearchTimer:
    """A timer of a process in a search.

    Attributes:
        due_ns: When it is due, on the node's clock.
        number: Its place among the timers of the process, in the order in which they were set.
        action: Called when it fires; None if it has fired or was cancelled.
    """

    __slots__ = ("action", "due_ns", "number")

    def __init__(self, due_ns: int, number: int, action: Callable[[], None]) -> None:
        self.due_ns = due_ns
        self.number = number
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Stops the timer, so that it never fires. All timers that never fire again look the same."""
        self.action, self.due_ns, self.number = None, 0, 0


class SearchHost:
    """The machine of one process in a search; see `clusters.sim.host.Host`.

    Attributes:
        now_ns: The node's clock.
        sent: The messages and replies that the process has sent since `take`: the receiver and the message.
        lines: The lines that it has logged since `take`.
    """

    def __init__(self, name: str, peers: tuple[str, ...], disk: SimDisk, now_ns: int) -> None:
        self.name = name
        self.peers = peers
        self.random: Random = LeastRandom()
        self.disk: Disk = disk
        self.now_ns = now_ns
        self.sent: list[tuple[str, Any]] = []
        self.lines: list[str] = []
        self._timers: list[SearchTimer] = []
        self._set = 0

    def wall_ns(self) -> int:
        """Returns the node's clock, from the beginning of the simulator's time."""
        return EPOCH_NS + self.now_ns

    def monotonic_ns(self) -> int:
        """Returns the node's clock."""
        return self.now_ns

    def after(self, delay_ns: int, action: Callable[[], None]) -> SearchTimer:
        """Calls `action` once after a delay."""
        self._set += 1
        timer = SearchTimer(self.now_ns + max(0, delay_ns), self._set, action)
        self._timers.append(timer)
        return timer

    def send(self, to: str, message: Any) -> None:
        """Sends a message to a node, or a reply to a client."""
        self.sent.append((to, message))

    def log(self, text: str) -> None:
        """Keeps a line of the node's log."""
        self.lines.append(text)

    def pending(self) -> list[SearchTimer]:
        """Returns the timers that will fire, the next one first."""
        self._timers = sorted(
            (timer for timer in self._timers if timer.action), key=lambda timer: (timer.due_ns, timer.number)
        )
        return self._timers

    def fire(self) -> None:
        """Advances the clock to the next timer, and calls its action."""
        timer = self.pending()[0]
        action = timer.action
        self.now_ns = max(self.now_ns, timer.due_ns)
        timer.cancel()
        assert action is not None  # noqa: S101 - by `pending`
        action()

    def take(self) -> tuple[list[tuple[str, Any]], list[str]]:
        """Returns what the process has sent and logged, and forgets it."""
        taken = self.sent, self.lines
        self.sent, self.lines = [], []
        return taken
