"""Programs that stand in for others, and write down what they are asked; and the scripts of the nightly with them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

TOOLS = Path(__file__).parents[1] / "tools" / "nightly"


def stand_in(folder: Path, name: str, script: str) -> Path:
    """Makes a program that adds its arguments to a file `asked` beside it, and then does as the script says."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{folder}/asked"\n{script}\n')
    program.chmod(0o755)
    return program


def asked(folder: Path) -> list[str]:
    """What the stand-ins of a folder were asked."""
    return (folder / "asked").read_text().splitlines()


def nightly(
    script: str, *arguments: object, cwd: Path, programs: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a script of the nightly with stand-ins."""
    return subprocess.run(
        ["sh", str(TOOLS / script), *map(str, arguments)],
        cwd=cwd,
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LABRYS": str(programs / "labrys"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
