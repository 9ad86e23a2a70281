"""Workloads and faults in files of the user reach every process of a command."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import TYPE_CHECKING

import cli
from tests.slow_faults import forget_plugins

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
FREEZE = """
from nemesis.faults.process import Pause
from nemesis.kinds import Kind
from nemesis.real.process import PauseOnNodes
from nemesis.simulated.process import Paused
from nemesis.targets import RANDOM

FREEZE = Kind(
    name="freeze", fault=type("Freeze", (Pause,), {}), on_nodes=PauseOnNodes, simulated=Paused, target=RANDOM
)
"""
BANK = """
from workloads.register.workload import RegisterWorkload

class Bank(RegisterWorkload):
    summary = "a register in a file"
"""


def test_the_processes_of_a_hunt_load_the_files_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload and a kind of fault in files work in each process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "faults.py").write_text(FREEZE)
    (tmp_path / "workloads.py").write_text(BANK)
    own = ["--workload", "workloads.py:Bank", "--fault", "faults.py:FREEZE", "--nemesis", "freeze"]
    screen = io.StringIO()
    try:
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            code = cli.invoke(["hunt", *own, "--runs", "3", "--jobs", "2", "--seed", "1", "--time-limit", "10"])
    finally:
        forget_plugins()
    assert (code, "0 invalid, 3 valid" in screen.getvalue()) == (0, True), screen.getvalue()
