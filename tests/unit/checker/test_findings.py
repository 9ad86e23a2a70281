"""Histories in which Labrys found a real bug (docs/findings): their verdicts stay what they were."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from checker.command import check
from harness.errors import ExitCode
from nemesis.planfile import from_json

FINDINGS = Path(__file__).parents[2] / "data" / "findings"
DROPPED = FINDINGS / "dledger-0.4.0-log-dropped"


def test_the_writes_that_dledger_lost_are_found_lost() -> None:
    """Five of 33 keys are invalid; the first is told by the write, the cas that replaced it, and the read 70 s later."""
    done = CliRunner().invoke(
        check,
        [str(DROPPED / "history.jsonl.gz"), "--model", "cas-register", "--format", "json"],
        catch_exceptions=False,
    )

    assert done.exit_code == ExitCode.INVALID
    found = json.loads(done.stdout)
    assert "(5 of 33 keys are invalid.)" in json.dumps(found)
    assert "process 76's cas had replaced 857 by 932 at 14.999 s" in json.dumps(found)


def test_the_plan_of_a_finding_can_be_read() -> None:
    """A kept plan is of no use if `--plan` does not take it."""
    plan = from_json((DROPPED / "plan.json").read_text(), nodes=["n1", "n2", "n3", "n4", "n5"], source="plan.json")

    assert {fault.kind for fault in plan.faults} == {"leader-kill", "leader-pause"}
