"""A released program stands still right after a step of its disk, and loses power there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crashes import crashed_twice
from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]


@pytest.mark.parametrize(("nth", "call", "lost"), [(1, "write", "none"), (2, "sync", "all")])
def test_a_loss_of_power_at_a_step_repeats(tmp_path: Path, nth: int, call: str, lost: str) -> None:
    """The same step of the same seed gives the same operations, and the same execution of all programs."""
    one, two = crashed_twice(tmp_path, "etcd", nth, call, {"lost": lost})
    assert one.operations == two.operations
    assert one.result.execution is not None
    assert one.result.execution == two.result.execution


def test_a_kill_meets_a_step(tmp_path: Path) -> None:
    """A plan without a loss of power has steps too; this is the command of docs/guide/crash.md, but shorter."""
    faults = ("--nemesis", "kill:trigger", "--fault-trigger", "disk-step:sync:*.wal:3", "--fault-wait", "2")
    rhythm = ("--fault-on", "1", "--fault-off", "0.5", "--fault-quiet", "1-1.5", "--time-limit", "6")
    words = ("--cluster", "sim", "--system", "etcd", "--nodes", "3", "--store", str(tmp_path))
    run = trial(*words, *faults, *rhythm, seed=3)
    first = run.result.faults[0]
    assert first.proof is not None
    assert first.proof.effective, first.proof.reason
    assert first.fired is not None
    assert first.fired.measured["call"] == "sync"
