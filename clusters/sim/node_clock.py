"""The time that passes on a simulated node, whose clocks may run faster or slower than the true time."""

from __future__ import annotations

from typing import Final

TRUE_SPEED: Final = 1_000_000  # speeds are in millionths of the true one, so that times stay whole numbers


class NodeClock:
    """The clock of a node. It never runs back, and no change of its speed moves it."""

    def __init__(self) -> None:
        self._speed = TRUE_SPEED
        self._since_ns = 0
        self._passed_ns = 0

    def passed_ns(self, now_ns: int) -> int:
        """Returns how much time has passed on the node at a time of the world."""
        return self._passed_ns + (now_ns - self._since_ns) * self._speed // TRUE_SPEED

    def lead_ns(self, now_ns: int) -> int:
        """Returns how far the clock is ahead of the world."""
        return self.passed_ns(now_ns) - now_ns

    def length_ns(self, time_ns: int) -> int:
        """Returns in which time of the world a time passes on the node, at least."""
        return -(-time_ns * TRUE_SPEED // self._speed)

    def set_speed(self, now_ns: int, speed: float) -> None:
        """Lets it run at a multiple of the true speed from a time of the world on."""
        self._passed_ns, self._since_ns = self.passed_ns(now_ns), now_ns
        self._speed = round(speed * TRUE_SPEED)
