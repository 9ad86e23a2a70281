"""The folder of a process that has ended goes when the next one makes its own."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from harness.leftovers import own_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_folders_of_processes_that_have_ended_are_removed(tmp_path: Path) -> None:
    """Those of processes that run stay, and so do others."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, running, other = (
        tmp_path / name for name in (f"labrys-x-{ended.pid}-a", f"labrys-x-{os.getpid()}-b", f"labrys-y-{ended.pid}-c")
    )
    for folder in (left, running, other):
        folder.mkdir()
    own = own_folder("labrys-x-", tmp_path)
    assert own.is_dir()
    assert sorted(tmp_path.iterdir()) == sorted([own, running, other])
