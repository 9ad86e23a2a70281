"""Builds the default system before Labrys is installed: `python -m tools.default_system [packaged]`.

It does the same as `labrys build`. `labrys` finds a system by the entry points of the installed package, and `make demo` builds
the system while the kernel of the checker compiles, so nothing is installed yet. With `packaged`, it copies the artifact into
the folder `packaged` of the system, and a wheel carries it.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, cast

from commands.options.choosing import NameOptions
from harness.builds import put_on_shelf
from harness.console import process
from harness.console.plugins import SYSTEMS
from harness.errors import ExitCode
from tools.site import ROOT

if TYPE_CHECKING:
    from harness.builds import Artifact
    from harness.system import System

PACKAGED = "packaged"


def system() -> type[System]:
    """Returns the class of the default system, by the entry points in `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"][SYSTEMS][NameOptions().system_name].partition(":")
    return cast("type[System]", getattr(importlib.import_module(module), name))


def build() -> Artifact:
    """Builds it with its default options.

    Raises:
        InfrastructureError: It cannot be built.
        TypeError: There is nothing to build.
    """
    of = system()
    artifact = of.build(of.Options(), print)
    if artifact is None:
        raise TypeError(f"expected a default system that builds something, and {of.name} builds nothing")
    return artifact


def package() -> None:
    """Builds it, and copies the artifact into the folder whose content a wheel carries.

    Raises:
        InfrastructureError: It cannot be built.
    """
    put_on_shelf(build(), Path(inspect.getfile(system())).parent / PACKAGED)


def main() -> int:
    """Builds it; returns the exit code."""
    if PACKAGED in sys.argv[1:]:
        package()
    else:
        build()
    return ExitCode.VALID


if __name__ == "__main__":
    process.end_with(main)
