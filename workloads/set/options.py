"""What can be chosen about the set workload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """The options of the set workload.

    A read of a set returns all that is in it, so reads of a large set are costly. They become rarer as it grows, and all reads
    together return at most about `read_cost` elements for each add.
    """

    keys: int = option(1, "Independent sets. Where there is one, operations have no key.", low=1, high=10_000)
    reads_every: int = option(
        100, "Adds to a set for each read of it, while the set is small.", low=1, high=1_000_000_000
    )
    read_cost: int = option(
        20, "Elements that all reads together return for each add, at most, on average.", low=1, high=1_000_000
    )
    linearizable: bool = option(
        default=True,
        help="Whether each read must return all elements that were acknowledged before it began; else they may come later.",
        judges=True,
    )

    def __post_init__(self) -> None:
        if self.keys < 1 or self.reads_every < 1 or self.read_cost < 1:
            raise InputError(
                f"expected keys, reads-every and read-cost from 1, not {self.keys}, {self.reads_every} and {self.read_cost}"
            )
