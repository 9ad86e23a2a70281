"""Planted bugs in ordinary programs in C, Go and Java: hunts by seed find each, and the programs without them pass.

The programs are those of docs/guide/own-binary-by-seed.md, which has the numbers of runs.
"""

from __future__ import annotations

import os

import pytest

from harness.verdict import Verdict
from tests.catches.hunts import Hunt

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="programs in virtual time need root, to trace them")
SYSTEM = "examples/own_binary/system.py:OwnBinary"
PLACE = ("--cluster", "sim", "--nodes", "1")
POWER = (
    "--nemesis", "power-loss:all", "--fault-on", "0.2-0.4", "--fault-off", "0.3-0.8", "--fault-quiet", "0.5-1", "--rate", "100",
    "--time-limit", "10",
)  # fmt: skip
RACE = ("--nemesis", "none", "--rate", "200", "--time-limit", "5")
PREEMPTED, STALLED = ("--preempt", "0.1"), ("--preempt", "0", "--stalls", "10")
MOST = 60
ROWS = [("no-sync", POWER), ("answer-before-sync", POWER), ("cas-in-two-steps", (*RACE, *PREEMPTED))]
LOADS = [POWER, (*RACE, *PREEMPTED), (*RACE, *PREEMPTED, *STALLED[2:])]


def hunted(language: str, *words: str, seed: int = 1) -> Hunt:
    """Returns a hunt of the program in a language."""
    return Hunt((*PLACE, "--language", language, *words), seed=seed, system=SYSTEM)


def passes(language: str, words: tuple[str, ...], runs: int) -> None:
    """Asserts that all runs of the correct program are valid: no find, and none that tested nothing."""
    hunt = hunted(language, *words)
    for _ in range(runs):
        _, trial = hunt.next()
        assert trial is not None
        assert trial.outcome.judged is Verdict.VALID, trial.outcome.sentence


@pytest.mark.parametrize(("bug", "words"), ROWS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_planted_bug_is_found(bug: str, words: tuple[str, ...]) -> None:
    """In the program in C, by the operations of clients."""
    find = hunted("c", *words, "--bug", bug).first(MOST)
    assert find is not None
    assert find.parts == ("linearizable",)


@pytest.mark.parametrize("words", LOADS[:2], ids=["power", "preempted"])
def test_the_correct_program_passes(words: tuple[str, ...]) -> None:
    """Losses of power and other schedules find nothing in it."""
    passes("c", words, 4)


@pytest.mark.night
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("language", ["c", "go", "java"])
@pytest.mark.parametrize(
    ("bug", "words"),
    [*ROWS, ("cas-in-two-steps", (*RACE, *STALLED))],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_planted_bug_is_found_in_each_language(bug: str, words: tuple[str, ...], language: str, seed: int) -> None:
    """From each root seed."""
    assert hunted(language, *words, "--bug", bug, seed=seed).first(MOST) is not None


@pytest.mark.night
@pytest.mark.parametrize("language", ["c", "go", "java"])
@pytest.mark.parametrize("words", LOADS, ids=["power", "preempted", "stalled"])
def test_the_correct_program_passes_in_each_language(words: tuple[str, ...], language: str) -> None:
    """Thirty runs of each load."""
    passes(language, words, 30)
