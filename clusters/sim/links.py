"""How long packets take from each node to each other one, as long as no fault disturbs them.

Half of all seeds have a network like that of a rack: all links are alike and fast. The others have links of their own: each
node sends and hears at a pace of its own, each packet is late by a time that varies, and a few are very late. A mistake in a
protocol often needs a message that is on its way while something else happens. Such networks make that time long enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.randomness import stream
from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.world import Pair

LEAST_DELAY_NS: Final = 200_000
SPREAD_NS: Final = 600_000
UNEVEN_SHARE: Final = 0.5  # of all seeds
SLOWEST_MS: Final = 80.0  # on average, from one node to another
MEDIAN_MS: Final = (1.0, 30.0)  # of the links of a seed
FACTOR: Final = 4.0  # by which a node sends, or hears, faster or slower than others, at most
STRAGGLERS: Final = (0.0, 0.005, 0.02)  # the part of packets that are very late
STRAGGLER_MS: Final = 300.0  # how late these are on average


class Links:
    """The links between the nodes of one run."""

    def __init__(self, seed: int, names: Sequence[str]) -> None:
        draws = stream(seed, "sim/links")
        self._packets = stream(seed, "sim/network")
        self._random = self._packets.random
        self._mean_ns: Mapping[Pair, float] = {}
        self._stragglers = 0.0
        if draws.random() < UNEVEN_SHARE:
            low, high = MEDIAN_MS
            median_ms = low * (high / low) ** draws.random()
            sends = {name: FACTOR ** draws.uniform(-1, 1) for name in names}
            hears = {name: FACTOR ** draws.uniform(-1, 1) for name in names}
            self._mean_ns = {
                (source, target): min(SLOWEST_MS, median_ms * sends[source] * hears[target]) * NS_PER_MS
                for source in names
                for target in names
                if source != target
            }
            self._stragglers = draws.choice(STRAGGLERS)

    def near_ns(self) -> int:
        """Draws the time of a packet to or from a client, or of a probe."""
        return LEAST_DELAY_NS + int(self._random() * SPREAD_NS)

    def delay_ns(self, source: str, target: str) -> int:
        """Draws the time of a packet from a node to a node."""
        delay_ns = LEAST_DELAY_NS + int(self._random() * SPREAD_NS)
        mean_ns = self._mean_ns.get((source, target))
        if mean_ns is None:
            return delay_ns
        delay_ns += int(mean_ns * (0.5 + self._packets.expovariate(2.0)))
        if self._stragglers and self._random() < self._stragglers:
            delay_ns += int(self._packets.expovariate(1 / STRAGGLER_MS) * NS_PER_MS)
        return delay_ns
