"""Histories in which Labrys found a real bug (docs/findings) keep their verdicts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.check.command import check
from harness.errors import ExitCode
from nemesis.planfile import from_json
from nemesis.targets import layout

FINDINGS = Path(__file__).parents[2] / "data" / "findings"
DROPPED = FINDINGS / "dledger-0.4.0-log-dropped"
KEPT = FINDINGS / "dledger-0.4.0-kept-entries"
STUCK = FINDINGS / "dledger-0.4.0-followers-stuck"
SET_DROPPED = FINDINGS / "dledger-log-0.4.0-log-dropped"
PARTITIONS = FINDINGS / "dledger-log-0.4.0-partitions"
POWER_LOSS = FINDINGS / "rocketmq-controller-5.3.3-power-loss"
OLD_READ = FINDINGS / "rocketmq-controller-5.3.3-old-read"
LEFT_OUT = FINDINGS / "rocketmq-controller-5.3.3-left-out"
TWO_MASTERS = FINDINGS / "rocketmq-controller-5.3.3-two-first-masters"
TWO_MASTERS_LOCAL = FINDINGS / "rocketmq-controller-5.3.3-two-first-masters-local"
DISK_FULL = FINDINGS / "rocketmq-controller-5.3.3-disk-full"
OFFSETS_AGAIN = FINDINGS / "rocketmq-brokers-5.3.3-offsets-again"
OLD_ENSEMBLE = FINDINGS / "bookkeeper-4.17.3-old-ensemble"
ORDERS_DIFFER = FINDINGS / "nacos-0.8.0-orders-differ"
REPLACED = FINDINGS / "bookkeeper-4.17.3-replaced-bookies"


def checked(history: Path, *options: str, code: ExitCode = ExitCode.INVALID) -> str:
    """Returns what `labrys check` prints of a history as JSON in one line; it ends with the expected code."""
    done = CliRunner().invoke(check, [str(history), *options, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == code
    return json.dumps(json.loads(done.stdout))


def test_the_writes_that_dledger_lost_are_found_lost() -> None:
    """Five of 33 keys are invalid. The first message has the write, the cas that replaced it, and the read 70 s later."""
    found = checked(DROPPED / "history.jsonl.gz", "--model", "cas-register")
    assert "(5 of 33 keys are invalid.)" in found
    assert "process 76's cas from 857 to 932 had completed at 14.999 s" in found


def test_the_entries_that_a_follower_kept_are_found() -> None:
    """Two replicas have a write that nobody else took, and the third one lacks it. The last reads go through each node."""
    found = checked(KEPT / "history.jsonl.gz", "--model", "cas-register")
    assert "(1 of 12 keys is invalid.)" in found
    assert "Process 59 read 405 at 31.073 s, but process 64 read nil at 31.341 s." in found


def test_the_log_that_plain_servers_dropped_is_found_lost() -> None:
    """A read after the last fault still has 7,449 elements. Later reads, without any fault, have 58."""
    history = SET_DROPPED / "history.jsonl.gz"
    found = checked(history, "--workload", "set")
    assert "7369 acknowledged, 43 ok, 15 recovered, 0 stale, 7406 lost" in found
    with gzip.open(history, "rt") as lines:
        events = [json.loads(line) for line in lines][1:]
    healed = max(event["time"] for event in events if event["process"] == "nemesis")
    reads = [event for event in events if event["f"] == "read" and event["type"] == "ok"]
    assert [len(read["value"]) for read in reads] == [7449, 58, 58, 58, 58]
    assert all(read["time"] > healed for read in reads)


def test_the_offsets_that_a_broker_gave_again_are_found() -> None:
    """601 messages were acknowledged with offsets that other acknowledged messages have had for minutes."""
    history = OFFSETS_AGAIN / "history.jsonl.gz"
    found = checked(history, "--workload", "log")
    assert "Offset 2160 has two entries" in found
    assert "601 conflict" in found


def test_entries_that_bookkeeper_left_on_the_old_ensemble_are_found() -> None:
    """Two acknowledged entries are on no bookie that the metadata name, and fifteen on fewer than the ack quorum."""
    history = OLD_ENSEMBLE / "history.jsonl.gz"
    found = checked(history, "--workload", "ledger")
    assert "process 62's append of 1109 was acknowledged with offset 58 at 15.531 s" in found
    assert "15 under-replicated" in found


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


def test_the_old_reads_of_a_controller_are_found() -> None:
    """A cut-off leader with a clock set back answers that a group has no brokers, after the group got one."""
    found = checked(OLD_READ / "history.jsonl.gz", "--model", "workloads.controller.model:BrokerGroup")
    assert "2 of 92 keys are invalid" in found


@pytest.mark.parametrize(
    ("finding", "keys", "group"), [(TWO_MASTERS, "1 of 4 keys", "k0"), (TWO_MASTERS_LOCAL, "1 of 146 keys", "k54")]
)
def test_the_second_first_master_of_a_group_is_found(finding: Path, keys: str, group: str) -> None:
    """Two elections without an answer both took effect, and one group is in epoch 2. No other key is invalid."""
    found = checked(finding / "history.jsonl.gz", "--model", "workloads.controller.model:BrokerGroup")
    assert f"{keys} is invalid" in found
    assert f"Key {group}: " in found
    with gzip.open(finding / "history.jsonl.gz", "rt") as lines:
        events = [event for event in map(json.loads, lines) if event.get("key") == group]
    elections = [event["type"] for event in events if event["f"] == "elect" and event["type"] == "info"]
    states = [event["value"] for event in events if event["f"] == "state" and event["type"] == "ok"]
    assert len(elections) == 2
    assert {state["master_epoch"] for state in states} == {2}


@pytest.mark.parametrize(
    ("finding", "nodes", "kinds"),
    [
        (DROPPED, ["n1", "n2", "n3", "n4", "n5"], {"kill", "pause"}),
        (STUCK, ["n1", "n2", "n3"], {"partition-leader"}),
        (KEPT, ["n1", "n2", "n3"], {"kill", "partition-leader"}),
        (SET_DROPPED, ["n1", "n2", "n3", "n4", "n5"], {"leaders-kill"}),
        (PARTITIONS, ["n1", "n2", "n3", "n4", "n5"], {"partition-random-halves"}),
        (POWER_LOSS, ["n1", "n2", "n3", "n4", "n5"], {"partition-leader", "power-loss"}),
        (OLD_READ, ["n1", "n2", "n3", "n4", "n5"], {"clock-skew", "partition-leader"}),
        (LEFT_OUT, ["n1", "n2", "n3", "n4", "n5"], {"partition-leader", "leadership-transfer"}),
        (TWO_MASTERS, ["n1", "n2", "n3", "n4", "n5"], {"kill", "partition-leader", "pause"}),
        (TWO_MASTERS_LOCAL, ["n1", "n2", "n3"], {"kill", "pause"}),
        (DISK_FULL, ["n1", "n2", "n3"], {"disk-full", "kill"}),
        (ORDERS_DIFFER, ["n1", "n2", "n3", "n4", "n5"], set()),
    ],
)
def test_the_plan_of_a_finding_can_be_read(finding: Path, nodes: list[str], kinds: set[str]) -> None:
    """`--plan` accepts each stored plan."""
    plan = from_json((finding / "plan.json").read_text(), where=layout(nodes), source="plan.json")

    assert {fault.kind for fault in plan.faults} == kinds


def test_appends_to_a_closed_ledger_that_replaced_bookies_acknowledged_are_found() -> None:
    """Three appends are acknowledged beyond the end of their ledger, and no recovery has them."""
    history = REPLACED / "history.jsonl.gz"
    found = checked(history, "--workload", "ledger")
    assert "process 13 recovered the ledger to the last entry 0 at 147.906 s, and process 1 appended entry 1" in found
    assert "3 beyond-end" in found


def test_a_node_of_nacos_with_another_value_at_the_end_is_found(tmp_path: Path) -> None:
    """Two writes were under way at the same time, and one node carried them out in the other order. Other reads may be old."""
    lines = gzip.decompress((ORDERS_DIFFER / "history.jsonl.gz").read_bytes()).decode().splitlines()
    header, *events = map(json.loads, lines)
    kept = [event for event in events if event["f"] != "read" or event.get("phase") == "final"]
    settled = tmp_path / "settled.jsonl"
    numbered = [header, *({**event, "index": place} for place, event in enumerate(kept))]
    settled.write_text("".join(f"{json.dumps(each)}\n" for each in numbered), encoding="utf-8")
    found = checked(settled)
    assert "Process 267's write of 1149 completed at 10.368 s, process 276 read 982 at 12.425 s" in found
    assert "process 291 read 1149 at 12.492 s" in found
