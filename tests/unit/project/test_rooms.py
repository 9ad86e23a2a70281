"""The arrows between rooms are those of CONTRIBUTING.md, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_rooms_import_only_what_they_may() -> None:
    """No room imports another one against the arrows (the contracts are in pyproject.toml)."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert linted.returncode == 0, linted.stdout + linted.stderr
