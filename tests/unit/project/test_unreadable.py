"""A file or a folder that may not be read is a sentence and exit code 254, in every command and also where one stands in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.fuzz.law import ROOT

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    "check closed", "check closed/history.jsonl", "report closed", "report --store closed latest", "replay closed",
    "--config closed/labrys.toml plan", "plan --plan closed/plan.json", "suite closed/suite.toml",
    "plan --cluster ssh --inventory closed/lab.toml",
)  # fmt: skip


def without_privileges(*command: str) -> list[str]:
    """Returns a command that may not read what its user may not; root may otherwise read everything."""
    if os.geteuid() != 0:
        return list(command)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root needs setpriv to give up what it may")
    lost = "-dac_override,-dac_read_search"
    return [setpriv, "--bounding-set", lost, "--inh-caps", lost, *command]


@pytest.mark.parametrize("line", COMMANDS)
def test_what_may_not_be_read_is_said(tmp_path: Path, line: str) -> None:
    """No traceback, and the sentence names the folder."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed").chmod(0)
    done = run(tmp_path, line)
    assert done.returncode == 254, done.stderr
    assert "Traceback" not in done.stderr
    assert "closed" in done.stderr


def test_a_folder_that_may_not_be_looked_at_has_no_defaults(tmp_path: Path) -> None:
    """Standing in one, the command works without `labrys.toml`."""
    here = tmp_path / "closed"
    here.mkdir()
    inside = f"import os, sys; os.chdir({str(here)!r}); os.chmod('.', 0); os.execv(sys.argv[1], sys.argv[1:])"
    command = without_privileges(sys.executable, "-m", "cli", "plan", "--seed", "1")
    done = subprocess.run([sys.executable, "-c", inside, shutil.which(command[0]) or command[0], *command[1:]],
                          capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Runs a command line without privileges."""
    return subprocess.run(
        without_privileges(sys.executable, "-m", "cli", *line.split()),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
