"""Planted losses in small servers in C, Go, Java and Python: `labrys crash` finds each, and none in the correct form."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.catches.durable.system import VOTES, Bug, Language

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="programs in virtual time need root, to trace them")
WORKLOADS: Final = {
    Bug.ACKNOWLEDGED_BEFORE_SYNC: "register",
    Bug.TORN_TAIL: "register",
    Bug.LOST_RENAME: VOTES,
    Bug.VOTE_BEFORE_STORE: VOTES,
}
WORDS: Final = (
    "--nodes",
    "1",
    "--seed",
    "5",
    "--rate",
    "10",
    "--time-limit",
    "2",
    "--down",
    "0.2",
    "--states",
    "3",
    "--jobs",
    "1",
)
QUICK: Final = (Language.C, Bug.TORN_TAIL)


def crashed(store: Path, language: Language, bug: Bug, workload: str) -> subprocess.CompletedProcess[str]:
    """Carries out `labrys crash` in a process of its own, because a process keeps a class of a system."""
    system = ("--system", "tests/catches/durable/system.py:Durable", "--language", language, "--bug", bug)
    line = [sys.executable, "-m", "cli", "crash", *system, "--workload", workload, *WORDS, "--store", str(store)]
    return subprocess.run(line, capture_output=True, text=True, timeout=400, check=False)


@pytest.mark.parametrize(
    ("language", "bug"),
    [
        pytest.param(language, bug, marks=[] if (language, bug) == QUICK else [pytest.mark.night])
        for language in Language
        for bug in WORKLOADS
    ],
)
def test_a_planted_bug_is_found(tmp_path: Path, language: Language, bug: Bug) -> None:
    """The first command finds it, by what clients saw."""
    found = crashed(tmp_path, language, bug, WORKLOADS[bug])
    assert found.returncode == 1, found.stdout + found.stderr
    (line,) = found.stdout.splitlines()[:1]
    assert line.split("\t")[1] == (VOTES if WORKLOADS[bug] == VOTES else "linearizable")


@pytest.mark.night
@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("workload", ["register", VOTES])
def test_the_correct_program_passes(tmp_path: Path, language: Language, workload: str) -> None:
    """Each of its states was visited, and none is invalid."""
    passed = crashed(tmp_path, language, Bug.NONE, workload)
    told = passed.stdout + passed.stderr
    assert ": 0 invalid, " in told
    assert "not visited" not in told
    assert "broken off" not in told
