"""Histories in which Labrys found a bug of RocketMQ keep their verdicts, and the plans can be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nemesis.planfile import from_json
from nemesis.targets import layout
from tests.findings import checked

FINDINGS = Path(__file__).parents[2] / "findings"
POWER_LOSS = FINDINGS / "rocketmq-controller-5.3.3-power-loss"
OLD_READ = FINDINGS / "rocketmq-controller-5.3.3-old-read"
LEFT_OUT = FINDINGS / "rocketmq-controller-5.3.3-left-out"
TWO_MASTERS = FINDINGS / "rocketmq-controller-5.3.3-two-first-masters"
TWO_MASTERS_LOCAL = FINDINGS / "rocketmq-controller-5.3.3-two-first-masters-local"
DISK_FULL = FINDINGS / "rocketmq-controller-5.3.3-disk-full"
OFFSETS_AGAIN = FINDINGS / "rocketmq-brokers-5.3.3-offsets-again"


def test_the_offsets_that_a_broker_gave_again_are_found() -> None:
    """601 messages were acknowledged with offsets that other acknowledged messages have had for minutes."""
    history = OFFSETS_AGAIN / "history.jsonl.gz"
    text = checked(history, "--workload", "log")
    assert "Offset 2160 has two entries" in text
    assert "601 conflict" in text


def test_the_old_reads_of_a_controller_are_found() -> None:
    """A cut-off leader with a clock set back answers that a group has no brokers, after the group got one."""
    text = checked(OLD_READ / "history.jsonl.gz", "--model", "clusters.systems.rocketmq.workloads.model:BrokerGroup")
    assert "2 of 92 keys are invalid" in text


@pytest.mark.parametrize(
    ("finding", "keys", "group"), [(TWO_MASTERS, "1 of 4 keys", "k0"), (TWO_MASTERS_LOCAL, "1 of 146 keys", "k54")]
)
def test_the_second_first_master_of_a_group_is_found(finding: Path, keys: str, group: str) -> None:
    """Two elections without an answer both took effect, and one group is in epoch 2. No other key is invalid."""
    text = checked(finding / "history.jsonl.gz", "--model", "clusters.systems.rocketmq.workloads.model:BrokerGroup")
    assert f"{keys} is invalid" in text
    assert f"Key {group}: " in text
    with gzip.open(finding / "history.jsonl.gz", "rt") as lines:
        events = [event for event in map(json.loads, lines) if event.get("key") == group]
    elections = [event["type"] for event in events if event["f"] == "elect" and event["type"] == "info"]
    states = [event["value"] for event in events if event["f"] == "state" and event["type"] == "ok"]
    assert len(elections) == 2
    assert {state["master_epoch"] for state in states} == {2}


@pytest.mark.parametrize(
    ("finding", "nodes", "kinds"),
    [
        (POWER_LOSS, ["n1", "n2", "n3", "n4", "n5"], {"partition-leader", "power-loss"}),
        (OLD_READ, ["n1", "n2", "n3", "n4", "n5"], {"clock-skew", "partition-leader"}),
        (LEFT_OUT, ["n1", "n2", "n3", "n4", "n5"], {"partition-leader", "leadership-transfer"}),
        (TWO_MASTERS, ["n1", "n2", "n3", "n4", "n5"], {"kill", "partition-leader", "pause"}),
        (TWO_MASTERS_LOCAL, ["n1", "n2", "n3"], {"kill", "pause"}),
        (DISK_FULL, ["n1", "n2", "n3"], {"disk-full", "kill"}),
    ],
)
def test_the_plan_of_a_finding_can_be_read(finding: Path, nodes: list[str], kinds: set[str]) -> None:
    """`--plan` accepts each stored plan."""
    plan = from_json((finding / "plan.json").read_text(), where=layout(nodes), source="plan.json")

    assert {fault.kind for fault in plan.faults} == kinds
