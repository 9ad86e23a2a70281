"""Simulated runs by their words on the command line, for tests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import cli
from commands.options.compose import settle
from commands.options.run_options import RunOptions, Sources
from commands.run.test import run_test
from commands.run.trial import attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands.options.compose import Settled
    from commands.run.trial import Trial
    from harness.history import Recorder

TOY = (
    "--fault-quiet",
    "1-2",
    "--cluster",
    "sim",
    "--system",
    "tests.toy_register:ToyRegisters",
    "--time-limit",
    "8",
    "--rate",
    "5",
)


@contextlib.contextmanager
def settled_by(*words: str) -> Iterator[Settled]:
    """Yields the options of the run that the words ask for."""
    with cli.labrys.make_context("labrys", ["test"]) as root:
        context = run_test.make_context("test", [*words], parent=root)
    with context:
        yield settle(RunOptions.of(context.params), Sources.of(context))


def trials(*words: str, seeds: range, history: Recorder | None = None) -> Iterator[Trial]:
    """Carries out the run that the words ask for, once for each seed."""
    with settled_by(*words, "--seed", str(seeds.start)) as settled:
        for seed in seeds:
            yield attempt(settled.seeded(seed), history=history)


def trial(*words: str, seed: int = 1, history: Recorder | None = None) -> Trial:
    """Carries out one such run."""
    (only,) = trials(*words, seeds=range(seed, seed + 1), history=history)
    return only
