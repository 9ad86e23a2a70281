"""The command `labrys new`: makes a package with a system or a workload, or a node program, with tests that pass.

A package is a copy of a folder of `commands/templates`, with other names. The templates are complete packages. The package
is called `labrys-NAME` and its module `labrys_NAME`, because a package or a module of this name may exist already
(`docs/decisions/0019-names-of-packages.md`).

A node program is no package of Python, so its folder has its own name. It has the files of its language, the program of its
workload, and a suite.
"""

from __future__ import annotations

import enum
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.options.choosing import PIPED_SYSTEM
from harness.console import installation, plugins
from harness.console.parameters import Choice, folder
from harness.console.plain import name as plain_name
from harness.console.sources import DefaultsCommand, Group
from harness.console.terminal import echo
from harness.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATES = Path(__file__).parents[1] / "templates"
MAX_NAME = 40
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# The names of the plug-in, the module and the class in each template.
TEMPLATE_NAMES = {"system": ("kv-store", "kv_store", "KvStore"), "workload": ("fresh-ids", "fresh_ids", "FreshIds")}
# What the template of a node has for its name, its program, the command that builds this, and its workload.
NODE_NAMES = ("first-node", "the-program", "build-it", "the-workload", "the-system")
PREFIX = "labrys-"
# Its name in a template has no dot, because git and the build of the wheel would obey it there.
GITIGNORE = "gitignore"


class Language(enum.StrEnum):
    """The language of a node program."""

    PYTHON = "python"
    RUST = "rust"
    GO = "go"
    JAVASCRIPT = "javascript"


class NodeWorkload(enum.StrEnum):
    """The workload of a node program."""

    ECHO = "echo"
    BROADCAST = "broadcast"
    LIN_KV = "lin-kv"


# The program of a node, and the command that makes it runnable. `{}` is the name of the node.
PROGRAMS = {
    Language.PYTHON: ("main.py", "chmod +x main.py"),
    Language.RUST: ("target/release/{}", "cargo build --release"),
    Language.GO: ("main", "go build -o main ."),
    Language.JAVASCRIPT: ("main.js", "chmod +x main.js"),
}


@click.group("new", cls=Group)
def new() -> None:
    """Makes a small package for a system or a workload of your own, or a small node program."""


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
    _package("system", name, into)


@new.command("workload", cls=DefaultsCommand, short_help="Makes a package with a workload.")
@click.argument("name")
@_into
def workload(*, name: str, into: Path) -> None:
    """Makes a package with a workload called NAME, such as bank-accounts, in the folder labrys-NAME.

    The tests of the package pass. Comments that begin with CHANGE mark what to change for a workload of your own.
    """
    _package("workload", name, into)


@new.command("node", cls=DefaultsCommand, short_help="Makes a node program for --cluster pipes.")
@click.argument("name")
@click.option(
    "--language",
    type=Choice([str(language) for language in Language]),
    required=True,
    help="The language of the program.",
)
@click.option(
    "--workload",
    "served",
    type=Choice([str(member) for member in NodeWorkload]),
    default=str(NodeWorkload.ECHO),
    show_default=True,
    help="The workload that the program serves.",
)
@_into
def node(*, name: str, language: str, served: str, into: Path) -> None:
    """Makes a node program called NAME, such as my-node, in the folder NAME.

    The program reads and writes messages in JSON on stdin and stdout. Its suite passes.
    """
    _hold_form(name)
    program, build = (text.format(name) for text in PROGRAMS[Language(language)])
    names = dict(zip(NODE_NAMES, (name, program, build, served, PIPED_SYSTEM), strict=True))
    template, target = TEMPLATES / "node", into / name
    files = {Path("README.md"): template / "README.md", Path("suite.toml"): template / "suites" / f"{served}.toml"}
    _write({**files, **_tree(template / language / "all"), **_tree(template / language / served)}, names, target)
    echo(f"{target} is written. Next:")
    echo(f"  cd {shlex.quote(str(target))}")
    echo(f"  {build}")
    echo("  labrys suite suite.toml")


def _package(kind: str, name: str, into: Path) -> None:
    """Writes a package, and prints the next steps."""
    module = _check_name(kind, name)
    target = into / f"{PREFIX}{name}"
    names = dict(zip(TEMPLATE_NAMES[kind], (name, module, module.title().replace("_", "")), strict=True))
    _write(_tree(TEMPLATES / kind), names, target)
    _print_next(kind, name, target)


def _tree(folder: Path) -> dict[Path, Path]:
    """Returns the files of a template, by their places in what is made of it."""
    return {
        path.relative_to(folder): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _write(files: Mapping[Path, Path], names: Mapping[str, str], target: Path) -> None:
    """Writes copies of files into a new folder, with other names.

    Raises:
        InputError: The folder exists.
        InfrastructureError: A file cannot be written.
    """
    try:
        target.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"{target} exists already; choose another name, or another folder with --into") from None
    except OSError as error:
        raise InfrastructureError(f"{target} cannot be made: {error.strerror or error}") from error
    try:
        for path, source in files.items():
            destination = target / _renamed(str(path), names)
            destination = destination.with_name(f".{GITIGNORE}") if destination.name == GITIGNORE else destination
            destination.parent.mkdir(parents=True, exist_ok=True)
            text = _renamed(source.read_text(encoding="utf-8"), names)
            destination.write_text(text, encoding="utf-8")
            if text.startswith("#!"):
                destination.chmod(destination.stat().st_mode | 0o111)
    except OSError as error:
        raise InfrastructureError(f"{error.filename} cannot be written: {error.strerror or error}") from error


def _print_next(kind: str, name: str, target: Path) -> None:
    """Prints how to install the package beside this Labrys, and this Labrys elsewhere."""
    origin = installation.origin()
    echo(f"{target} is written. Next, in the environment of this Labrys:")
    echo(f"  cd {shlex.quote(str(target))}")
    echo(f"  {installation.pip()} -e '.[test]'")
    echo(f"  {shlex.quote(sys.executable)} -m pytest")
    echo(f"  {installation.labrys()} test --{kind} {name} --help")
    echo("In another environment, install this Labrys first:")
    if origin.gone is not None:
        echo(f"  (from {origin.gone}, which is no longer there; docs/guide/install.md shows how to make it)")
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
    _hold_form(name)
    group = plugins.SYSTEMS if kind == "system" else plugins.WORKLOADS
    if name in plugins.plugins(group):
        package = plugins.plugins(group)[name].package
        raise InputError(f"the package {package} has a {kind} named {name} already; choose another name")
    return name.replace("-", "_")


def _hold_form(name: str) -> None:
    """Refuses a name that is not allowed.

    Raises:
        InputError: It has another form.
    """
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise InputError(
            f"expected a name of lower-case letters, digits and hyphens, at most {MAX_NAME} characters, e.g. my-database; "
            f"found {plain_name(name)!r}"
        )


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub("|".join(names), lambda match: names[match[0]], text)
