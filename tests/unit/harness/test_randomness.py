"""Random streams from one root seed."""

from __future__ import annotations

import os
import subprocess
import sys

from harness.randomness import SEED_BITS, fresh_seed, stream


def test_a_stream_is_the_same_in_every_process() -> None:
    """The hash seed of Python does not change it."""
    code = "from harness.randomness import stream; print([stream(7, 'worker/3').random() for _ in range(2)])"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert printed == {f"{[stream(7, 'worker/3').random() for _ in range(2)]}\n"}


def test_streams_differ_by_seed_and_by_name() -> None:
    """Many seeds and names all draw different numbers."""
    draws = {stream(seed, name).random() for seed in range(50) for name in ("worker/0", "worker/1", "nemesis")}
    assert len(draws) == 150


def test_one_stream_does_not_change_another() -> None:
    """The draws of a consumer do not depend on other draws."""
    undisturbed = stream(1, "b").random()
    other = stream(1, "a")
    disturbed = stream(1, "b")
    other.random()
    assert disturbed.random() == undisturbed


def test_seed_and_name_cannot_be_confused() -> None:
    """Seed 1 with name `2/x` differs from seed 12 with name `/x`."""
    assert stream(1, "2/x").random() != stream(12, "/x").random()


def test_fresh_seeds_are_different_and_fit_a_signed_64_bit_integer() -> None:
    """A run without a seed draws its own."""
    seeds = {fresh_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**SEED_BITS for seed in seeds)
