"""The simulated network between the nodes: delays, cuts and disturbances.

A packet is a message from a node to a node. Without faults it arrives after a varying time (`links`), so packets overtake each
other. The network draws the effect of faults on a packet at the time of its sending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.randomness import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from clusters.sim.links import Links
    from harness.world import Disturbance, Pair


class Cut:
    """A grudge in force.

    Attributes:
        grudge: Node to the nodes whose packets it drops.
        dropped: How many packets it has dropped, by pair.
    """

    def __init__(self, grudge: Mapping[str, frozenset[str]]) -> None:
        self.grudge = grudge
        self.dropped: dict[Pair, int] = {}


class Network:
    """Carries packets between nodes.

    Attributes:
        cuts: The grudges in force, by key.
        links: The latency of packets without faults.
        disturbances: By key: the node, whether arriving packets are disturbed (or leaving ones), the nodes at the other end
            (None: all), and the disturbance.
    """

    def __init__(
        self, seed: int, links: Links, later: Callable[[int, Callable[..., None], tuple[Any, ...]], None]
    ) -> None:
        """Makes a network without faults.

        Args:
            seed: The root seed.
            links: The latency of packets without faults.
            later: Calls a function with arguments after a delay in nanoseconds.
        """
        self.links = links
        self._faults = stream(seed, "sim/network/faults")
        self._later = later
        self._quiet = True
        self.cuts: dict[int, Cut] = {}
        self.disturbances: dict[int, list[tuple[str, bool, AbstractSet[str] | None, Disturbance]]] = {}

    def send(
        self, source: str, target: str, arrive: Callable[..., None], arguments: tuple[Any, ...], *, probe: bool = False
    ) -> bool:
        """Sends a packet. Returns whether it arrives.

        Args:
            source: The node that sends it.
            target: The node that receives it.
            arrive: The function to call with the arguments when the packet arrives.
            arguments: The arguments of `arrive`.
            probe: Whether the packet measures the effect of faults. All links are fast for a probe. `arrive` gets a further
                argument `damaged`, and the network does not drop a damaged probe.
        """
        delay_ns = self.links.near_ns() if probe else self.links.delay_ns(source, target)
        if self._quiet or source == target:
            self._later(delay_ns, arrive, (*arguments, False) if probe else arguments)
            return True
        if self._is_cut(source, target):
            return False
        copies, late_ns, damaged = self._disturbed(source, target)
        if damaged and not probe:
            return False
        if probe:
            arguments = (*arguments, damaged)
        for copy in range(copies):
            again_ns = self.links.delay_ns(source, target) if copy and not probe else 0
            self._later(delay_ns + late_ns + again_ns, arrive, arguments)
        return copies > 0

    def _is_cut(self, source: str, target: str) -> bool:
        """Returns whether a grudge drops the packet, and counts the packet if so."""
        for cut in self.cuts.values():
            if source in cut.grudge.get(target, ()):
                cut.dropped[source, target] = cut.dropped.get((source, target), 0) + 1
                return True
        return False

    def _disturbed(self, source: str, target: str) -> tuple[int, int, bool]:
        """Draws the effect of disturbances on a packet: the number of copies, the delay in ns, and whether it is damaged."""
        draw = self._faults.random
        copies, late_ns, damaged = 1, 0, False
        for node, arriving, others, how in (rule for of_key in self.disturbances.values() for rule in of_key):
            here, there = (target, source) if arriving else (source, target)
            if node != here or (others is not None and there not in others):
                continue
            if how.lose and draw() < how.lose:
                copies = 0
            if how.duplicate and draw() < how.duplicate:
                copies *= 2
            if how.damage and draw() < how.damage:
                damaged = True
            if how.delay_ns and not (how.hurry and draw() < how.hurry):
                late_ns += max(0, int(self._faults.gauss(how.delay_ns, how.jitter_ns)))
        return copies, late_ns, damaged

    def cut(self, key: int, grudge: Mapping[str, frozenset[str]]) -> None:
        """Puts a grudge in force."""
        self.cuts[key] = Cut(grudge)
        self._quiet = False

    def disturb(
        self, key: int, node: str, disturbance: Disturbance, *, arriving: bool, others: AbstractSet[str] | None = None
    ) -> None:
        """Puts a disturbance in force."""
        self.disturbances.setdefault(key, []).append((node, arriving, others, disturbance))
        self._quiet = False

    def mend(self, key: int) -> Cut | None:
        """Removes the cut and the disturbances of a key. Returns the cut, or None if there was none."""
        self.disturbances.pop(key, None)
        cut = self.cuts.pop(key, None)
        self._quiet = not (self.cuts or self.disturbances)
        return cut
