"""Hunts find the planted bugs of the simulated store, and its correct levels are valid.

The runs are those of `labrys hunt --system sim-txn --workload list-append OPTIONS --among KINDS --blind --seed 1`. Here only
the run is carried out that is known to find the bug. `test_txn_schedules.py` has a schedule for each bug.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checker.consistency import TRANSACTION_ORDER
from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from clusters.kit.transactions import TRANSACTION, only_reads
from clusters.systems.sim_txn.bugs import TABLE, Bug
from harness.op import OpType
from harness.verdict import Verdict
from tests.catches.hunts import Hunt, assert_page, caught, unaccused

PAGE = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SYSTEM, SEED = "sim-txn", 1

# For the options of a hunt, its first run that is invalid, and the kinds of faults.
FINDS: dict[str, tuple[int, str]] = {
    "--bug retries-unknown --time-limit 6 --rate 30 --answer-ms 100 --commit-attempts 1": (2, "pause"),
    "--bug applied-twice --time-limit 6 --rate 30": (27, "pause"),
    "--bug old-timestamp --time-limit 6 --rate 30": (1, "packet-loss"),
    "--bug late-snapshot --time-limit 6 --rate 30": (1, "packet-loss"),
    "--bug own-writes-missing --time-limit 6 --rate 30": (1, "packet-loss"),
    "--bug locks-existing-keys --ops-per-key 4 --time-limit 6 --rate 30": (2, "packet-loss"),
    "--bug one-direction --time-limit 6 --rate 30": (1, "packet-loss"),
    "--bug lost-updates --time-limit 6 --rate 30": (1, "packet-loss"),
    "--bug abort-leaves-writes --time-limit 6 --rate 30": (1, "packet-loss"),
    "--bug partial-after-crash --time-limit 6 --rate 30": (1, "kill"),
    "--bug commit-before-sync --time-limit 6 --rate 30": (3, "power-loss"),
    "--bug replica-order --reads-from replica --consistency-model serializable --time-limit 6 --rate 30": (
        1,
        "packet-loss",
    ),
    "--bug old-leader-reads --time-limit 6 --rate 30": (1, "partition-leader"),
    "--bug new-leader-timestamp --time-limit 6 --rate 30": (3, "partition-leader,leader-pause,leader-kill"),
    "--bug forgets-committed --commit-attempts 3 --time-limit 6 --rate 60": (3, "packet-loss,leader-pause"),
    "--bug commit-before-majority --time-limit 6 --rate 30": (1, "partition-leader"),
}
# Levels with what they promise.
CORRECT = {
    "--isolation serializable": "strict-serializable",
    "--isolation snapshot": "snapshot-isolation",
    "--isolation read-committed": "read-committed",
    "--reads-from replica": "serializable",
}
CORRECT_RUNS = 2


@pytest.mark.parametrize("options", FINDS)
def test_a_mistake_is_found(options: str) -> None:
    """The transactions are invalid, with a reason."""
    run, among = FINDS[options]
    hunt = Hunt(("--workload", "list-append", *options.split()), seed=SEED, guided=False, among=among, system=SYSTEM)
    assert len(caught(hunt, run).outcome.invalid) == 1


@pytest.mark.parametrize("options", CORRECT)
@pytest.mark.parametrize("runs", [CORRECT_RUNS, pytest.param(250, marks=pytest.mark.night)])
def test_the_correct_version_is_not_accused(options: str, runs: int) -> None:
    """Each level passes with all kinds of faults."""
    level = CORRECT[options]
    words = ("--workload", "list-append", *options.split(), "--consistency-model", level, "--time-limit", "6")
    hunt = Hunt((*words, "--rate", "30"), seed=SEED, system=SYSTEM)
    assert unaccused(hunt, runs)[Verdict.VALID]


def test_the_page_has_each_bug_and_each_find() -> None:
    """The tables have one row for each bug, and exactly the runs in this test."""
    assert_page(PAGE, TABLE, FINDS)
    assert set(TABLE) == set(Bug) - {Bug.NONE}


def test_the_systems_order_finds_what_no_other_source_finds() -> None:
    """Replicas may show old states, so `linearizable-keys` accuses the correct store, and the others miss the mistake."""
    others = ["writes-follow-reads", "sequential-keys"]
    assert registers_verdicts(Bug.NONE, others, ["linearizable-keys"], [TRANSACTION_ORDER]) == [
        "valid",
        "invalid",
        "valid",
    ]
    assert registers_verdicts(Bug.ONE_DIRECTION, others, [TRANSACTION_ORDER]) == ["valid", "invalid"]


def registers_verdicts(bug: Bug, *several: list[str]) -> list[str]:
    """Returns the verdicts on a run with reads from replicas, by each of several choices of what orders versions."""
    words = ("--workload", "rw-register", "--reads-from", "replica", "--consistency-model", "serializable")
    hunt = Hunt(
        (*words, "--bug", str(bug), "--time-limit", "6", "--rate", "30"),
        seed=SEED, guided=False, among="packet-loss", system=SYSTEM,
    )  # fmt: skip
    trial = hunt.nth(3)
    assert trial is not None
    operations = [operation for operation in trial.operations if operation.f == TRANSACTION]
    wrote = [operation for operation in operations if operation.type is OpType.OK and not only_reads(operation.value)]
    assert wrote
    assert all(operation.order is not None for operation in wrote)
    columns = of_operations(operations)
    return [
        str(judge(columns, workload="rw-register", model="serializable", sources=sources).verdict)
        for sources in several
    ]
