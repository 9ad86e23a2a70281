"""Carries out and judges one simulated run in memory, without a folder in the store.

A trial has the same history and the same verdict as `labrys test --cluster sim` with the same seed and options. It writes no
report. `labrys hunt` carries out an invalid run again as a test, which has one.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commands.options.compose import composed
from harness import parts
from harness.history import MemoryHistory, pair
from harness.outcome import RunOutcome
from harness.run import run
from harness.world import DiskSteps, world_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commands.options.compose import Settled
    from harness.clock import Clock
    from harness.faults import PlannedFault
    from harness.history import Recorder
    from harness.op import Operation
    from harness.run import Observer, RunResult
    from harness.test import Test
    from harness.watch import Watch


# Generations of the garbage collector.
YOUNGEST: Final = 0
OLDEST: Final = 2
COLLECT_ALL_EVERY: Final = 50  # runs, which leave about 10 MB

_runs = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A simulated run that was carried out.

    Attributes:
        outcome: Its outcome.
        seed: Its seed.
        plan: Its faults.
        operations: The operations of the clients.
        result: What the phases, the faults and the observations left.
        steps: The steps of the disks, if the plan has a trigger that waits for one.
    """

    outcome: RunOutcome
    seed: int
    plan: Sequence[PlannedFault]
    operations: Sequence[Operation]
    result: RunResult
    steps: DiskSteps


class Unobserved:
    """An observer that shows nothing; see `harness.run.Observer`."""

    def phase(self, text: str) -> None:
        """Shows nothing."""

    def workload_began(self, watch: Watch, clock: Clock) -> None:
        """Shows nothing."""

    def problem(self, text: str) -> None:
        """Shows nothing, because the result has the problem."""


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Turns the garbage collector off for one run, and collects after it; all older objects too after some of the runs.

    A run leaves few cycles. The collector would visit all objects of the run again and again, in a fifth of the time.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # The objects of the run are in the youngest generation. Those that the caller still uses leave it, and go later.
        gc.collect(OLDEST if next(_runs) % COLLECT_ALL_EVERY == 0 else YOUNGEST)
        if on:
            gc.enable()


@contextlib.contextmanager
def carried_out(
    settled: Settled,
    observer_of: Callable[[Test], Observer],
    *,
    history: Recorder | None = None,
    calls: Path | None = None,
) -> Iterator[tuple[Test, RunResult, Sequence[Operation]]]:
    """Carries out one run in memory, with a folder for its logs until the end of the context.

    Args:
        settled: The options.
        observer_of: Makes the observer of the test.
        history: The recorder of the operations; by default one in memory.
        calls: The file for each call of programs in virtual time; None: no such log.

    Yields:
        The test, the result of the run, and the operations of the clients.

    Raises:
        LabrysError: The system could not be set up, or the options do not fit together.
    """
    recorder = MemoryHistory() if history is None else history
    with composed(settled) as (test, _), tempfile.TemporaryDirectory(prefix="labrys-") as logs:
        if calls is not None:
            from clusters.sim.linux.cluster import log_calls

            log_calls(test.cluster, calls)
        result = run(test, history=recorder, logs_dir=Path(logs), observer=observer_of(test))
        yield test, result, pair(recorder.ops)


def attempt(settled: Settled, *, history: Recorder | None = None) -> Trial:
    """Carries out and judges one simulated run.

    Args:
        settled: The options, for the simulator.
        history: The recorder of the operations; by default one in memory.

    Raises:
        LabrysError: The system could not be set up, or the options do not fit together.
        KeyboardInterrupt: A person ended the run.
    """
    with _uncollected(), carried_out(settled, lambda _: Unobserved(), history=history) as (test, result, operations):
        return judged(test, result, operations)


def judged(test: Test, result: RunResult, operations: Sequence[Operation]) -> Trial:
    """Judges a simulated run that was carried out, before its cluster is closed.

    Raises:
        KeyboardInterrupt: A person ended the run.
    """
    if result.interrupted:
        raise KeyboardInterrupt  # a caller with many runs must stop here
    outcome = RunOutcome.of(parts.of_run(test, result, operations), error=result.error)
    world = world_of(test.cluster)
    steps = DiskSteps() if world is None else world.disk_steps()
    return Trial(outcome=outcome, seed=test.seed, plan=test.plan, operations=operations, result=result, steps=steps)
