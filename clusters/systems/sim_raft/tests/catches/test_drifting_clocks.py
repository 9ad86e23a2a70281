"""Leases hold as long as clocks agree about the length of a second: a leader with a slow clock answers stale reads."""

from __future__ import annotations

import pytest

from harness.verdict import Verdict
from tests.trials import trial

RUN = (
    "--cluster", "sim", "--system", "sim-raft", "--time-limit", "12", "--rate", "30", "--fault-on", "1-2,clock-drift=3-5",
    "--nemesis", "clock-drift:leader,partition-leader", "--fault-off", "0.3-2", "--fault-quiet", "1-3",
    "--seed", "3684657614324932644",
)  # fmt: skip


@pytest.mark.parametrize(
    ("reads", "speed", "verdict"),
    [
        ("lease", 0.3, Verdict.INVALID),
        ("lease", 0.95, Verdict.VALID),  # within the bound of the lease
        ("lease", 3, Verdict.VALID),  # its lease ends early
        ("read-index", 0.3, Verdict.VALID),
    ],
)
def test_a_slow_clock_breaks_a_lease_alone(reads: str, speed: float, verdict: Verdict) -> None:
    """The same plan has no effect if reads ask a majority, or if the clock is within the bound of the lease."""
    result = trial(*RUN, "--reads", reads, "--fault-options", f"clock-drift.speed={speed}")
    assert all(record.is_proven for record in result.result.faults), result.result.faults
    assert result.outcome.verdict is verdict
