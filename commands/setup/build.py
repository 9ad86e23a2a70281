"""The command `labrys build`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from clusters.options import SIMULATED, ClusterOptions
from commands.options import subjects
from commands.options.choosing import SYSTEM, ChoosingCommand, NameOptions
from commands.options.run_options import Picked
from harness.console import plugins
from harness.console.parameters import Choice, folder
from harness.console.terminal import echo
from harness.declare import with_option

if TYPE_CHECKING:
    from pathlib import Path


CLUSTER_KIND = "cluster_kind"


@click.command("build", cls=ChoosingCommand)
@with_option(NameOptions, SYSTEM)
@with_option(ClusterOptions, CLUSTER_KIND)
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
    labrys/builds in XDG_CACHE_HOME. With `--cluster sim`, it also builds the simulator of Java programs, if the system needs
    it.
    """
    from harness.builds import put_on_shelf

    system = Picked.of(plugins.SYSTEMS, values[SYSTEM], values)
    kind = values[CLUSTER_KIND]
    if kind == SIMULATED:
        subjects.check_cluster(system, kind)
    builder = subjects.builder_of(subjects.placed_in(system, kind))
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
