"""No file, however damaged, makes the command break its law; see `benchmarks.fuzz.law`.

The examples are the same in every run. `python -m benchmarks fuzz --minutes N` goes on with others.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.fuzz.kinds import NODES, Kinds
from benchmarks.fuzz.law import ROOT, Commands, Outcome
from benchmarks.fuzz.run import carried_out

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 6  # of hostile programs
SYSTEMS = 12  # hostile systems; each takes about a second
SYSTEM = "system"
EXAMPLES = 25  # of each kind; all together they take less than a minute
KINDS = (
    "edn", "jsonl", "console-log", "parquet", "plan", "suite", "inventory", "labrys.toml", "test.json", "results.json",
    "system",
)  # fmt: skip


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """The process that carries out commands in forks."""
    with Commands() as started:
        yield started


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Kinds:
    """The right files."""
    return Kinds(tmp_path_factory.mktemp("right"))


def test_every_kind_is_here(kinds: Kinds) -> None:
    """The tests below try all that the fuzzer tries."""
    assert {*KINDS, NODES} == set(kinds.make)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != SYSTEM])
@given(rng=st.randoms(use_true_random=False))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_no_file_breaks_the_law(kinds: Kinds, commands: Commands, kind: str, rng: Any) -> None:
    """The exit code is one of those that are promised; no traceback, bounded time and memory, nothing raw."""
    try_one(kinds, commands, kind, rng)


@pytest.mark.parametrize(
    "seed", [*range(SYSTEMS), *(pytest.param(seed, marks=pytest.mark.night) for seed in range(SYSTEMS, 10 * SYSTEMS))]
)
def test_no_system_breaks_the_law(kinds: Kinds, commands: Commands, seed: int) -> None:
    """Whatever its code does, a verdict is in the folder of the run, or a sentence says why; every command reads the run."""
    try_one(kinds, commands, SYSTEM, random.Random(seed))


def try_one(kinds: Kinds, commands: Commands, kind: str, rng: Any) -> None:
    """Carries out the commands of one case."""
    with tempfile.TemporaryDirectory(prefix="labrys-fuzz-") as name:
        case = kinds.make[kind](rng, Path(name))
        for arguments, _, broken in carried_out(case, commands, Path(name)):
            assert broken is None, arguments


@pytest.mark.parametrize(
    "seed", [*range(RUNS), *(pytest.param(seed, marks=pytest.mark.night) for seed in range(RUNS, 10 * RUNS))]
)
def test_no_program_breaks_the_law(kinds: Kinds, commands: Commands, seed: int, tmp_path: Path) -> None:
    """A hostile program ends with a verdict. It leaves no process and no file, and touches nothing of others."""
    case = kinds.make[NODES](random.Random(seed), tmp_path)
    outcome = commands.run(case.arguments, tmp_path, cluster=True)
    assert case.broken(outcome, tmp_path) is None, outcome.err


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"suite", SYSTEM}])
def test_real_processes_do_the_same(kinds: Kinds, commands: Commands, kind: str, tmp_path: Path) -> None:
    """A fork of the fuzzer ends as a process that a person starts. A suite and a replay would run tests, so not these."""
    made = (kinds.make[kind](random.Random(seed), tmp_path) for seed in itertools.count())
    case = next(case for case in made if case.arguments[0] != "replay")
    done = subprocess.run([sys.executable, "-m", "cli", *case.arguments], cwd=tmp_path, capture_output=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)})  # fmt: skip
    told = Outcome(status=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())
    assert told.broken() is None
    assert commands.run(case.arguments, tmp_path).status == told.status


def test_the_law_sees_what_breaks_it() -> None:
    """Other exit codes, signals, tracebacks, raw text and silence."""
    fine: dict[str, Any] = {"status": 254, "out": "", "err": "labrys: x"}
    assert Outcome(**fine).broken() is None
    for changed in (
        {"status": 255}, {"status": 3}, {"status": -9}, {"err": "Traceback (most recent call last):\n  File\nX"},
        {"out": "\x1b[2J"}, {"err": "\u202e"}, {"out": "\x9b"}, {"err": "\udcff"}, {"err": " "},
    ):  # fmt: skip
        assert Outcome(**{**fine, **changed}).broken() is not None, changed
