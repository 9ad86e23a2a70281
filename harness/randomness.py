"""One root seed, many independent streams.

Every consumer of chance draws from its own stream, named by what it is for ("worker/3", "nemesis"). A new consumer
therefore never shifts the draws of another, and the same seed gives the same operations and faults in every process:
`random.Random` seeded with a string hashes it by SHA-512, which, unlike `hash()`, does not depend on the interpreter's run.
"""

from __future__ import annotations

import random
import secrets

SEED_BITS = 63


def stream(seed: int, name: str) -> random.Random:
    """Returns the stream of draws that belongs to `name` under the root `seed`."""
    return random.Random(f"{seed}/{name}")  # noqa: S311 - reproducible on purpose


def fresh_seed() -> int:
    """Draws a root seed from the operating system, for a run that was given none."""
    return secrets.randbits(SEED_BITS)


def repeat_seed(seed: int, number: int) -> int:
    """Returns the seed of a run of a repeated test.

    Args:
        seed: The seed of the first run.
        number: Which run it is, from 1. The others are drawn from the stream `repeat/NUMBER`.
    """
    return seed if number == 1 else stream(seed, f"repeat/{number}").getrandbits(SEED_BITS)
