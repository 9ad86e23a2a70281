"""The command `labrys new`: writes a small package that adds a system or a workload, whose tests pass at once.

The package is a copy of a folder of `commands/templates`, with the names replaced. The templates are whole packages that run.
"""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import plugins
from harness.errors import InfrastructureError, InputError
from harness.options import Group, ToldCommand
from harness.parameters import folder
from harness.plain import name as plain_name
from harness.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATES = Path(__file__).parent / "templates"
MAX_NAME = 40
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# The plug-in, the module and the class that each template is written with.
WRITTEN = {"system": ("kv-store", "kv_store", "KvStore"), "workload": ("unique-ids", "unique_ids", "UniqueIds")}

# Modules that a package of such a name would hide.
TAKEN = frozenset(
    {"checker", "cli", "clusters", "commands", "harness", "labrys", "nemesis", "results", "tests", "workloads"}
)


@click.group("new", cls=Group)
def new() -> None:
    """Writes a small package with a system or a workload of your own."""


_into = click.option(
    "--into", type=folder(), default=Path(), help="Make the folder of the package here.  [default: the working folder]"
)


@new.command("system", cls=ToldCommand)
@click.argument("name")
@_into
def system(*, name: str, into: Path) -> None:
    """Writes a package with a system under test named NAME, e.g. my-database.

    Its tests pass at once. Comments that begin with CHANGE say what to do to test a system of your own.
    """
    _write("system", name, into)


@new.command("workload", cls=ToldCommand)
@click.argument("name")
@_into
def workload(*, name: str, into: Path) -> None:
    """Writes a package with a workload named NAME, e.g. bank-accounts.

    Its tests pass at once. Comments that begin with CHANGE say what to do for a workload of your own.
    """
    _write("workload", name, into)


def _write(kind: str, name: str, into: Path) -> None:
    """Writes the package and says what to do next.

    Raises:
        InputError: The name cannot be used, or there is such a folder.
        InfrastructureError: The files cannot be written; what was written is removed.
    """
    module = _check_name(kind, name)
    target = into / name
    names = dict(zip(WRITTEN[kind], (name, module, module.title().replace("_", "")), strict=True))
    try:
        target.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"{target} is there already; choose another name, or another folder by --into") from None
    except OSError as error:
        raise InfrastructureError(f"{target} cannot be made: {error.strerror or error}") from error
    template = TEMPLATES / kind
    try:
        for path in sorted(template.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                place = target / _renamed(str(path.relative_to(template)), names)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(_renamed(path.read_text(encoding="utf-8"), names), encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"{error.filename} cannot be written: {error.strerror or error}") from error
    echo(f"{target} is written. Next:")
    echo(f"  cd {target} && pip install -e '.[test]' && pytest")
    echo(f"  labrys test --{kind} {name} --help")


def _check_name(kind: str, name: str) -> str:
    """Returns the module that a package of this name has.

    Raises:
        InputError: There cannot be such a package.
    """
    module = name.replace("-", "_")
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise InputError(
            f"expected a name of small letters, digits and hyphens, {MAX_NAME} characters at most, e.g. my-database; "
            f"not {plain_name(name)!r}"
        )
    group = plugins.SYSTEMS if kind == "system" else plugins.WORKLOADS
    if name in plugins.plugins(group):
        package = plugins.plugins(group)[name].package
        raise InputError(f"the package {package} has a {kind} named {name} already; choose another name")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in TAKEN:
        raise InputError(f"{module} is the name of a module that is there already; choose another name")
    return module


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub("|".join(names), lambda found: names[found[0]], text)
