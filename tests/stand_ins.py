"""Programs that stand in for others, and write down what they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
