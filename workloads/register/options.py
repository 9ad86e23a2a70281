"""The options of the register workload."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from harness.console.documents import shown
from harness.declare import option
from harness.errors import InputError


class Values(enum.StrEnum):
    """The values of the writes."""

    UNIQUE = "unique"
    SMALL = "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterOptions:
    """The options of the register workload."""

    values: Values = option(
        Values.UNIQUE,
        "unique: no value is written twice, so checking is fast. small: all values are from 0 to 4, as in Jepsen.",
    )
    mix: str = option("2:1:1", "The ratio of reads, writes and compare-and-sets.")
    hot_keys: int = option(
        2, "The number of hot keys, which are in use during the whole run.", low=0, high=1000, shrinks_to=1
    )
    hot_share: float = option(
        0.5, "The share of operations on the hot keys.", low=0, high=1, hunted=(0.5, 1.0), shrinks_to=1
    )
    ops_per_key: int = option(
        100,
        "The maximum number of operations on each other key; one key follows the other.",
        low=1,
        high=1_000_000_000,
    )

    @property
    def parts(self) -> tuple[float, float, float]:
        """Returns the ratio of reads, writes and compare-and-sets."""
        return parse_mix(self.mix)

    def __post_init__(self) -> None:
        read, write, cas = self.parts
        if read <= 0 or write + cas <= 0:
            raise InputError("a mix needs reads, and writes or compare-and-sets; without both, nothing is tested")
        if self.values is Values.UNIQUE and write <= 0:
            raise InputError(
                "a mix of unique values needs writes: a compare-and-set expects a value that was seen before"
            )
        if self.hot_keys < 0 or self.ops_per_key < 1 or not 0 <= self.hot_share <= 1:
            raise InputError(
                f"expected hot keys from 0, a hot share from 0 to 1, and operations per key from 1, not {self.hot_keys}, "
                f"{self.hot_share} and {self.ops_per_key}"
            )


def parse_mix(text: str) -> tuple[float, float, float]:
    """Parses a ratio of reads, writes and compare-and-sets, e.g. `2:1:1`.

    Raises:
        InputError: The text has another form.
    """
    number = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
    match = re.fullmatch(f"{number}:{number}:{number}", text.strip())
    if match is None:
        raise InputError(f"a mix is reads:writes:compare-and-sets, e.g. 2:1:1, not {shown(text)}")
    read, write, cas = (float(part) for part in match.groups())
    return read, write, cas
