"""`labrys crash` in the JVM of the simulator: a process stands still right after a step of its disk, and loses power there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import cli
from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]


def planned(path: Path, nth: int, call: str, options: dict[str, str | bool]) -> Path:
    """Writes a plan with a loss of power of n1 right after a step of its disk."""
    fault = {
        "kind": "power-loss",
        "target": ["n1"],
        "start_s": 0.0,
        "end_s": 4.0,
        "trigger": {"name": "disk-step", "limit_s": 3.0, "parameters": {"call": call, "n": nth, "on": "n1"}},
        "options": options,
    }
    nodes = ["n1", "n2", "n3"]
    plan = {"format": "labrys-plan", "version": 3, "nodes": nodes, "seed": 5, "time_limit_s": 6.0, "faults": [fault]}
    path.write_text(json.dumps(plan))
    return path


@pytest.mark.parametrize(
    ("nth", "call", "options"),
    [(1, "write", {"lost": "all"}), (2, "sync", {"lost": "none"}), (3, "write", {"lost": "1", "torn": True})],
)
def test_a_loss_of_power_at_a_step_repeats(tmp_path: Path, nth: int, call: str, options: dict[str, str | bool]) -> None:
    """The same step of the same seed, twice: the fault is proved, and the operations are equal."""
    path = planned(tmp_path / "plan.json", nth, call, options)
    runs = [
        trial("--cluster", "sim", "--system", "dledger", "--nodes", "3", "--plan", str(path), "--seed", "5")
        for _ in range(2)
    ]
    for run in runs:
        (fault,) = run.result.faults
        assert fault.proof is not None
        assert fault.proof.effective, fault.proof.reason
        assert fault.fired is not None
        assert fault.fired.measured["call"] == call
    assert runs[0].operations == runs[1].operations


def test_each_step_of_a_short_run_is_visited(tmp_path: Path) -> None:
    """With the default of DLedger, one node may lose what it has not synced."""
    words = "crash --system dledger --nodes 3 --seed 5 --time-limit 2.5 --rate 1 --down 0.5 --states 1 --jobs 1"
    done = CliRunner().invoke(cli.labrys, [*words.split(), "--store", str(tmp_path)])
    assert "0 invalid" in done.output, done.output
    assert "not visited" not in done.output
    assert "missed" not in done.output
