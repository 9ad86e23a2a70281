"""Bookies that trust a failed sync are found, and the correct version is not accused."""

from __future__ import annotations

import pytest

from clusters.systems.sim_bookkeeper.bugs import Bug
from harness.verdict import Verdict
from tests.trials import trial

RUN = (
    "--cluster", "sim", "--system", "sim-bookkeeper", "--workload", "log", "--nodes", "6", "--time-limit", "14", "--rate", "5",
    "--nemesis", "disk-error:n1+n2+n3,power-loss:n1+n2+n3", "--in-turn", "--fault-quiet", "1-2", "--fault-on", "3-4",
    "--fault-off", "0.5-1", "--fault-options", "disk-error.file=entry-*,power-loss.lost=all",
)  # fmt: skip


@pytest.mark.parametrize("bug", [Bug.FAILED_SYNC_TRUSTED, Bug.NONE])
def test_who_trusts_a_failed_sync_is_found(bug: Bug) -> None:
    """With the bug, the loss of power takes acknowledged entries. Without it, the bookies end, and no part is invalid."""
    result = trial(*RUN, "--bug", str(bug))
    assert all(record.is_proven for record in result.result.faults), result.result.faults
    invalid = [part.name for part in result.outcome.parts if part.verdict is Verdict.INVALID]
    assert invalid == ([] if bug is Bug.NONE else ["log"])
