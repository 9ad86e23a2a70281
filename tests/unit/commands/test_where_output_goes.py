"""Standard output has what a command is asked for, and standard error the progress."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import cli
from tests.trials import TOY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("without_plots")


def test_the_verdict_of_a_test_is_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the first line in a pipe, and the reproduce line the last. Progress is on standard error."""
    assert cli.invoke(["test", *TOY, "--seed", "1", "--store", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("✓ valid  ")
    assert out.splitlines()[-1].startswith("reproduce  labrys test --seed 1 ")
    assert "valid" not in err
    assert "starting toy-registers" in err


def test_a_replay_prints_its_verdict_as_a_test_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a test."""
    assert cli.invoke(["test", *TOY, "--seed", "1", "--store", str(tmp_path)]) == 0
    capsys.readouterr()
    system = ("--system", "tests.toy_register:ToyRegisters")
    assert cli.invoke(["replay", "latest", *system, "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("✓ valid  ")


def test_a_document_is_alone_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then the summary is on standard error."""
    assert cli.invoke(["test", *TOY, "--seed", "1", "--store", str(tmp_path), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["valid"] is True
    assert "✓ valid  " in err


def test_the_share_of_invalid_runs_is_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A repeated test prints a line for each run as progress, and then its share and its page."""
    assert cli.invoke(["test", *TOY, "--seed", "1", "--repeat", "2", "--store", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    (page,) = tmp_path.glob("repeats/*/*/index.html")
    assert out.splitlines()[-1] == f"page       {page}"
    assert "0 of 2 runs" in out
    assert "[2/2]" in err
    assert "[2/2]" not in out


def test_a_hunt_has_only_its_finds_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict of the run that it repeats is on standard error, because scripts read the lines."""
    words = ["--nemesis", "power-loss:n1", "--fault-on", "1-2", "--fault-off", "1-2", "--forgets"]
    hunt = ["hunt", *TOY, *words, "--seed", "1", "--runs", "2", "--jobs", "1", "--store", str(tmp_path)]
    assert cli.invoke(hunt) == 1
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert len(line.split("\t")) == 3
    assert "✗ invalid  " in err
