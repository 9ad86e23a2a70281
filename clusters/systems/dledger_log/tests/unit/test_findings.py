"""Histories in which Labrys found a bug of DLedger's log keep their verdicts, and the plans can be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nemesis.planfile import from_json
from nemesis.targets import layout
from tests.findings import checked

FINDINGS = Path(__file__).parents[2] / "findings"
SET_DROPPED = FINDINGS / "dledger-log-0.4.0-log-dropped"
PARTITIONS = FINDINGS / "dledger-log-0.4.0-partitions"


def test_the_log_that_plain_servers_dropped_is_found_lost() -> None:
    """A read after the last fault still has 7,449 elements. Later reads, without any fault, have 58."""
    history = SET_DROPPED / "history.jsonl.gz"
    text = checked(history, "--workload", "set")
    assert "7369 acknowledged, 43 ok, 15 recovered, 0 stale, 7406 lost" in text
    with gzip.open(history, "rt") as lines:
        events = [json.loads(line) for line in lines][1:]
    healed = max(event["time"] for event in events if event["process"] == "nemesis")
    reads = [event for event in events if event["f"] == "read" and event["type"] == "ok"]
    assert [len(read["value"]) for read in reads] == [7449, 58, 58, 58, 58]
    assert all(read["time"] > healed for read in reads)


@pytest.mark.parametrize(
    ("finding", "nodes", "kinds"),
    [
        (SET_DROPPED, ["n1", "n2", "n3", "n4", "n5"], {"leaders-kill"}),
        (PARTITIONS, ["n1", "n2", "n3", "n4", "n5"], {"partition-random-halves"}),
    ],
)
def test_the_plan_of_a_finding_can_be_read(finding: Path, nodes: list[str], kinds: set[str]) -> None:
    """`--plan` accepts each stored plan."""
    plan = from_json((finding / "plan.json").read_text(), where=layout(nodes), source="plan.json")

    assert {fault.kind for fault in plan.faults} == kinds
