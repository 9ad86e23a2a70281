"""The options of the log workload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The options of the log workload."""

    keys: int = option(
        1, "The number of independent logs; with 1, operations have no key.", low=1, high=1000, shrinks_to=1
    )
    read_share: float = option(0.3, "The share of operations that are reads.", low=0, high=1)
    range_share: float = option(0.5, "The share of reads that cover a range of offsets.", low=0, high=1)
    range_length: int = option(
        20, "The maximum number of offsets that a read covers; final reads cover 1000.", low=1, high=1000
    )
    recent: int = option(100, "Reads start among this many of the highest known offsets.", low=1, high=1_000_000_000)
    linearizable: bool = option(
        default=True,
        help="Each read must return all entries that were known before it began; without it, they may appear later.",
        judges=True,
    )

    def __post_init__(self) -> None:
        if self.read_share >= 1:
            raise InputError("the log workload needs appends; choose a read share below 1")
        if self.read_share < 0 or not 0 <= self.range_share <= 1:
            raise InputError(f"expected shares from 0 to 1, not {self.read_share} and {self.range_share}")
        if min(self.keys, self.range_length, self.recent) < 1:
            raise InputError(
                "expected keys, a range length and recent offsets from 1, not "
                f"{self.keys}, {self.range_length} and {self.recent}"
            )
