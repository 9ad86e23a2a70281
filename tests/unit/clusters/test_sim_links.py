"""The latency of packets between simulated nodes without faults."""

from __future__ import annotations

import statistics
from itertools import permutations

from clusters.sim.links import MAX_MEAN_MS, Links
from harness.units import NS_PER_MS

NAMES = ("n1", "n2", "n3")


def times_ms(seed: int) -> list[float]:
    """Returns the median time of a packet on each link."""
    links = Links(seed, NAMES)
    return [statistics.median(links.delay_ns(*pair) / NS_PER_MS for _ in range(101)) for pair in permutations(NAMES, 2)]


def test_half_of_all_seeds_have_links_of_their_own() -> None:
    """Half of the seeds have uneven links; the others have equal, fast links. No link exceeds the limit."""
    seeds = [times_ms(seed) for seed in range(60)]
    even = [times for times in seeds if max(times) < 0.8]
    assert 20 <= len(even) <= 40
    assert max(max(times) for times in seeds) <= MAX_MEAN_MS * 1.2
    assert any(max(times) > 4 * min(times) for times in seeds)


def test_links_follow_from_the_seed() -> None:
    """The same seed gives the same latencies, and another seed gives others."""
    assert times_ms(3) == times_ms(3) != times_ms(4)


def test_clients_are_near() -> None:
    """A client's packet takes less than a millisecond, even with slow links."""
    assert all(Links(seed, NAMES).near_ns() < NS_PER_MS for seed in range(20))
