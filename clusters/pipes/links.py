"""Links with a given latency, for tests that name one."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from clusters.sim.links import Links

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_NS: Final = 10_000


class LatencyDist(enum.StrEnum):
    """How the latency of a message varies around its mean."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


class GivenLinks(Links):
    """Links that all have the same mean latency. Messages to and from clients, and probes, take as long as on other links.

    No message takes less than `LEAST_NS`. Otherwise programs that answer each other would stop the virtual time.
    """

    def __init__(self, seed: int, names: Sequence[str], *, mean_ns: int, dist: LatencyDist) -> None:
        """Makes the links.

        Args:
            seed: The run's root seed.
            names: The names of the nodes.
            mean_ns: The mean latency.
            dist: How it varies: not at all, evenly from 0 to twice the mean, or exponentially.
        """
        super().__init__(seed, names)
        self._given_ns = mean_ns
        self._dist = dist

    def delay_ns(self, source: str, target: str) -> int:  # noqa: ARG002 - all links are alike
        """Draws the latency of a message between two nodes, or a node and a service."""
        if self._dist is LatencyDist.CONSTANT:
            return max(LEAST_NS, self._given_ns)
        draw = self._packets.random()
        if self._dist is LatencyDist.UNIFORM:
            return max(LEAST_NS, int(2 * self._given_ns * draw))
        return max(LEAST_NS, int(self._packets.expovariate(1.0) * self._given_ns))
