"""The command `labrys build`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from commands import subjects
from commands.choosing import SYSTEM, ChoosingCommand, NameOptions
from commands.run_options import Picked
from harness.console import plugins
from harness.console.parameters import Choice, folder
from harness.console.terminal import echo
from harness.declare import with_option

if TYPE_CHECKING:
    from pathlib import Path


@click.command("build", cls=ChoosingCommand)
@with_option(NameOptions, SYSTEM)
@click.option(
    "--into",
    type=folder(),
    default=None,
    help="Copy the artifact into this folder too, from which a package can carry it.  [default: only the cache has it]",
)
@click.option(
    "--format", "output", type=Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def build(into: Path | None, output: str, **values: Any) -> None:
    """Builds what a system installs on its nodes, and prints the folder.

    `labrys test` does the same before its run. Both take the artifact from the cache if it is there: ~/.cache/labrys/builds, or
    labrys/builds in XDG_CACHE_HOME.
    """
    from harness.builds import put_on_shelf

    system = Picked.of(plugins.SYSTEMS, values[SYSTEM], values)
    builder = subjects.builder_of(system)
    artifact = None if builder is None else builder(lambda text: echo(f"· {text}", err=True))
    if artifact is not None and into is not None:
        put_on_shelf(artifact, into)
    if output == "json":
        echo(
            json.dumps(
                None if artifact is None else {"path": str(artifact.path), **asdict(artifact.provenance)}, indent=2
            )
        )
    elif artifact is None:
        echo(f"the system {system.name} builds nothing", err=True)
    else:
        echo(str(artifact.path))
