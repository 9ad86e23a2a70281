"""Histories in which Labrys found a bug of DLedger keep their verdicts, and the plans can be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from harness.errors import ExitCode
from nemesis.planfile import from_json
from nemesis.targets import layout
from tests.findings import checked

FINDINGS = Path(__file__).parents[2] / "findings"
DROPPED = FINDINGS / "dledger-0.4.0-log-dropped"
KEPT = FINDINGS / "dledger-0.4.0-kept-entries"
DEAD = FINDINGS / "dledger-0.4.0-dead-leader"
STUCK = FINDINGS / "dledger-0.4.0-followers-stuck"


def test_the_writes_that_dledger_lost_are_found_lost() -> None:
    """Five of 33 keys are invalid. The first message has the write, the cas that replaced it, and the read 70 s later."""
    text = checked(DROPPED / "history.jsonl.gz", "--model", "cas-register")
    assert "(5 of 33 keys are invalid.)" in text
    assert "process 76's cas from 857 to 932 had completed at 14.999 s" in text


def test_the_entries_that_a_follower_kept_are_found() -> None:
    """Two replicas have a write that nobody else took, and the third one lacks it. The last reads go through each node."""
    text = checked(KEPT / "history.jsonl.gz", "--model", "cas-register")
    assert "(1 of 12 keys is invalid.)" in text
    assert "Process 59 read 405 at 31.073 s, but process 64 read nil at 31.341 s." in text


def test_where_the_service_ended_no_write_is_acknowledged_and_no_read_is_wrong() -> None:
    """From the second cut of one of three nodes on, no write succeeds, even after healing. All reads are right."""
    history = STUCK / "history.jsonl.gz"
    checked(history, "--model", "cas-register", code=ExitCode.VALID)
    with gzip.open(history, "rt") as lines:
        events = [json.loads(line) for line in lines][1:]
    cuts = [event for event in events if event["f"] == "start-partition-leader" and event["value"]["targets"]]
    heals = [event for event in events if event["f"] == "stop-partition-leader"]
    writes = [event for event in events if event["f"] in {"write", "cas"}]
    assert max(write["time"] for write in writes if write["type"] == "ok") < cuts[1]["time"]
    assert sum(write["type"] == "invoke" and write["time"] > heals[-1]["time"] for write in writes) >= 50


@pytest.mark.parametrize(
    ("finding", "nodes", "kinds"),
    [
        (DROPPED, ["n1", "n2", "n3", "n4", "n5"], {"kill", "pause"}),
        (STUCK, ["n1", "n2", "n3"], {"partition-leader"}),
        (KEPT, ["n1", "n2", "n3"], {"kill", "partition-leader"}),
        (DEAD, ["n1", "n2", "n3"], {"kill", "packet-delay"}),
    ],
)
def test_the_plan_of_a_finding_can_be_read(finding: Path, nodes: list[str], kinds: set[str]) -> None:
    """`--plan` accepts each stored plan."""
    plan = from_json((finding / "plan.json").read_text(), where=layout(nodes), source="plan.json")

    assert {fault.kind for fault in plan.faults} == kinds
