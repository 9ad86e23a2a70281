"""The options of the counter workload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterOptions:
    """The options of the counter workload."""

    keys: int = option(
        1, "The number of independent counters; with 1, operations have no key.", low=1, high=10_000, shrinks_to=1
    )
    read_share: float = option(0.5, "The share of operations that are reads.", low=0, high=1)
    negative_share: float = option(0.25, "The share of adds that have a negative amount.", low=0, high=1)
    largest: int = option(5, "The largest amount of an add; the smallest is 1.", low=1, high=1_000_000_000)

    def __post_init__(self) -> None:
        if not 0 < self.read_share < 1:
            raise InputError(
                f"expected a share of reads between 0 and 1, not {self.read_share}; without reads, or without adds, nothing is"
                " tested"
            )
        if self.keys < 1 or self.largest < 1 or not 0 <= self.negative_share <= 1:
            raise InputError(
                f"expected keys and largest from 1 and a negative share from 0 to 1, not {self.keys}, {self.largest} and"
                f" {self.negative_share}"
            )
