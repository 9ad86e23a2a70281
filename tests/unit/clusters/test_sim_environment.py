"""Where a user lives does not reach the programs of a run that a seed repeats."""

from __future__ import annotations

import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

from clusters.pipes.child import Child
from clusters.pipes.command import environment_of
from clusters.pipes.keeper import Keeper
from clusters.sim.jvm.pipe import LOG_FILE, Jvm

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ZONE = "import time; print(time.strftime('%H %Z', time.localtime(0)))"
LIMIT_S = 20.0


def test_programs_with_pipes_have_one_time_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their logs have the same times everywhere. The other variables of the user reach them."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("OF_THE_USER", "kept")
    keeper = Keeper(tmp_path)
    try:
        code = f"import os; {ZONE}; print(os.environ['OF_THE_USER'])"
        child = Child(keeper, [sys.executable, "-c", code], tmp_path, environment_of(Random(1)))
        assert child.wait(LIMIT_S) == 0
        assert child.read(child.stdout) == b"00 UTC\nkept\n"
        child.kill()
    finally:
        keeper.close()


def test_programs_in_java_have_one_time_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above. The program here stands for the JVM, whose default zone is that of the variable."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    program = [sys.executable, "-c", f"import sys; sys.stdout = sys.stderr; {ZONE}"]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stderr == "09 JST\n"
    jvm = Jvm(program, tmp_path)
    try:
        jvm._process.wait(LIMIT_S)
        assert (tmp_path / LOG_FILE).read_text() == "00 UTC\n"
    finally:
        jvm.close()
