"""Random streams, all drawn from one root seed.

Each consumer has its own stream with a name such as `worker/3` or `nemesis`. So a new consumer never changes the draws of
another. The same seed gives the same operations and faults in every process: `random.Random` hashes a string seed by SHA-512,
which is the same in each process, unlike `hash()`.
"""

from __future__ import annotations

import random
import secrets

SEED_BITS = 63


def stream(seed: int, name: str) -> random.Random:
    """Returns the random stream `name` of a root seed."""
    return random.Random(f"{seed}/{name}")  # noqa: S311 - reproducible on purpose


def fresh_seed() -> int:
    """Returns a root seed from the operating system, for a run without a given seed."""
    return secrets.randbits(SEED_BITS)


def repeat_seed(seed: int, number: int) -> int:
    """Returns the seed of a run of a repeated test.

    Args:
        seed: The seed of the first run.
        number: The number of the run, from 1. The seeds of all runs but the first come from the stream `repeat/NUMBER`.
    """
    return seed if number == 1 else stream(seed, f"repeat/{number}").getrandbits(SEED_BITS)
