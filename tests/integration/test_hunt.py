"""A hunt on real nodes: it draws the faults of each run from those that the nodes support, and stores every run."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.local import list_clusters

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_a_hunt_on_real_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs, each with its line and its folder; the hunt leaves no cluster behind."""
    others = {cluster.name for cluster in list_clusters()}
    short = ["--time-limit", "5", "--fault-on", "0.5-1", "--fault-off", "0.5-1", "--fault-quiet", "0.5-1"]
    words = [
        "hunt",
        "--cluster",
        "local",
        "--nodes",
        "3",
        "--system",
        "dledger",
        "--among",
        "pause,partition-leader",
    ]
    code = cli.invoke([*words, *short, "--runs", "2", "--finds", "2", "--seed", "18", "--store", str(tmp_path)])
    output = capsys.readouterr().err
    documents = [json.loads(path.read_text()) for path in tmp_path.glob("*/2*/results.json")]
    assert len(documents) == 2, output
    for document in documents:
        assert shlex.split(document["reproduce"])[:4] == ["labrys", "test", "--seed", str(document["seed"])]
        assert document["reproduce"] in " ".join(output.split())
        assert {fault["kind"] for fault in document["faults"]} <= {"pause", "partition-leader"}
    assert code == (1 if False in [document["valid"] for document in documents] else 0)
    assert "2 runs in " in output
    assert {cluster.name for cluster in list_clusters()} == others
