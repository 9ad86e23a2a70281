"""Pairs of runs are counted, and compared with those of an earlier night only if nothing else has changed."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.linux import pairs
from benchmarks.linux.pairs import Did, compare_pairs
from harness.errors import InputError
from harness.world import Execution

if TYPE_CHECKING:
    from pathlib import Path

EXECUTION = Execution(digest="0" * 32, controller="c", kernel="6.1", processor="some", figures={}, trace="aaaaaaaa")


class Night:
    """What the pairs of a night do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
        self.execution = EXECUTION
        self.unequal: set[str] = set()
        self.file = file
        monkeypatch.setattr(pairs, "_pair", self.pair)
        monkeypatch.setattr(pairs, "_packages", lambda: "p")
        monkeypatch.setattr(pairs, "_code", lambda: "x")

    def pair(self, system: str, options: tuple[str, ...]) -> tuple[Did, list[str]]:
        """Carries out a pair."""
        seed = options[options.index("--seed") + 1]
        lines = [f"{system} with seed {seed} differs", "  its first difference"] if seed in self.unequal else []
        return Did(execution=self.execution, versions={}), lines

    def run(self) -> int:
        """Carries out the night."""
        return compare_pairs({"store": ()}, pairs=3, seconds=4, trace_all=True, digests=self.file)


def test_nights_are_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference counts if all around is the same, and else the reason is printed."""
    night = Night(monkeypatch, tmp_path / "digests.json")
    assert night.run() == 0
    assert "| store      | 3 | 3 | - |" in capsys.readouterr().out
    assert night.run() == 0
    assert "| store      | 3 | 3 | 3 |" in capsys.readouterr().out
    night.execution = dataclasses.replace(EXECUTION, digest="1" * 32, trace="bbbbbbbb", kernel="6.2")
    assert night.run() == 0
    output = capsys.readouterr().out
    assert (
        "3 runs differ from an earlier night and cannot be compared with it: the kernel was 6.1, and is 6.2" in output
    )
    night.execution = dataclasses.replace(night.execution, digest="2" * 32, trace="cccccccc")
    assert night.run() == 1
    assert "store with seed 3 differs from an earlier night: equal for 0 s of virtual time" in capsys.readouterr().out


def test_the_first_unequal_pair_shows_its_difference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Later ones have a line each."""
    night = Night(monkeypatch, tmp_path / "digests.json")
    night.unequal = {"2", "3"}
    assert night.run() == 1
    output = capsys.readouterr().out
    assert "| store      | 3 | 1 | - |" in output
    assert output.splitlines()[-3:] == [
        "store with seed 2 differs",
        "  its first difference",
        "store with seed 3 differs",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"format": "labrys-digests", "runs": {"a": 1}})])
def test_a_damaged_file_of_digests_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    """It names the file."""
    night = Night(monkeypatch, tmp_path / "digests.json")
    night.file.write_text(text)
    with pytest.raises(InputError, match=r"digests\.json"):
        night.run()
