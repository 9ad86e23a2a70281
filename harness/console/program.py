"""The command of a program of the user: words as in a shell, and a program that exists."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harness.console.documents import shown
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


def command_of(text: str) -> Sequence[str]:
    """Returns a program with its absolute path, and its arguments.

    Args:
        text: The command as in a shell. A program with a `/` is a path from the working folder; another one is in PATH.

    Raises:
        InputError: It names no program.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--bin {shown(text)} is not a command of a shell: {error}") from error
    if not words:
        raise InputError("a node needs --bin COMMAND, its program; docs/guide/node-programs.md has one")
    program, *arguments = words
    if os.sep not in program:
        executable = shutil.which(program)
        if executable is None:
            near = f"; for a program in this folder, give ./{program}" if Path(program).is_file() else ""
            raise InputError(f"--bin names {shown(program)}, and PATH has no such program{near}")
        return [executable, *arguments]
    path = Path(program).expanduser()
    if not path.is_file():
        raise InputError(f"--bin names the program {shown(program)}, and there is no such file")
    if not os.access(path, os.X_OK):
        raise InputError(f"{path} is not executable; `chmod +x {path}` makes it so")
    return [str(path.resolve()), *arguments]
