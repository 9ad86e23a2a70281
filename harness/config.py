"""Reads `labrys.toml`: defaults for the options of commands.

The file has a table for each command, with the options' long names as keys (`time-limit` or `time_limit`):

    [test]
    time-limit = 120
    nemesis = "kill,partition-random-halves"

An unknown command or key is an error with a suggestion: a default that is silently ignored is a test that was not run.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def load_config(path: Path) -> dict[str, dict[str, Any]]:
    """Reads the file's tables as they are.

    Raises:
        InputError: The file cannot be read, is not TOML, or has something else than tables at its top.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise InputError(f"{path}: expected tables named after commands, e.g. [test]; {name!r} is a value")
    return tables


def as_defaults(path: Path, command: str, table: Mapping[str, Any], known: Mapping[str, bool]) -> dict[str, Any]:
    """Turns a command's table into defaults by parameter name.

    Args:
        path: The file, for messages.
        command: The command's name.
        table: Its table.
        known: The command's parameters by name (with underscores), and whether each takes a list.

    Raises:
        InputError: A key names no parameter, or a value cannot be a value of an option.
    """
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            suggestion = did_you_mean(key, [parameter.replace("_", "-") for parameter in known])
            raise InputError(f"{path}: [{command}] has no option {key!r}. {suggestion}")
        if isinstance(value, list) != known[name] or isinstance(value, dict):
            expected = "a list" if known[name] else "one value"
            raise InputError(f"{path}: [{command}] {key} takes {expected}, not {value!r}")
        defaults[name] = value
    return defaults
