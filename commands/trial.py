"""One simulated run without a folder: carried out and judged in memory, as fast as this machine can.

A trial is the same run as that of `labrys test --cluster sim` with the same seed and options, up to its verdict. It writes no
report; whoever finds something carries the run out again and gets one.
"""

from __future__ import annotations

import contextlib
import gc
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clusters.options
from commands.compose import Settled, compose
from harness import parts
from harness.history import MemoryHistory, pair
from harness.run import run
from harness.verdict import Verdict
from results.document import verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.clock import Clock
    from harness.faults import PlannedFault
    from harness.history import Recorder
    from harness.op import Operation
    from harness.run import RunResult
    from harness.verdict import Part
    from harness.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a simulated run.

    Attributes:
        seed: Its seed.
        verdict: Its verdict.
        parts: The parts of the verdict.
        plan: Its faults.
        operations: What clients did.
        result: What else it left.
    """

    seed: int
    verdict: Verdict
    parts: Sequence[Part]
    plan: Sequence[PlannedFault]
    operations: Sequence[Operation]
    result: RunResult

    @property
    def blamed(self) -> tuple[str, ...]:
        """Returns the names of the parts that are invalid."""
        return tuple(part.name for part in self.parts if part.verdict is Verdict.INVALID)


class Unobserved:
    """Shows nobody how a run goes on; see `harness.run.Observer`."""

    def phase(self, text: str) -> None:
        """Is not shown."""

    def workload_began(self, watch: Watch, clock: Clock) -> None:
        """Is not shown."""

    def problem(self, text: str) -> None:
        """Is not shown: it is in the result."""


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps the garbage collector away for one run, which leaves little in cycles, and lets it look once behind it.

    Otherwise it goes through all objects of the run again and again, and takes a fifth of the time.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(0)  # whatever was made meanwhile is in the youngest generation
        if on:
            gc.enable()


def attempt(options: Mapping[str, Any], settled: Settled, *, seed: int, history: Recorder | None = None) -> Trial:
    """Carries out and judges one simulated run.

    Args:
        options: The settled options of `labrys test`, for the simulator.
        settled: What follows from them.
        seed: The run's root seed, whatever the options say.
        history: Where operations are recorded; by default in memory.

    Raises:
        LabrysError: The system could not be set up, or the options cannot be had together.
        KeyboardInterrupt: A person ended the run.
    """
    recorder = MemoryHistory() if history is None else history
    own = {**options, "seed": seed}
    with (
        _uncollected(),
        clusters.options.open_cluster(own) as cluster,
        tempfile.TemporaryDirectory(prefix="labrys-") as logs,
    ):
        test, _, _ = compose(own, cluster, settled, "", defaults=None)
        result = run(test, history=recorder, logs_dir=Path(logs), observer=Unobserved())
        if result.interrupted:
            raise KeyboardInterrupt  # whoever tries many runs is to stop, and not to go on with the next one
        operations = pair(recorder.ops)
        found = parts.of_run(test, result, operations)
    return Trial(
        seed=seed,
        verdict=verdict_of(found),
        parts=found,
        plan=test.plan,
        operations=operations,
        result=result,
    )
