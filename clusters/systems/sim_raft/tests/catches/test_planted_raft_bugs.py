"""Hunts find the bugs of the simulated Raft, and its correct version is valid.

The runs are those of `labrys hunt --system sim-raft --bug BUG --among KINDS --blind --seed 1`. Here only the run is carried out
that is known to find the bug. `python -m benchmarks sim_raft` has the hunts themselves.
`test_raft_schedules.py` shows each bug by a schedule that is written by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.systems.sim_raft.bugs import Bug
from harness.verdict import Verdict
from tests.catches.hunts import Hunt, caught, rows_of, unaccused

# For each bug, the first run of the hunt that finds it, and the kinds of faults.
FINDS: dict[Bug, tuple[int, str]] = {
    Bug.READ_WITHOUT_QUORUM: (3, "partition-leader,partition-random-halves"),
    Bug.FOLLOWER_READS: (1, "partition-random-node,kill"),
    Bug.LEASE_TOO_LONG: (3, "partition-leader,partition-random-halves"),
    Bug.HALF_IS_MAJORITY: (1, "partition-random-halves,partition-leader"),
    Bug.HALF_OF_EVEN_IS_MAJORITY: (1, "partition-halves,partition-random-halves,partition-leader"),
    Bug.SNAPSHOT_WITHOUT_SESSIONS: (2, "kill,partition-random-node"),
    Bug.LOST_LEADERSHIP_IS_FAIL: (10, "partition-leader"),
    Bug.LOG_END_NOT_RESTORED: (1, "kill,leader-kill"),
    Bug.VOTE_FOR_SHORTER_LOG: (1, "partition-random-node,leader-kill,partition-leader"),
    Bug.OLD_LEADER_OBEYED: (3, "partition-leader,leader-pause,packet-delay"),
    Bug.CHECKSUM_NOT_VERIFIED: (2, "file-bitflip,kill"),
    Bug.LEASE_ON_WALL_CLOCK: (3, "clock-strobe,partition-leader"),
    Bug.READ_BEFORE_OWN_ENTRY: (2, "leader-kill,partition-random-halves,partition-leader"),
    Bug.VOTE_COUNTED_TWICE: (7, "packet-duplicate,partition-random-halves"),
    Bug.TWO_VOTES_IN_A_TERM: (2, "leaders-kill,packet-delay"),
    Bug.ACKNOWLEDGED_BEFORE_FSYNC: (3, "power-loss"),
    Bug.HIGHER_TERM_IGNORED: (3, "partition-leader,partition-random-halves"),
    Bug.COMMITTED_ENTRIES_CUT: (2, "leaders-kill,partition-leader"),
    Bug.PREVIOUS_TERM_NOT_CHECKED: (7, "partition-leader,leader-kill"),
    Bug.RETRY_APPLIED_TWICE: (3, "packet-loss"),
    Bug.COMMIT_PAST_MATCH: (47, "partition-leader,leader-kill"),
    Bug.TRANSFER_UNCHECKED: (7, "leadership-transfer,partition-random-node"),
    Bug.VOTE_BY_LENGTH: (66, "partition-leader,partition-random-node,leader-kill"),
    Bug.LEASE_KEPT_IN_TRANSFER: (47, "leadership-transfer,partition-leader"),
    Bug.STALE_APPEND_CUTS: (38, "partition-leader,leader-kill"),
    Bug.LOST_ENTRIES_NOT_NOTICED: (45, "file-truncate,partition-leader"),
}
SEED = 1
CORRECT_RUNS = 50  # of each seed
CORRECT_SEEDS = (1, 2, *(pytest.param(seed, marks=pytest.mark.night) for seed in range(3, 21)))


@pytest.mark.parametrize("bug", FINDS)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    """A part of the verdict is invalid, with a reason."""
    run, among = FINDS[bug]
    caught(Hunt.of(bug, seed=SEED, guided=False, among=among), run)


def test_the_page_has_the_finds() -> None:
    """The page's table has exactly the runs in this test."""
    page = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert rows_of(page, "| bug | run | `--among` |") == {
        (str(bug), str(run), among) for bug, (run, among) in FINDS.items()
    }


@pytest.mark.parametrize("seed", CORRECT_SEEDS)
def test_the_correct_version_is_not_accused(seed: int) -> None:
    """It passes with all kinds of faults, rhythms, rates and settings, half of the runs with leases."""
    hunt = Hunt(("--reads", "lease" if seed % 2 else "read-index"), seed=seed)
    verdicts = unaccused(hunt, CORRECT_RUNS)
    assert verdicts[Verdict.VALID] > CORRECT_RUNS / 2, verdicts
