"""A program loses its power right after a step of its disk, and again while it recovers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

import cli

EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "own_binary"
CUT: Final = "    if (ftruncate(log_file, whole) != 0 ||"
# The start writes the whole log again, in the same file. So a start that ends early leaves less than there was.
REWRITE: Final = """    if (ftruncate(log_file, 0) != 0) end(path);
    for (int i = 0; i < used; i++) dprintf(log_file, "%s %s\\n", registers[i].key, registers[i].value);
    if ("""
pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]


def test_an_answer_before_a_sync_is_found_right_before_the_sync(tmp_path: Path) -> None:
    """The program has answered, and the sync that it waits for has made nothing durable. The correct form survives that."""
    words = ("crash", "--system", f"{EXAMPLE}/system.py:OwnBinary", "--nodes", "1", "--seed", "5", "--rate", "10")
    times = ("--time-limit", "2", "--down", "0.2", "--at", "syncing", "--states", "2", "--jobs", "1")
    line = [
        sys.executable,
        "-m",
        "cli",
        *words,
        *times,
        "--store",
        str(tmp_path),
    ]  # this process keeps a class of the system
    correct = subprocess.run(line, capture_output=True, text=True, timeout=200, check=False)
    assert ": 0 invalid" in correct.stdout + correct.stderr
    wrong = subprocess.run(
        [*line, "--bug", "answer-before-sync"], capture_output=True, text=True, timeout=200, check=False
    )
    assert wrong.returncode == 1, wrong.stderr
    assert "right before a sync takes effect" in wrong.stdout


def test_a_start_that_may_not_end_early_is_found_by_a_second_loss(tmp_path: Path) -> None:
    """One loss of power shows nothing, at whichever step; a second one within the recovery does."""
    shutil.copytree(EXAMPLE, tmp_path / "kv", ignore=shutil.ignore_patterns("store", "__pycache__"))
    source = tmp_path / "kv" / "kv.c"
    code = source.read_text()
    assert CUT in code
    source.write_text(code.replace(CUT, REWRITE))
    words = ("crash", "--system", f"{tmp_path}/kv/system.py:OwnBinary", "--nodes", "1", "--seed", "5", "--rate", "10")
    times = ("--time-limit", "3", "--down", "0.2", "--recovery", "0.2", "--states", "1", "--jobs", "1")
    line = [*words, *times, "--store", str(tmp_path / "store")]
    once = CliRunner().invoke(cli.labrys, line)
    assert ": 0 invalid" in once.output
    assert "not visited" not in once.output
    twice = CliRunner().invoke(cli.labrys, [*line, "--depth", "2"])
    assert twice.exit_code == 1, twice.output
    assert "; then, in the recovery, n1 right after step " in twice.output
    assert list(tmp_path.glob("store/*/2*/results.json"))
