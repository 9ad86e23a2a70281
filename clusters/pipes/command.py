"""The environment of a node's program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.sim.environment import SAME_EVERYWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

SEED_BITS: Final = 63


def environment_of(random: Random) -> Mapping[str, str]:
    """Returns the variables of a program beside those of this process.

    Args:
        random: The random numbers of this start of the program; nothing was drawn from them.
    """
    return {**SAME_EVERYWHERE, "PYTHONHASHSEED": "0", "LABRYS_SEED": str(random.getrandbits(SEED_BITS))}
