"""Reads `labrys.toml`: defaults for the options of commands.

The file has a table for each command, with the options' long names as keys (`time-limit` or `time_limit`). `labrys plan` takes
its defaults from `[test]`, because it shows the plan of a test:

    [test]
    time-limit = 120
    nemesis = "kill,partition-random-halves"

A file in the working folder may belong to someone else. So each command prints the defaults that it takes from the file, and
the results have them. As root, Labrys refuses a file that others can write, unless the command line names it.

An unknown command or key is an error with a suggestion, because the test would run without it. For the same
reason, Labrys refuses a table `[plan]` and variables `LABRYS_PLAN_...`.
"""

from __future__ import annotations

import os
import re
import stat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.console.documents import MAX_TOML_BYTES, parse_toml, shown
from harness.console.suggest import did_you_mean, nearest
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

ROOT = 0

# Commands that take the defaults of another command.
DEFAULTS_OF = MappingProxyType({"plan": "test"})


def load_config(path: Path, commands: Collection[str], *, named: bool) -> dict[str, dict[str, Any]]:
    """Reads the tables of the file.

    Args:
        path: The file.
        commands: The names of all commands.
        named: Whether the command line or the environment names the file; else it is from the working folder.

    Raises:
        InputError: The file cannot be read, is not TOML, or has other entries at its top than tables named after commands.
    """
    try:
        with path.open("rb") as file:
            if not named:
                _refuse_foreign(path, (os.fstat(file.fileno()), path.lstat()))
            content = file.read(MAX_TOML_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    tables = parse_toml(path, content)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise InputError(f"{path}: expected tables named after commands, e.g. [test]; {name!r} is a value")
        if name in DEFAULTS_OF:
            raise InputError(
                f"{path}: `labrys {name}` takes its defaults from [{DEFAULTS_OF[name]}]; move the content of [{name}] there"
            )
        if name not in commands:
            raise InputError(
                f"{path}: the table [{shown(name, quoted=False)}] has the name of no command. {did_you_mean(name, commands)}"
            )
    return tables


def _refuse_foreign(path: Path, abouts: Iterable[os.stat_result]) -> None:
    """Refuses, as root, a file that others can write. The command line can still name it.

    Args:
        path: The file.
        abouts: The status of the file, and of the link to it if there is one.

    Raises:
        InputError: Labrys runs as root, and another user than root and the user of sudo owns the file or may write it.
    """
    if os.geteuid() != ROOT:
        return
    sudo = os.environ.get("SUDO_UID", "")
    trusted = {ROOT, int(sudo)} if re.fullmatch("[0-9]{1,10}", sudo) else {ROOT}
    for about in abouts:
        if about.st_uid not in trusted:
            why = f"user {about.st_uid} owns it"
        elif not stat.S_ISLNK(about.st_mode) and about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            why = f"its group or everyone may write it (mode {stat.S_IMODE(about.st_mode):o})"
        else:
            continue
        raise InputError(
            f"{path.absolute()} would set defaults for root, but {why}; name it with --config if you trust it, "
            "or work in another folder"
        )


def refuse_unread(environment: Mapping[str, str], prefix: str) -> None:
    """Refuses environment variables that look like defaults and have no effect.

    Args:
        environment: The variables by name.
        prefix: The prefix of all variables of Labrys.

    Raises:
        InputError: There is such a variable; the message names the one with an effect.
    """
    for command, other in DEFAULTS_OF.items():
        start = f"{prefix}_{command}_".upper()
        for name in sorted(environment):
            if name.startswith(start):
                read = f"{prefix}_{other}_".upper() + name.removeprefix(start)
                raise InputError(
                    f"{name}: `labrys {command}` takes the defaults of `labrys {other}`; set {read} instead"
                )


def without_effect(environment: Mapping[str, str], start: str, known: Collection[str]) -> dict[str, str]:
    """Returns the environment variables that look like an option of a command and are none, each with a suggestion.

    Args:
        environment: The variables by name.
        start: What the variables of the command begin with, e.g. `LABRYS_TEST_`.
        known: The variables of the command's options.
    """
    ends = [name.removeprefix(start) for name in known]
    hints = {}
    for name in sorted(environment):
        if name.startswith(start) and name not in known:
            close = nearest(name.removeprefix(start), ends)
            hints[name] = f"Did you mean {start}{close}?" if close else ""
    return hints


def as_defaults(
    path: Path, command: str, table: Mapping[str, Any], known: Mapping[str, tuple[str, bool]]
) -> dict[str, Any]:
    """Turns a command's table into defaults by parameter name.

    Args:
        path: The file, for messages.
        command: The command's name.
        table: Its table.
        known: For each long name of an option: the name of its parameter, and whether it takes a list.

    Raises:
        InputError: A key is no option, or a value does not fit its option.
    """
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in known:
            raise InputError(f"{path}: [{command}] has no option {key!r}. {did_you_mean(key, known)}")
        parameter, many = known[name]
        if isinstance(value, list) != many or isinstance(value, dict):
            expected = "a list" if many else "one value"
            raise InputError(f"{path}: [{command}] {key} takes {expected}, not {shown(value)}")
        defaults[parameter] = value
    return defaults
