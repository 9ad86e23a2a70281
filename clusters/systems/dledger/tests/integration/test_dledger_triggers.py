"""A kill meets a snapshot of DLedger that is on its way, because it begins with the line of the log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.documents import is_proven

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[5]
DEADLINE_S = 240.0
SNAPSHOT_MS = 1500
PROMPT_S = 1.0  # on a quiet machine it is 10 ms; on a busy one, the kill must still come before the end of the snapshot
# A follower that gets a snapshot after its restart can stay behind, a bug of DLedger. So the waits are short.
WORDS = (
    *("--nodes", "3", "--rate", "30", "--heartbeat-ms", "200", "--time-limit", "16", "--fault-quiet", "1-1"),
    *("--snapshot-threshold", "150", "--snapshot-ms", str(SNAPSHOT_MS), "--nemesis", "kill:trigger"),
    *("--fault-trigger", "log-line:snapshot", "--fault-wait", "8", "--fault-on", "2-3", "--recovery-timeout", "3"),
    *("--lead-timeout", "2", "--no-final-reads"),
)


def lines_of(run: Path, node: str) -> list[str]:
    """Returns the lines of a node's log, the oldest first."""
    logs = sorted((run / "nodes" / node).glob("node.*.log"), reverse=True)
    return [line for log in logs for line in log.read_text().splitlines()]


@pytest.mark.night
def test_a_kill_meets_a_snapshot(tmp_path: Path) -> None:
    """The record has the line and its node; the node saves no snapshot between this line and its next start."""
    ended = subprocess.run(
        [
            sys.executable, "-m", "cli", "test", "--cluster-name", f"triggers-{os.getpid()}",
            "--store", str(tmp_path), "--format", "json", *WORDS,
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    results: dict[str, Any] = json.loads(ended.stdout)
    run = Path(results["run"])
    fault = results["faults"][0]
    assert fault["planned"]["target"] == {"type": "at-trigger"}
    assert fault["planned"]["trigger"] == {"name": "log-line", "limit_s": 8.0, "parameters": {"line": "snapshot"}}
    assert is_proven(fault), fault["error"]
    fired = fault["fired"]
    (node,) = fault["targets"]
    line = fired["measured"]["line"]
    assert fired["measured"]["node"] == node
    assert fired["what"].startswith(f"with a log line of {node}: ")
    assert re.search(r" RegisterStateMachine: begins to save a snapshot up to index \d+ with \d+ registers$", line)

    stamped = datetime.fromisoformat(line.split()[0])
    seen = datetime.fromisoformat(results["clocks"]["began_utc"]) + timedelta(microseconds=fired["time_ns"] / 1000)
    assert abs(seen - stamped) < timedelta(seconds=PROMPT_S)

    lines = lines_of(run, node)
    after = lines[lines.index(line) + 1 :]
    until = next(index for index, line in enumerate(after) if " Main: starting with " in line)
    assert not [line for line in after[:until] if "saved successfully" in line]
    assert "faults-effective" in results["parts"]
    assert results["parts"]["faults-effective"]["valid"] is True
