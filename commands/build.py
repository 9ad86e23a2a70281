"""The command `labrys build`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from commands import choosing
from commands.choosing import ChoosingCommand
from harness.console.parameters import Choice, folder
from harness.console.terminal import echo

if TYPE_CHECKING:
    from pathlib import Path


@click.command("build", cls=ChoosingCommand)
@choosing.OPTIONS[0]
@click.option(
    "--into",
    type=folder(),
    default=None,
    help="Copy the artifact into this folder too, from which a package can carry it.  [default: only the cache has it]",
)
@click.option(
    "--format", "output", type=Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def build(into: Path | None, output: str, **options: Any) -> None:
    """Builds what a system installs on its nodes, and prints the folder.

    `labrys test` does the same before its run. Both take the artifact from the cache if it is there: ~/.cache/labrys/builds, or
    labrys/builds in XDG_CACHE_HOME.
    """
    from harness.builds import put_on_shelf

    builder = choosing.builder_of(options)
    artifact = None if builder is None else builder(lambda text: echo(f"· {text}", err=True))
    if artifact is not None and into is not None:
        put_on_shelf(artifact, into)
    if output == "json":
        echo(
            json.dumps(
                None if artifact is None else {"path": str(artifact.path), **artifact.provenance.document()}, indent=2
            )
        )
    elif artifact is None:
        echo(f"the system {options[choosing.SYSTEM]} builds nothing", err=True)
    else:
        echo(str(artifact.path))
