"""Histories in which Labrys found a bug of Nacos keep their verdicts, and the plans can be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nemesis.planfile import from_json
from nemesis.targets import layout
from tests.findings import checked

FINDINGS = Path(__file__).parents[2] / "findings"
ORDERS_DIFFER = FINDINGS / "nacos-0.8.0-orders-differ"


def test_a_node_of_nacos_with_another_value_at_the_end_is_found(tmp_path: Path) -> None:
    """Two writes were under way at the same time, and one node carried them out in the other order. Other reads may be old."""
    lines = gzip.decompress((ORDERS_DIFFER / "history.jsonl.gz").read_bytes()).decode().splitlines()
    header, *events = map(json.loads, lines)
    kept = [event for event in events if event["f"] != "read" or event.get("phase") == "final"]
    settled = tmp_path / "settled.jsonl"
    numbered = [header, *({**event, "index": index} for index, event in enumerate(kept))]
    settled.write_text("".join(f"{json.dumps(event)}\n" for event in numbered), encoding="utf-8")
    text = checked(settled)
    assert "Process 267's write of 1149 completed at 10.368 s, process 276 read 982 at 12.425 s" in text
    assert "process 291 read 1149 at 12.492 s" in text


@pytest.mark.parametrize(
    ("finding", "nodes", "kinds"),
    [
        (ORDERS_DIFFER, ["n1", "n2", "n3", "n4", "n5"], set()),
    ],
)
def test_the_plan_of_a_finding_can_be_read(finding: Path, nodes: list[str], kinds: set[str]) -> None:
    """`--plan` accepts each stored plan."""
    plan = from_json((finding / "plan.json").read_text(), where=layout(nodes), source="plan.json")

    assert {fault.kind for fault in plan.faults} == kinds
