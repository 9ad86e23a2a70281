"""How often something was seen, as text: with its confidence interval, and with its change over nights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.console.plain import counted_of
from harness.suites.proportions import change_of, interval
from results.words.formatting import percent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

CHANGED: Final = 0.01  # the probability of chance below which a rate has changed
LEAST: Final = 1e-4  # smaller probabilities are shown as less than this


def rate_text(hits: int, runs: int) -> str:
    """Returns a rate with its confidence interval (95 %, Wilson), e.g. `1 of 40 runs, 2.5 % (0.4 % to 12.9 %)`."""
    low, high = interval(hits, runs)
    return f"{counted_of(hits, runs, 'run')}, {percent(hits, runs)} ({percent(low, 1)} to {percent(high, 1)})"


def change_text(nights: Mapping[date, tuple[int, int]]) -> str:
    """Returns since when a rate has changed, e.g. `from 1 of 40 to 7 of 20, p < 0.01, since the night of 2026-11-28`.

    Args:
        nights: The hits and the runs of each night.

    Returns:
        An empty text if chance explains the differences with a probability of 1 % or more.
    """
    ordered = sorted(nights)
    change = change_of([nights[night] for night in ordered])
    if change is None or change.chance >= CHANGED:
        return ""
    (few, of_few), (many, of_many) = change.before, change.after
    p = "p < 0.0001" if change.chance < LEAST else f"p < {0.001 if change.chance < 0.001 else CHANGED}"
    return f"from {few} of {of_few} to {many} of {of_many}, {p}, since the night of {ordered[change.since]}"
