"""Planted bugs in a program with a mapped file: hunts by seed find each, and the program without them passes."""

from __future__ import annotations

import itertools
import os

import pytest

from harness.verdict import Verdict
from tests.catches.hunts import Hunt

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="programs in virtual time need root, to trace them")
SYSTEM = "tests/catches/mapped/system.py:Mapped"
POWER = (
    "--cluster", "sim", "--nodes", "1", "--nemesis", "power-loss:all", "--fault-on", "0.2-0.4", "--fault-off", "0.3-0.8",
    "--fault-quiet", "0.5-1", "--rate", "100", "--time-limit", "10",
)  # fmt: skip
ERRORS = (
    "--cluster", "sim", "--nodes", "1", "--nemesis", "disk-error:all,power-loss:all",
    "--fault-options", "disk-error.call=msync", "--fault-on", "0.3-0.8", "--fault-off", "0.3-0.8", "--fault-quiet", "0.5-1",
    "--rate", "5", "--time-limit", "20",
)  # fmt: skip
PAGES = (
    *ERRORS[:4], "--nemesis", "disk-error:all", "--fault-options", "disk-error.call=load,disk-error.times=8", *ERRORS[8:],
)  # fmt: skip
MOST = 60


@pytest.mark.parametrize("bug", ["no-msync", "asynchronous-msync", "sync-file-range", "answer-before-msync"])
def test_a_planted_bug_is_found(bug: str) -> None:
    """An answer comes before its page is durable."""
    find = Hunt((*POWER, "--bug", bug), seed=1, system=SYSTEM).first(MOST)
    assert find is not None
    assert find.parts == ("linearizable",)


def test_a_program_that_syncs_again_after_an_error_is_found() -> None:
    """The second msync works, and makes nothing durable."""
    find = Hunt((*ERRORS, "--bug", "msync-again"), seed=1, system=SYSTEM).first(MOST)
    assert find is not None
    assert find.parts == ("linearizable",)


def test_a_program_that_takes_an_unreadable_page_for_a_new_one_is_found() -> None:
    """It handles SIGBUS, and answers that the register is empty."""
    find = Hunt((*PAGES, "--bug", "unreadable-is-new"), seed=1, system=SYSTEM).first(MOST)
    assert find is not None
    assert find.parts == ("linearizable",)


@pytest.mark.parametrize("options", [POWER, ERRORS, PAGES], ids=["power losses", "errors too", "pages"])
@pytest.mark.parametrize("runs", [4, pytest.param(30, marks=pytest.mark.night)])
def test_the_correct_program_passes(runs: int, options: tuple[str, ...]) -> None:
    """Each change is in its page before the answer. After an error the program ends, and then writes all pages again."""
    hunt = Hunt(options, seed=1, system=SYSTEM)
    drawn = (hunt.next()[1] for _ in range(5 * runs))
    in_time = (trial for trial in drawn if trial is not None)  # others have no time for their faults
    trials = list(itertools.islice(in_time, runs))
    assert len(trials) == runs
    for trial in trials:
        assert trial.outcome.judged is Verdict.VALID, trial.outcome.sentence
