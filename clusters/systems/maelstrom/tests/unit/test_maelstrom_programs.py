"""The plain command of each workload of programs with pipes is a fair test."""

from __future__ import annotations

from pathlib import Path

import pytest

import cli
from clusters.systems.maelstrom.system import MaelstromSystem
from harness.errors import ExitCode

ROOT = Path(__file__).parents[5]
# What a program of a user does is in these examples; counters promise their sum only after five seconds without adds.
PROGRAMS = {
    "echo": "echo.py",
    "unique-ids": "unique_ids.py",
    "broadcast": "broadcast.py",
    "g-set": "g_set.py",
    "g-counter": "counter.py",
    "pn-counter": "counter.py",
    "lin-kv": "lin_kv.py",
    "kafka": "logs.py",
    "txn-list-append": "txn.py",
    "txn-rw-register": "txn.py",
}


def called(*arguments: str) -> int:
    """Carries out a command; returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments])
    return int(ended.value.code or 0)


def test_the_examples_serve_each_workload_of_programs() -> None:
    """The next test leaves none out."""
    assert PROGRAMS.keys() == MaelstromSystem.serves.keys()


@pytest.mark.parametrize("workload", PROGRAMS)
def test_the_plain_command_of_a_program_is_a_fair_test(
    workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each workload of programs with pipes, in virtual time: a correct program is valid."""
    monkeypatch.chdir(ROOT)
    code = called(
        "test", "--cluster", "pipes", "--virtual", "--system", "maelstrom", "--workload", workload, "--nodes", "3",
        "--bin", f"examples/nodes/{PROGRAMS[workload]}", "--time-limit", "6", "--rate", "3", "--seed", "3",
        "--store", str(tmp_path),
    )  # fmt: skip
    out = capsys.readouterr().out
    assert code == ExitCode.VALID, out
    first, second, *_ = out.splitlines()
    assert "valid" in first
    assert second.startswith("  Tested: ")
    assert "By: Maelstrom, Workloads, https://" in second
