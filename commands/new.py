"""The command `labrys new`: makes a small package that adds a system or a workload, with tests that pass.

The package is a copy of a folder of `commands/templates`, with other names. The templates are complete packages. The package
is called `labrys-NAME` and its module `labrys_NAME`, because a package `redis` or a module `json` exists already
(`docs/decisions/0019-names-of-packages.md`).
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.console import installation, plugins
from harness.console.parameters import folder
from harness.console.plain import name as plain_name
from harness.console.sources import DefaultsCommand, Group
from harness.console.terminal import echo
from harness.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATES = Path(__file__).parent / "templates"
MAX_NAME = 40
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# The names of the plug-in, the module and the class in each template.
TEMPLATE_NAMES = {"system": ("kv-store", "kv_store", "KvStore"), "workload": ("fresh-ids", "fresh_ids", "FreshIds")}
PREFIX = "labrys-"
# Its name in a template has no dot, because git and the build of the wheel would obey it there.
GITIGNORE = "gitignore"


@click.group("new", cls=Group)
def new() -> None:
    """Makes a small package for a system or a workload of your own."""


_into = click.option(
    "--into", type=folder(), default=Path(), help="Make the folder of the package here.  [default: the working folder]"
)


@new.command("system", cls=DefaultsCommand, short_help="Makes a package with a system under test.")
@click.argument("name")
@_into
def system(*, name: str, into: Path) -> None:
    """Makes a package with a system under test called NAME, such as my-database, in the folder labrys-NAME.

    The tests of the package pass. Comments that begin with CHANGE mark what to change for a system of your own.
    """
    _write("system", name, into)


@new.command("workload", cls=DefaultsCommand, short_help="Makes a package with a workload.")
@click.argument("name")
@_into
def workload(*, name: str, into: Path) -> None:
    """Makes a package with a workload called NAME, such as bank-accounts, in the folder labrys-NAME.

    The tests of the package pass. Comments that begin with CHANGE mark what to change for a workload of your own.
    """
    _write("workload", name, into)


def _write(kind: str, name: str, into: Path) -> None:
    """Writes the package, and prints the next steps.

    Raises:
        InputError: The name is not allowed, or the folder exists.
        InfrastructureError: A file cannot be written.
    """
    module = _check_name(kind, name)
    target = into / f"{PREFIX}{name}"
    names = dict(zip(TEMPLATE_NAMES[kind], (name, module, module.title().replace("_", "")), strict=True))
    try:
        target.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"{target} exists already; choose another name, or another folder with --into") from None
    except OSError as error:
        raise InfrastructureError(f"{target} cannot be made: {error.strerror or error}") from error
    template = TEMPLATES / kind
    try:
        for path in sorted(template.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                place = target / _renamed(str(path.relative_to(template)), names)
                place = place.with_name(f".{GITIGNORE}") if place.name == GITIGNORE else place
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(_renamed(path.read_text(encoding="utf-8"), names), encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"{error.filename} cannot be written: {error.strerror or error}") from error
    _print_next(kind, name, target)


def _print_next(kind: str, name: str, target: Path) -> None:
    """Prints how to install the package beside this Labrys, and this Labrys elsewhere."""
    origin = installation.origin()
    echo(f"{target} is written. Next, in the environment of this Labrys:")
    echo(f"  cd {shlex.quote(str(target))}")
    echo(f"  {installation.pip()} -e '.[test]'")
    echo(f"  {shlex.quote(sys.executable)} -m pytest")
    echo(f"  labrys test --{kind} {name} --help")
    echo("In another environment, install this Labrys first:")
    if origin.gone is not None:
        echo(f"  (from {origin.gone}, which is no longer there; docs/install.md shows how to make it)")
    echo(f"  pip install {shlex.join(origin.words)}")


def _check_name(kind: str, name: str) -> str:
    """Returns the name of the module of a package.

    Raises:
        InputError: The name of the package is not allowed.
    """
    if name.startswith(PREFIX):
        raise InputError(
            f"the package gets the prefix {PREFIX} by itself; give {name.removeprefix(PREFIX)!r} as its name"
        )
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise InputError(
            f"expected a name of lower-case letters, digits and hyphens, at most {MAX_NAME} characters, e.g. my-database; "
            f"found {plain_name(name)!r}"
        )
    group = plugins.SYSTEMS if kind == "system" else plugins.WORKLOADS
    if name in plugins.plugins(group):
        package = plugins.plugins(group)[name].package
        raise InputError(f"the package {package} has a {kind} named {name} already; choose another name")
    return name.replace("-", "_")


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub("|".join(names), lambda found: names[found[0]], text)
