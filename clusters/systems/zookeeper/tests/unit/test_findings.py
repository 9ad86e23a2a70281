"""Histories in which Labrys found a bug of ZooKeeper keep their verdicts, and the plans can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.planfile import from_json
from nemesis.targets import layout
from tests.findings import checked

FINDINGS = Path(__file__).parents[2] / "findings"
NODES = ("n1", "n2", "n3")


@pytest.mark.parametrize(
    ("finding", "says"),
    [
        ("hole", "Process 95 read 289 at 12.224 s, but process 44's write of 337 had completed at 5.756 s"),
        ("hole-local", "Process 112 read nil at 33.904 s, but process 0's write of 85 had completed at 2.622 s"),
    ],
)
def test_a_follower_that_drops_committed_changes_is_found(finding: str, says: str) -> None:
    """ZOOKEEPER-4925 by seed, and on real nodes."""
    assert says in checked(FINDINGS / f"zookeeper-3.9.3-{finding}" / "history.jsonl.gz")


@pytest.mark.parametrize(
    ("finding", "kinds"),
    [
        ("3.9.3-hole", {"leaders-kill"}),
        ("3.9.3-hole-local", {"kill", "partition-fixed"}),
        ("3.9.3-two-leaders", {"kill", "partition-fixed"}),
        ("3.9.4-gap", {"kill", "partition-random-node"}),
    ],
)
def test_the_plan_of_a_finding_can_be_read(finding: str, kinds: set[str]) -> None:
    """`--plan` accepts each stored plan."""
    path = FINDINGS / f"zookeeper-{finding}" / "plan.json"
    plan = from_json(path.read_text(), where=layout(NODES, {"zookeeper": NODES}), source="plan.json")
    assert {fault.kind for fault in plan.faults} == kinds
