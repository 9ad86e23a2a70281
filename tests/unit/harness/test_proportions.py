"""The confidence of the intervals, and the error rates of the sequential test."""

from __future__ import annotations

import pytest

from harness.randomness import stream
from harness.suites.proportions import (
    SequentialTest,
    chance_of_difference,
    chance_of_none,
    change_of,
    interval,
    interval_of_first_hit,
)


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


@pytest.mark.parametrize(
    ("table", "chance"),
    [
        ((3, 4, 1, 4), 0.4857),  # the lady who tastes tea, in Fisher's book of 1935
        ((1, 40, 7, 20), 0.0013),
        ((0, 10, 0, 10), 1.0),
        ((5, 5, 5, 5), 1.0),
    ],
)
def test_the_exact_test_of_a_difference(table: tuple[int, int, int, int], chance: float) -> None:
    """It gives the two-sided probability of Fisher's test."""
    assert chance_of_difference(*table) == pytest.approx(chance, abs=1e-4)


def test_the_exact_test_errs_seldom() -> None:
    """Two equal shares differ by a probability below 5 % in at most 5 % of the cases."""
    random = stream(3, "difference")
    errors = 0
    for _ in range(1000):
        one, other = (sum(random.random() < 0.3 for _ in range(25)) for _ in range(2))
        errors += chance_of_difference(one, 25, other, 25) < 0.05
    assert errors / 1000 <= 0.05 + 0.01


@pytest.mark.parametrize(("hits", "runs"), [(0, 0), (1, 1), (3, 10), (10, 10)])
def test_an_absence_has_the_predictive_probability(hits: int, runs: int) -> None:
    """One further run has no hit with (misses + 1) / (runs + 2), Laplace's rule; longer absences are less likely."""
    assert chance_of_none(hits, runs, 0) == pytest.approx(1)
    assert chance_of_none(hits, runs, 1) == pytest.approx((runs - hits + 1) / (runs + 2))
    chances = [chance_of_none(hits, runs, further) for further in range(50)]
    assert chances == sorted(chances, reverse=True)


def test_a_change_is_found_at_its_night() -> None:
    """The clearest split counts, and constant nights have no clear one."""
    change = change_of([(0, 10), (1, 10), (0, 10), (0, 10), (4, 10), (3, 10)])
    assert change is not None
    assert (change.since, change.before, change.after) == (4, (1, 40), (7, 20))
    assert change.chance < 0.01
    steady = change_of([(1, 10)] * 6)
    assert steady is not None
    assert steady.chance == 1
    assert change_of([(1, 10)]) is None
