"""Options that Python code makes keep the bounds that the command line keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from harness.declare import hold_bounds, option
from harness.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of every kind of bound."""

    keys: int = option(1, "Keys.", low=1, high=10)
    hot_share: float = option(0.5, "A share.", low=0, high=1, above=True)
    lease_s: float | None = option(None, "A lease.", low=0, high=60)
    quorum: bool = option(default=True, help="A switch.")
    name: str = option("", "A text.")

    def __post_init__(self) -> None:
        hold_bounds(self)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"keys": 0}, "keys: expected a number from 1 to 10, not 0"),
        ({"keys": 11}, "keys: expected a number from 1 to 10, not 11"),
        ({"hot_share": 0}, "hot-share: expected a number above 0, and at most 1, not 0"),
        ({"hot_share": math.nan}, "hot-share: expected a number above 0, and at most 1, not nan"),
        ({"lease_s": -0.5}, "lease-s: expected a number from 0 to 60, not -0.5"),
    ],
)
def test_a_number_outside_of_its_bounds_is_refused(wrong: dict[str, float], message: str) -> None:
    """The error has the option, its bounds and the number."""
    with pytest.raises(InputError) as refused:
        Options(**wrong)  # type: ignore[arg-type]
    assert str(refused.value) == message


def test_what_is_within_its_bounds_is_taken() -> None:
    """The bounds themselves, and what has none."""
    Options()
    Options(keys=10, hot_share=1, lease_s=60, quorum=False, name="a")
