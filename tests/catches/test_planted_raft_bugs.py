"""The bugs of the simulated Raft must be found, and its correct version must never be accused.

`python -m benchmarks sim_raft` looks for each bug with many seeds. Here are seeds that are known to find them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clusters.systems.sim_raft.bugs import Bug
from harness.verdict import Verdict
from tests.catches.sim_raft import MIXES, WORKLOADS, Outcome, nodes_of, once, options_of

# Bug to a run that finds it: seed, mix of faults, workload.
FINDS: dict[Bug, tuple[int, str, str]] = {
    Bug.HALF_IS_MAJORITY: (1, "partitions", "register"),
    Bug.HALF_OF_EVEN_IS_MAJORITY: (0, "partitions", "register"),
    Bug.FOLLOWER_READS: (0, "partitions", "register"),
    Bug.READ_WITHOUT_QUORUM: (5, "partitions", "register"),
    Bug.LEASE_TOO_LONG: (5, "partitions", "register"),
    Bug.LOST_LEADERSHIP_IS_FAIL: (7, "partitions", "register"),
    Bug.ACKNOWLEDGED_BEFORE_FSYNC: (0, "power", "set"),
    Bug.LOG_END_NOT_RESTORED: (0, "restarts", "set"),
    Bug.SNAPSHOT_WITHOUT_SESSIONS: (0, "restarts", "counter"),
    Bug.STALE_APPEND_CUTS: (0, "slow", "set"),
    Bug.PREVIOUS_TERM_NOT_CHECKED: (5, "partitions", "set"),
    Bug.RETRY_APPLIED_TWICE: (7, "partitions", "counter"),
    Bug.VOTE_FOR_SHORTER_LOG: (14, "partitions", "set"),
    Bug.LEASE_ON_WALL_CLOCK: (35, "clocks", "register"),
    Bug.LOST_ENTRIES_NOT_NOTICED: (36, "disks", "set"),
    Bug.TRANSFER_UNCHECKED: (28, "handover", "register"),
    Bug.HIGHER_TERM_IGNORED: (63, "partitions", "register"),
    Bug.COMMIT_PAST_MATCH: (26, "partitions", "register"),
    Bug.OLD_LEADER_OBEYED: (49, "slow", "register"),
    Bug.VOTE_COUNTED_TWICE: (48, "slow", "register"),
    Bug.CHECKSUM_NOT_VERIFIED: (18, "disks", "register"),
}
CORRECT = 3 * len(MIXES)


def digest(outcome: Outcome) -> str:
    """Returns a fingerprint of all that clients did and all that nodes logged."""
    return hashlib.sha256(repr((outcome.operations, outcome.logs)).encode()).hexdigest()


@pytest.mark.parametrize("bug", FINDS)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    """A part of the verdict says so, with a reason."""
    seed, mix, workload = FINDS[bug]
    found = once(seed, options_of(bug), nodes=nodes_of(bug), mix=mix, workload=workload)
    assert found.blamed
    assert all(found.parts[name].reason for name in found.blamed)


def test_the_page_has_the_finds() -> None:
    """The page's table has each run that is held here, and no other."""
    page = (Path(__file__).parents[2] / "docs" / "sim-raft.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 6]
    found = {tuple(cell.strip(" `") for cell in row.split("|")[1:5]) for row in rows}
    assert found == {(str(bug), str(seed + 1), mix, workload) for bug, (seed, mix, workload) in FINDS.items()}


def test_the_correct_version_is_not_accused() -> None:
    """Under each mix of faults, with each workload now and then; the runs do test something."""
    seen = set()
    for seed in range(CORRECT):
        found = once(seed)
        assert found.blamed == [], f"seed {seed}"
        assert found.parts["replicas-equal"].verdict is Verdict.VALID
        seen |= {(operation.f, operation.type) for operation in found.operations}
    assert len(seen) > len(WORKLOADS)


def test_a_run_is_the_same_every_time() -> None:
    """Whatever the interpreter's hashes are: the same seed gives the same operations and the same logs."""
    script = (
        "from tests.catches.sim_raft import once; from tests.catches.test_planted_raft_bugs import digest; "
        "print(digest(once(6)))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{digest(once(6))}\n"}
