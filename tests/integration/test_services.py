"""A system with two services through a whole run on real nodes; see tests/watched_store.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.documents import is_proven

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

FAULTS = "kill:voter+leader,kill:store+n2,pause:voter+minority"


def test_faults_hit_the_service_that_they_aim_at(tmp_path: Path) -> None:
    """A kill of the leading voter and one of a store; the store keeps the configuration that it rewrote."""
    command = [
        sys.executable, "-m", "cli", "test", "--system", "tests.watched_store:WatchedStore", "--nemesis", FAULTS, "--seed", "3",
        "--fault-on", "3", "--fault-off", "1", "--time-limit", "20", "--rate", "50",
        "--store", str(tmp_path), "--cluster-name", f"services-{os.getpid()}",
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (results,) = tmp_path.glob("*/2*/results.json")
    document = json.loads(results.read_text())
    plan = json.loads((results.parent / "plan.json").read_text())["faults"]
    named = {fault["id"]: f"{fault['kind']}:{fault['role']}" for fault in plan}
    faults = {named[fault["planned"]["id"]]: fault for fault in document["faults"]}
    assert set(faults) == {"kill:voter", "kill:store", "pause:voter"}
    assert all(is_proven(fault) for fault in faults.values()), faults
    assert faults["kill:voter"]["targets"] == ["n1"], "the first voter leads"
    assert len(faults["pause:voter"]["targets"]) == 1, "the minority of three voters, not of five nodes"
    assert document["other_leaders"]["voter"]["leadership"]["changes"] >= 1
    assert {seen["node"] for seen in document["other_sightings"]["voter"]} == {"n1", "n2", "n3"}
    assert document["sightings"] == [], "the store has no status"
    (log,) = results.parent.glob("nodes/n2/store.log")
    # A client that goes away during a request makes Python's server print a traceback between these lines.
    starts = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert starts == [{"starts": 1}, {"starts": 2}]
