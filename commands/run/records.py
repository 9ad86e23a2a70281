"""Makes the record of a run from what the run left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import phases as ph
from results.record.record import WORLD, RunRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Operation
    from harness.phases import Phase
    from harness.run import RunResult
    from harness.verdict import Part
    from results.record.record import TestInfo


def record_of(
    info: TestInfo,
    result: RunResult,
    parts: Sequence[Part],
    operations: Sequence[Operation],
    *,
    duration_s: float,
    phases: Sequence[Phase] = (),
    problems: Sequence[str] = (),
) -> RunRecord:
    """Returns the record of a run.

    Args:
        info: Its test.
        result: What the phases, the faults and the observations left.
        parts: The parts of its verdict.
        operations: The operations of the clients.
        duration_s: From its start to its verdict.
        phases: Its phases so far.
        problems: Problems besides those of the result.
    """
    return RunRecord(
        test=info,
        duration_s=duration_s,
        parts=parts,
        faults=result.faults,
        operations=operations,
        sightings=result.sightings,
        other_sightings=result.other_sightings,
        positions=result.positions,
        clocks=result.clocks,
        connections=result.connections,
        execution=result.execution,
        timings={
            "ready": result.ready_s or 0.0,
            **({} if result.world_s is None else {WORLD: result.world_s}),
            "workload": result.workload_s,
            "check": sum(phase.seconds for phase in phases if phase.name == ph.JUDGE),
        },
        phases=list(phases),
        problems=[*result.problems, *problems],
    )
