"""The latency of packets between nodes without faults.

In half of all seeds the network is like that of one rack: all links are fast and alike. In the other seeds each node sends and
receives at its own speed, the latency of a link varies, and a few packets are very late. Many bugs of protocols need a message
that is in flight while something else happens. Slow and uneven links make this likely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.randomness import stream
from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.world import Pair

MIN_DELAY_NS: Final = 200_000
SPREAD_NS: Final = 600_000
UNEVEN_SHARE: Final = 0.5  # the share of seeds with uneven links
MAX_MEAN_MS: Final = 80.0  # the largest mean latency of a link
MEDIAN_MS: Final = (1.0, 30.0)  # the range of the median latency of a seed
FACTOR: Final = 4.0  # a node sends, or receives, at most so many times faster or slower than the median
STRAGGLERS: Final = (0.0, 0.005, 0.02)  # choices for the share of packets that are very late
STRAGGLER_MS: Final = 300.0  # the mean of their additional latency


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
            receives = {name: FACTOR ** draws.uniform(-1, 1) for name in names}
            self._mean_ns = {
                (source, target): min(MAX_MEAN_MS, median_ms * sends[source] * receives[target]) * NS_PER_MS
                for source in names
                for target in names
                if source != target
            }
            self._stragglers = draws.choice(STRAGGLERS)

    def uneven(self, source: str, target: str) -> tuple[int, float]:
        """Returns the mean further latency of a link, 0 if all are alike, and the share of packets that are very late."""
        return int(self._mean_ns.get((source, target), 0)), self._stragglers

    def near_ns(self) -> int:
        """Draws the latency of a packet to or from a client, or of a probe."""
        return MIN_DELAY_NS + int(self._random() * SPREAD_NS)

    def delay_ns(self, source: str, target: str) -> int:
        """Draws the latency of a packet between two nodes."""
        delay_ns = MIN_DELAY_NS + int(self._random() * SPREAD_NS)
        mean_ns = self._mean_ns.get((source, target))
        if mean_ns is None:
            return delay_ns
        delay_ns += int(mean_ns * (0.5 + self._packets.expovariate(2.0)))
        if self._stragglers and self._random() < self._stragglers:
            delay_ns += int(self._packets.expovariate(1 / STRAGGLER_MS) * NS_PER_MS)
        return delay_ns
