"""A run of DLedger on real nodes: what it builds is in all that it writes, and on the nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.system import DLedgerSystem

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[5]
DEADLINE_S = 240.0


def test_a_run_records_what_it_built(tmp_path: Path) -> None:
    """The digest is in test.json, in results.json and in the report; the build is a phase; the log has the path of the jar."""
    built = DLedgerSystem.build(DLedgerOptions(), print)
    ended = subprocess.run(
        [
            sys.executable, "-m", "cli", "test", "--system", "dledger", "--nodes", "3",
            "--cluster-name", f"builds-{os.getpid()}", "--nemesis", "",
            "--rate", "10", "--time-limit", "3", "--store", str(tmp_path), "--format", "json",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert f"dledger-node 0.4.0 ({built.provenance.short}) comes from the " in ended.stderr
    results = json.loads(ended.stdout)
    run = Path(results["run"])
    test = json.loads((run / "test.json").read_text())
    for document in (test, results):
        assert document["artifact"] == json.loads(json.dumps(asdict(built.provenance)))
        assert document["versions"]["dledger-node"] == built.provenance.short
    assert "build" in [phase["name"] for phase in results["phases"]]
    assert built.provenance.digest in (run / "report.html").read_text()
