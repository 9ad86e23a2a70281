"""Folders of a process that the next process removes, if that one ended without it, e.g. by SIGKILL."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def own_folder(prefix: str, parent: Path | None = None) -> Path:
    """Makes a new folder of this process, and removes those of processes that have ended.

    Args:
        prefix: What the names of such folders begin with. The id of the process follows.
        parent: Where they are; None: where this machine has temporary files.
    """
    home = Path(tempfile.gettempdir()) if parent is None else parent
    for path in home.glob(f"{prefix}*-*"):
        owner = path.name.removeprefix(prefix).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(path, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=home))
