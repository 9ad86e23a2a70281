"""The paths in a suite: each is relative to the file of the suite, whatever the working folder is.

The type of an option says whether it is a path: a file, a program with arguments, or code in a file of Python. So options of a
plug-in are known, too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from harness.console.parameters import PluginName, ProgramText
from harness.console.plugins import is_file_place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def from_file(file: Path, options: Mapping[str, Any], types: Mapping[str, click.ParamType[Any]]) -> Mapping[str, Any]:
    """Returns the options of a case with the paths that they name from the working folder.

    Args:
        file: The file of the suite.
        options: The options by long name.
        types: The type of each option.
    """
    return {
        key: moved(value, file.parent, types[key]) if isinstance(value, str) else value
        for key, value in options.items()
    }


def moved(value: str, folder: Path, kind: click.ParamType[Any]) -> str:
    """Returns the value of an option whose path is relative to a folder; other values stay as they are.

    An absolute path, one in the home folder, and a program without a `/` stay as well: a shell finds those.
    """
    if isinstance(kind, click.Path):
        return _joined(folder, value)
    if isinstance(kind, PluginName):
        return moved_code(value, folder)
    if isinstance(kind, ProgramText):
        program, space, arguments = value.lstrip().partition(" ")
        return f"{_joined(folder, program)}{space}{arguments}" if os.sep in program else value
    return value


def moved_code(value: str, folder: Path) -> str:
    """Returns the name of code, as `path/to/file.py:Class` from the working folder; other names stay as they are."""
    return _joined(folder, value) if is_file_place(value) else value


def _joined(folder: Path, path: str) -> str:
    return path if path.startswith("~") else str(folder / path)
