"""Reads `labrys.toml`: defaults for the options of commands.

The file has a table for each command, with the options' long names as keys (`time-limit` or `time_limit`). `labrys plan` takes
its defaults from `[test]`, since it shows what a test would do:

    [test]
    time-limit = 120
    nemesis = "kill,partition-random-halves"

A file that lies in the working folder may be someone else's. So each default that it gives is told on standard error and stands
in the result. Where we are root, a file that others can write is refused unless the person names it.

An unknown command or key is an error with a suggestion: a default that is silently ignored is a test that was not run. For the
same reason a table `[plan]` is refused, and so are variables `LABRYS_PLAN_...`.
"""

from __future__ import annotations

import os
import re
import stat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.documents import MAX_TOML_BYTES, parse_toml, shown
from harness.errors import InputError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

ROOT = 0

# Commands that take the defaults of another one: what they show, the other does.
DEFAULTS_OF = MappingProxyType({"plan": "test"})


def load_config(path: Path, commands: Collection[str], *, named: bool) -> dict[str, dict[str, Any]]:
    """Reads the file's tables as they are.

    Args:
        path: The file.
        commands: The names of all commands.
        named: Whether the person named the file; else it was found in the working folder.

    Raises:
        InputError: The file cannot be read, is not TOML, or has something else at its top than tables named after commands.
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


def _refuse_foreign(path: Path, found: Iterable[os.stat_result]) -> None:
    """Refuses to let a file that others can write decide what root does; the person can still name it.

    Args:
        path: The file.
        found: What is known of it, and of the link to it if it is one.

    Raises:
        InputError: We are root, and someone else than root and the user of sudo owns the file or may write it.
    """
    if os.geteuid() != ROOT:
        return
    sudo = os.environ.get("SUDO_UID", "")
    trusted = {ROOT, int(sudo)} if re.fullmatch("[0-9]{1,10}", sudo) else {ROOT}
    for about in found:
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
    """Refuses variables that look like defaults and are not read.

    Args:
        environment: The variables by name.
        prefix: What the names of all our variables begin with.

    Raises:
        InputError: There is one; the message names the one that is read.
    """
    for command, other in DEFAULTS_OF.items():
        start = f"{prefix}_{command}_".upper()
        for name in sorted(environment):
            if name.startswith(start):
                read = f"{prefix}_{other}_".upper() + name.removeprefix(start)
                raise InputError(
                    f"{name}: `labrys {command}` takes its defaults from those of `labrys {other}`; set {read} instead"
                )


def as_defaults(
    path: Path, command: str, table: Mapping[str, Any], known: Mapping[str, tuple[str, bool]]
) -> dict[str, Any]:
    """Turns a command's table into defaults by parameter name.

    Args:
        path: The file, for messages.
        command: The command's name.
        table: Its table.
        known: The command's options by long name: the parameter's name, and whether it takes a list.

    Raises:
        InputError: A key names no parameter, or a value cannot be a value of an option.
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
