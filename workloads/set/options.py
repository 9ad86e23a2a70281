"""The options of the set workload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """The options of the set workload.

    A read returns the whole set, so reads of a large set are expensive. Reads become rarer as the set grows: all reads
    together return at most about `read_cost` elements for each add.
    """

    keys: int = option(
        1, "The number of independent sets; with 1, operations have no key.", low=1, high=10_000, shrinks_to=1
    )
    reads_every: int = option(
        100, "The number of adds for each read, while the set is small.", low=1, high=1_000_000_000
    )
    read_cost: int = option(
        20, "The maximum mean number of elements that reads return for each add.", low=1, high=1_000_000
    )
    linearizable: bool = option(
        default=True,
        help="Each read must return all elements acknowledged before it began; without it, they may appear later.",
        judges=True,
    )

    def __post_init__(self) -> None:
        if self.keys < 1 or self.reads_every < 1 or self.read_cost < 1:
            raise InputError(
                f"expected keys, reads-every and read-cost from 1, not {self.keys}, {self.reads_every} and {self.read_cost}"
            )
