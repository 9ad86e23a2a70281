"""For each check of the workload `ledger`, a bug of the simulated BookKeeper that breaks it in a running system.

The runs are those of `labrys hunt --system sim-bookkeeper --workload ledger --protocol ledgers --blind --seed 1`, with
the bug and the options of the table. Here only the run is carried out that is known to break the check. The same table is in
clusters/systems/sim_bookkeeper/README.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.verdict import Verdict
from tests.catches.hunts import Hunt, rows_of

if TYPE_CHECKING:
    from commands.run.trial import Trial

PAGE = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SEED, AMONG = 1, "packet-loss,partition-random-node"
JUDGED = "ledger"
DRAWN = "--answer-ms 1000 --takeover-every 0"  # what a hunt would draw, and what no ledger depends on
SHORT = f"--retry-ms 200 {DRAWN} --time-limit 4 --rate 20 --fault-on 0.1-0.6 --fault-off 0.1-0.5 --fault-quiet 0.1-0.5"
LONG = f"--retry-ms 900 {DRAWN} --time-limit 8 --rate 100 --fault-on 2-3 --fault-off 0.2-1 --fault-quiet 0.1-0.5"
SPARES = f"--nodes 9 --ensemble 3 {SHORT.replace('200', '100', 1)}"

# For the anomaly that the judge finds, or the other part of the verdict: the bug, the options, and the run.
FINDS = {
    "lost": ("one-absence-ends-recovery", SHORT, 19),
    "conflict": ("id-given-again", SHORT, 2),
    "beyond-end": ("adds-not-fenced", SHORT, 1),
    "confirmed-beyond-end": ("unconfirmed-reads", SHORT, 9),
    "confirmed-only-rises": ("confirmed-goes-back", LONG, 9),
    "ends-differ": ("cas-left-out", f"--recover-share 0.05 {SHORT}", 18),
    "under-replicated": ("recovered-not-written-back", SHORT, 8),
    "misplaced": ("answers-of-replaced-count", SPARES, 2),
}
CORRECT_RUNS = 3


def nth(options: str, run: int, seed: int = SEED) -> Trial | None:
    """Carries out a run of a hunt."""
    words = ("--workload", "ledger", "--protocol", "ledgers", *options.split())
    return Hunt(words, seed=seed, guided=False, among=AMONG, system="sim-bookkeeper").nth(run)


@pytest.mark.parametrize("broken", FINDS)
def test_a_bug_breaks_the_check(broken: str) -> None:
    """The judge finds this anomaly, and its explanations tell the fragments; or the part of this name is invalid."""
    bug, options, run = FINDS[broken]
    trial = nth(f"--bug {bug} {options}", run)
    assert trial is not None
    invalid = {part.name: part for part in trial.outcome.parts if part.verdict is Verdict.INVALID}
    if broken not in invalid:
        details = invalid[JUDGED].details
        assert details["counts"][broken]
        assert all("The fragment from entry" in detail["explanation"] for detail in details["counterexamples"])


def test_a_reader_sees_an_entry_that_the_ledger_does_not_have() -> None:
    """Finding 5 in BookKeeper 4.17.3, as a hunt found it: all bookies have the entry after the last one."""
    trial = nth(f"--bug recoveries-confirm {LONG}", 15, seed=2)
    assert trial is not None
    (part,) = trial.outcome.invalid
    assert part == JUDGED
    (judged,) = [candidate for candidate in trial.outcome.parts if candidate.name == JUDGED]
    assert "1274 at offset 7 is lost: process 425 read 1274 at offset 7" in judged.reason
    assert "the last entry 6. The fragment from entry 0 on" in judged.reason
    assert "n1, n2 and n3 have 1274" in judged.reason


@pytest.mark.parametrize("options", [SHORT, SPARES, LONG])
def test_the_correct_version_is_not_accused(options: str) -> None:
    """The same faults break no check."""
    for run in range(1, CORRECT_RUNS + 1):
        trial = nth(options, run)
        assert trial is not None
        assert trial.outcome.invalid == (), run


def test_the_page_has_each_check() -> None:
    """The table has exactly these runs."""
    assert rows_of(PAGE, "| check | bug | options | run |") == {
        (broken, bug, options, str(run)) for broken, (bug, options, run) in FINDS.items()
    }
