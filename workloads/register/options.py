"""What can be chosen about the register workload."""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass

from harness.documents import shown
from harness.errors import InputError


class Values(enum.StrEnum):
    """Which values are written."""

    UNIQUE = "unique"
    SMALL = "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterOptions:
    """The options of the register workload.

    Attributes:
        values: `unique`: no value is written twice in a run; a compare-and-set expects the value that was seen last.
            `small`: all values are drawn from 0 to 4, as in Jepsen, the expected ones too.
        read: The part of reads in the mix, in any unit.
        write: The part of writes.
        cas: The part of compare-and-sets.
        hot_keys: How many keys are used all the time.
        hot_share: The share of operations that are on hot keys.
        ops_per_key: The most operations on each of the other keys, which come one after the other.
    """

    values: Values = Values.UNIQUE
    read: float = 2
    write: float = 1
    cas: float = 1
    hot_keys: int = 2
    hot_share: float = 0.5
    ops_per_key: int = 100

    def __post_init__(self) -> None:
        parts = (self.read, self.write, self.cas)
        if not all(math.isfinite(part) and part >= 0 for part in parts):
            raise InputError(f"the parts of a mix are numbers from 0, not {parts}")
        if self.read <= 0 or self.write + self.cas <= 0:
            raise InputError("a mix needs reads, and writes or compare-and-sets; without both nothing can be seen")
        if self.values is Values.UNIQUE and self.write <= 0:
            raise InputError(
                "a mix of unique values needs writes: a compare-and-set expects a value that was seen before"
            )
        if self.hot_keys < 0 or self.ops_per_key < 1 or not 0 <= self.hot_share <= 1:
            raise InputError(
                f"expected hot keys from 0, a hot share from 0 to 1, and operations per key from 1, not {self.hot_keys}, "
                f"{self.hot_share} and {self.ops_per_key}"
            )


def parse_mix(text: str) -> tuple[float, float, float]:
    """Reads parts of reads, writes and compare-and-sets, e.g. `2:1:1`.

    Raises:
        InputError: It is something else.
    """
    number = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
    match = re.fullmatch(f"{number}:{number}:{number}", text.strip())
    if match is None:
        raise InputError(f"a mix is reads:writes:compare-and-sets, e.g. 2:1:1, not {shown(text)}")
    read, write, cas = (float(part) for part in match.groups())
    return read, write, cas
