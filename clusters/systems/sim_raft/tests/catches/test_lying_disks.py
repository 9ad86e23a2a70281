"""Disks that lie on all nodes: who trusts them is found, and the correct version is not accused."""

from __future__ import annotations

import pytest

from clusters.systems.sim_raft.bugs import Bug
from harness.verdict import Verdict
from tests.trials import trial

RUN = (
    "--cluster", "sim", "--system", "sim-raft", "--nodes", "3", "--time-limit", "18", "--rate", "5", "--fault-quiet", "2-3",
    "--fault-on", "3.5-4", "--fault-off", "0.5-1", "--in-turn", "--snapshot-entries", "0", "--recovery-timeout", "5",
)  # fmt: skip
CONTROLS = {
    Bug.LOST_ENTRIES_NOT_NOTICED: ("file-rollback:all", "file-rollback.file=log,file-rollback.back=2", "linearizable"),
    Bug.FAILED_SYNC_TRUSTED: (
        "disk-error:all,power-loss:all", "disk-error.call=fsync,disk-error.file=log,power-loss.lost=all", "recovered",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", CONTROLS)
def test_who_trusts_a_lying_disk_is_found(bug: Bug) -> None:
    """The part of the verdict is invalid with the bug. Without it, the node notices the lie, and no part is invalid."""
    kinds, options, part = CONTROLS[bug]
    words = (*RUN, "--nemesis", kinds, "--fault-options", options)
    for version in (bug, Bug.NONE):
        result = trial(*words, "--bug", str(version))
        assert all(record.is_proven for record in result.result.faults), result.result.faults
        invalid = [candidate.name for candidate in result.outcome.parts if candidate.verdict is Verdict.INVALID]
        assert (part in invalid) if version is bug else invalid == []
