"""Intervals hold the true part as often as they say, and the sequential test errs as seldom as it says."""

from __future__ import annotations

import pytest

from harness.proportions import SequentialTest, interval, interval_of_first_hit
from harness.randomness import stream


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.278), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1.0)],
)
def test_the_interval(hits: int, runs: int, low: float, high: float) -> None:
    """Wilson's interval of 95 %, with the values of its tables."""
    assert interval(hits, runs) == pytest.approx((low, high), abs=0.001)


@pytest.mark.parametrize("part", [0.02, 0.2, 0.7])
def test_the_interval_of_a_first_hit_holds_the_part(part: float) -> None:
    """In at least 95 % of searches, up to what chance leaves of 2,000 of them."""
    random = stream(1, f"first hit/{part}")
    held = 0
    for _ in range(2000):
        runs = 1
        while random.random() >= part:
            runs += 1
        low, high = interval_of_first_hit(runs)
        held += low <= part <= high
    assert held / 2000 > 0.935


@pytest.mark.parametrize(("part", "wrong", "most"), [(0.6, False, 0.1), (0.1, True, 0.05)])
def test_the_sequential_test_errs_seldom(part: float, wrong: bool, most: float) -> None:
    """A frequent hit is missed in at most 10 %, a rare one is taken for frequent in at most 5 %; few runs decide."""
    random = stream(2, f"sequential/{part}")
    errors = runs = 0
    for _ in range(1000):
        test = SequentialTest(frequent=0.6, rare=0.1)
        while test.decided is None:
            test.add(hit=random.random() < part)
        errors += test.decided is wrong
        runs += test.runs
    assert errors / 1000 <= most + 0.02
    assert runs / 1000 < 10


def test_two_parts_in_the_wrong_order_are_refused() -> None:
    """There would be nothing to decide."""
    with pytest.raises(ValueError, match="rare < frequent"):
        SequentialTest(frequent=0.1, rare=0.1)
