"""Nodes that trust failed syncs are found, and the correct version is not accused."""

from __future__ import annotations

import pytest

from clusters.systems.sim_txn.bugs import Bug
from harness.verdict import Verdict
from tests.trials import trial

RUN = (
    "--cluster", "sim", "--system", "sim-txn", "--workload", "list-append", "--nodes", "3", "--time-limit", "14", "--rate", "5",
    "--nemesis", "disk-error:all,power-loss:all", "--in-turn", "--fault-quiet", "1-2", "--fault-on", "3-4",
    "--fault-off", "0.5-1", "--fault-options", "disk-error.file=commit-*,disk-error.times=20,power-loss.lost=all",
)  # fmt: skip


@pytest.mark.parametrize("bug", [Bug.FAILED_SYNC_TRUSTED, Bug.NONE])
def test_who_trusts_failed_syncs_is_found(bug: Bug) -> None:
    """With the bug, the loss of power takes both copies of records. Without it, two nodes end, and no part is invalid."""
    result = trial(*RUN, "--bug", str(bug))
    failed, lost = result.result.faults
    assert lost.is_proven, lost
    assert failed.is_proven is (bug is not Bug.NONE), failed  # without a majority, the third node has nothing to sync
    invalid = [part.name for part in result.outcome.parts if part.verdict is Verdict.INVALID]
    assert (invalid == []) is (bug is Bug.NONE)
