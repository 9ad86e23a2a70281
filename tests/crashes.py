"""Plans with a loss of power right after a step of a disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path

    from commands.run.trial import Trial

NODES = ("n1", "n2", "n3")


def crashed_twice(
    folder: Path, system: str, nth: int, call: str, options: dict[str, str | bool]
) -> tuple[Trial, Trial]:
    """Carries out a run twice in which n1 loses its power right after its n-th step of a kind. Both prove it.

    Args:
        folder: A folder for the plan.
        system: The system.
        nth: The number of the step since the workload began.
        call: The kind of the step.
        options: Those of `power-loss`.
    """
    fault = {
        "kind": "power-loss",
        "target": ["n1"],
        "start_s": 0.0,
        "end_s": 4.0,
        "trigger": {"name": "disk-step", "limit_s": 3.0, "parameters": {"call": call, "n": nth, "on": "n1"}},
        "options": options,
    }
    plan = {"format": "labrys-plan", "version": 3, "nodes": NODES, "seed": 5, "time_limit_s": 6.0, "faults": [fault]}
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    words = ("--cluster", "sim", "--system", system, "--nodes", "3", "--plan", str(path))
    runs = trial(*words, seed=5), trial(*words, seed=5)
    for run in runs:
        (record,) = run.result.faults
        assert record.proof is not None
        assert record.proof.effective, record.proof.reason
        assert record.fired is not None
        assert record.fired.measured["call"] == call
    return runs
