"""What can be chosen about where a test runs and what it tests, as options of the command line.

A system brings its own options from its folder; here they are only gathered.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusters.systems.dledger.options import OPTIONS as DLEDGER_OPTIONS
from clusters.systems.dledger.options import DLedgerOptions
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.cluster import Cluster
    from harness.system import System

CLUSTERS = ("local", "vagrant", "ssh")
SYSTEMS = ("dledger",)

OPTIONS = (
    click.option(
        "--cluster",
        "cluster_kind",
        type=click.Choice(CLUSTERS),
        default="local",
        show_default=True,
        help="Where nodes come from.",
    ),
    click.option(
        "--nodes",
        type=click.IntRange(1, 9),
        default=5,
        show_default=True,
        help="How many nodes a local cluster has.",
    ),
    click.option(
        "--inventory",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The file with the hosts of --cluster ssh.",
    ),
    click.option(
        "--system",
        "system_name",
        type=click.Choice(SYSTEMS),
        default="dledger",
        show_default=True,
        help="What is tested.",
    ),
    *DLEDGER_OPTIONS,
)

# They say nothing about what is tested, so they are not repeated in a reproduce line.
PLACE_OPTIONS = (
    click.option(
        "--cluster-name", default=None, help="A local cluster that is up already, or the name of the one to make."
    ),
    click.option("--keep-cluster", is_flag=True, help="Leave a local cluster up at the end."),
)


@contextlib.contextmanager
def open_cluster(options: Mapping[str, Any]) -> Iterator[Cluster]:
    """Gives the cluster that the options name; one that was made for this is taken down at the end."""
    kind = options["cluster_kind"]
    if kind == "local":
        with _local(options) as cluster:
            yield cluster
        return
    opened: Cluster
    if kind == "ssh":
        from clusters.ssh import SshCluster  # noqa: PLC0415 - brings paramiko, which `--help` does not need

        if options["inventory"] is None:
            raise InputError("--cluster ssh needs --inventory FILE, a list of hosts; docs/clusters.md has an example")
        opened = SshCluster.from_inventory(options["inventory"])
    else:
        from clusters.vagrant import VagrantCluster  # noqa: PLC0415 - likewise

        opened = VagrantCluster.from_directory(Path())
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def _local(options: Mapping[str, Any]) -> Iterator[Cluster]:
    from clusters.local import LocalCluster, list_clusters  # noqa: PLC0415 - brings paramiko, which `--help` does not need

    name = options["cluster_name"] or f"test-{os.getpid()}"
    if options["cluster_name"] and any(cluster.name == name for cluster in list_clusters()):
        attached = LocalCluster.attach(name)
        try:
            yield attached
        finally:
            attached.close()
        return
    cluster = LocalCluster.up(name, nodes=options["nodes"])
    try:
        yield cluster
    finally:
        if options["keep_cluster"]:
            cluster.close()
        else:
            cluster.down()


def make_system(cluster: Cluster, options: Mapping[str, Any]) -> System:
    """Returns the system that the options name, on this cluster."""
    from clusters.systems.dledger.system import DLedgerSystem  # noqa: PLC0415 - a system's own imports come when it is used

    fields = DLedgerOptions.__dataclass_fields__
    return DLedgerSystem(cluster, DLedgerOptions(**{name: options[name] for name in fields}))
