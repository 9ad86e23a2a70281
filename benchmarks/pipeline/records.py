"""The records of a synthetic run: `test.json`, and `results.json` with faults for half of its time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.pipeline.histories import NODES
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.targets import AllNodes
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict
from results.record.record import RunRecord, TestInfo, test_document
from results.stored.document import build

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.pipeline.histories import Plan

FAULTS = 20


def record(made: Plan, folder: Path) -> None:
    """Makes a run of the operations in `folder`, with faults for half of its time."""
    names = tuple(f"n{number + 1}" for number in range(NODES))
    test = TestInfo(
        name="synthetic",
        seed=made.seed,
        reproduce=f"python -m benchmarks pipeline --operations {made.operations} --seed {made.seed}",
        started_utc=datetime.now(UTC),
        system="synthetic",
        workload="register",
        nodes=names,
    )
    width_ns = made.duration_ns // FAULTS
    faults = [
        FaultRecord(
            planned=PlannedFault(
                id=number,
                kind="kill",
                target=AllNodes(),
                start_s=number * width_ns / NS_PER_S,
                end_s=(number + 0.5) * width_ns / NS_PER_S,
                options={},
            ),
            targets=names[number % NODES :][:1],
            start_ns=number * width_ns,
            end_ns=number * width_ns + width_ns // 2,
            proof=Proof(effective=True, reason="It was made with the history.", measured={}),
        )
        for number in range(FAULTS)
    ]
    nothing = Part(name="linearizable", verdict=Verdict.UNKNOWN, reason="It was made, and not judged.")
    run = RunRecord(test=test, duration_s=made.duration_ns / NS_PER_S, parts=[nothing], faults=faults)
    (folder / "test.json").write_text(json.dumps(test_document(test)))
    (folder / "results.json").write_text(json.dumps(build(run)))
