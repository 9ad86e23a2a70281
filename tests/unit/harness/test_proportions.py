"""The confidence of the intervals, and the error rates of the sequential test."""

from __future__ import annotations

import pytest

from harness.randomness import stream
from harness.suites.proportions import SequentialTest, interval, interval_of_first_hit


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.278), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1.0)],
)
def test_the_interval(hits: int, runs: int, low: float, high: float) -> None:
    """The values are from tables of Wilson's interval."""
    assert interval(hits, runs) == pytest.approx((low, high), abs=0.001)


@pytest.mark.parametrize("part", [0.02, 0.2, 0.7])
def test_the_interval_of_a_first_hit(part: float) -> None:
    """It has the true proportion in about 95 % of 2,000 searches."""
    random = stream(1, f"first hit/{part}")
    inside = 0
    for _ in range(2000):
        runs = 1
        while random.random() >= part:
            runs += 1
        low, high = interval_of_first_hit(runs)
        inside += low <= part <= high
    assert inside / 2000 > 0.935


@pytest.mark.parametrize(("part", "wrong", "most"), [(0.6, False, 0.1), (0.1, True, 0.05)])
def test_the_sequential_test_errs_seldom(part: float, wrong: bool, most: float) -> None:
    """It misses frequent hits in at most 10 % and takes rare ones in at most 5 % of the cases, with few runs."""
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


def test_bad_proportions_are_refused() -> None:
    """`rare` must be below `frequent`."""
    with pytest.raises(ValueError, match="rare < frequent"):
        SequentialTest(frequent=0.1, rare=0.1)
