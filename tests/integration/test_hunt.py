"""A hunt on real nodes: it draws the faults of each run from those that the nodes support, and stores every run."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.local import list_clusters
from tests.documents import is_proven
from tests.examples import DEFAULT

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
        DEFAULT,
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
        assert {fault["planned"]["kind"] for fault in document["faults"]} <= {"pause", "partition-leader"}
    assert code == (1 if False in [document["valid"] for document in documents] else 0)
    assert "2 runs in " in output
    assert {cluster.name for cluster in list_clusters()} == others


def test_a_find_of_the_simulator_is_confirmed_as_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed command runs on real nodes and proves its faults there, which were short and waited for messages."""
    faults = [
        "--nemesis",
        "pause",
        "--fault-on",
        "0.03-0.2",
        "--fault-off",
        "1",
        "--fault-quiet",
        "1-1",
        "--fault-wait",
        "0.2",
    ]
    words = ["test", "--cluster", "sim", "--nodes", "3", "--read-mode", "unsafe", *faults, "--time-limit", "4"]
    assert cli.invoke([*words, "--seed", "2", "--store", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    (line,) = [line for line in output.splitlines() if line.startswith("confirm")]
    assert "It has no --fault-wait" in output
    assert "It has --fault-on 1 in place of 0.03-0.2" in output
    assert cli.invoke([*shlex.split(line.partition(": labrys ")[2]), "--store", str(tmp_path / "real")]) in {0, 1}
    (run,) = tmp_path.glob(f"{DEFAULT}-*/2*")
    assert cli.invoke(["replay", str(run), "--cluster", "local", "--store", str(tmp_path / "real")]) in {0, 1}
    assert "last 1 s, and later ones begin later" in capsys.readouterr().err
    for path in (tmp_path / "real").glob("*/2*/results.json"):
        faults = json.loads(path.read_text())["faults"]
        assert any(is_proven(fault) for fault in faults), path.read_text()
