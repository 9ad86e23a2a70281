"""The options of the command line that choose where a test runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.console.parameters import Choice, Number, Whole, existing_file
from harness.errors import InputError
from harness.slowness import NORMAL, nodes_slower_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harness.cluster import Cluster
    from harness.console.options import Origin

FC = TypeVar("FC", bound="Callable[..., Any] | click.Command")

SIMULATED = "sim"
CLUSTERS = ("local", "vagrant", "ssh", SIMULATED)
COUNTED = ("local", SIMULATED)  # the clusters whose size is the option --nodes

INVENTORY_OPTION = click.option(
    "--inventory",
    type=existing_file(),
    help="The file with the hosts of --cluster ssh.",
)


def slowness_option(**more: Any) -> Callable[[FC], FC]:
    """Returns the option for slow nodes; `more` goes to `click.option`."""
    return click.option(
        "--slowness",
        type=Number(1, 1000),
        default=NORMAL,
        show_default=True,
        help="The factor for slow nodes, e.g. 8 for emulated virtual machines. It multiplies each time limit that has no "
        "option of its own.",
        **more,
    )


OPTIONS = (
    click.option(
        "--cluster",
        "cluster_kind",
        type=Choice(CLUSTERS),
        default="local",
        show_default=True,
        help="The kind of cluster; sim is the simulator, which needs neither root nor machines.",
    ),
    click.option(
        "--nodes",
        type=Whole(1, 9),
        default=5,
        show_default=True,
        help="The number of nodes of a local or simulated cluster.",
    ),
    INVENTORY_OPTION,
    slowness_option(),
)

# They do not change what is tested, so the reproduce line leaves them out.
PLACE_OPTIONS = (
    click.option(
        "--cluster-name",
        default=None,
        help="The name of a local cluster; if no such cluster runs, the test starts one.",
    ),
    click.option("--keep-cluster", is_flag=True, help="Do not remove the local cluster at the end."),
)


def settle_nodes(
    options: dict[str, Any], given: Mapping[str, Origin], *, assume: bool = False
) -> tuple[tuple[str, ...], list[str]]:
    """Finds the names of the nodes, without starting or contacting any of them.

    Args:
        options: All options by parameter name. Options that do not apply to this cluster are set to its actual values.
        given: The origins of values that are not built-in defaults, by parameter name.
        assume: If Vagrant's nodes are unknown, assume n1 to nN.

    Returns:
        The names of the nodes, and a line for each option that has no effect and for each assumption.

    Raises:
        InputError: The options contradict each other, or the nodes are unknown.
    """
    kind, lines = options["cluster_kind"], []
    inventory = given.get("inventory")
    if kind != "ssh" and inventory is not None:
        if inventory.typed:
            raise InputError(f"{inventory.words} needs --cluster ssh, and this is --cluster {kind}")
        lines.append(f"{inventory.words} has no effect with --cluster {kind}")
        options["inventory"] = None
    if kind == SIMULATED:
        if options["slowness"] != NORMAL:
            lines.append("--slowness has no effect with --cluster sim: simulated nodes have no speed")
            options["slowness"] = NORMAL
        lines += [
            f"--{flag} has no effect with --cluster sim: simulated nodes end with their run"
            for flag in ("cluster-name", "keep-cluster")
            if options.get(flag.replace("-", "_"))
        ]
    try:
        names = _names(options)
    except InputError as error:
        if not assume or kind != "vagrant":
            raise
        names = tuple(f"n{number}" for number in range(1, options["nodes"] + 1))
        return names, [*lines, f"{error}; the nodes are assumed to be {', '.join(names)}"]
    if len(names) != options["nodes"]:
        asked = given.get("nodes")
        if asked is not None and asked.typed:
            raise InputError(f"{asked.words} contradicts the cluster, which has {len(names)}: {', '.join(names)}")
        if asked is not None:
            lines.append(f"{asked.words} has no effect: the cluster has {len(names)} nodes, {', '.join(names)}")
    options["nodes"] = len(names) if kind in COUNTED else None
    return names, lines


def _names(options: Mapping[str, Any]) -> tuple[str, ...]:
    kind, name = options["cluster_kind"], options.get("cluster_name")
    if kind == "ssh":
        from clusters.ssh import read_inventory  # noqa: PLC0415 - brings paramiko, which `--help` does not need

        return tuple(machine.node.name for machine in read_inventory(_inventory(options))[1])
    if kind == "vagrant":
        from clusters.vagrant import read_layout  # noqa: PLC0415 - likewise

        return tuple(node.name for node in read_layout(Path("Vagrantfile"), os.environ).members())
    if name and kind == "local":
        from clusters.local import list_clusters  # noqa: PLC0415 - likewise

        for cluster in list_clusters():
            if cluster.name == name:
                return tuple(node.name for node in cluster.nodes)
    return tuple(f"n{number}" for number in range(1, options["nodes"] + 1))


def _inventory(options: Mapping[str, Any]) -> Path:
    path: Path | None = options["inventory"]
    if path is None:
        raise InputError("--cluster ssh needs --inventory FILE, a list of hosts; docs/clusters.md has an example")
    return path


@contextlib.contextmanager
def open_cluster(options: Mapping[str, Any]) -> Iterator[Cluster]:
    """Opens the cluster that the options name. A cluster that this function starts is removed at the end."""
    with nodes_slower_by(options["slowness"]), _opened(options) as cluster:
        yield cluster


@contextlib.contextmanager
def _opened(options: Mapping[str, Any]) -> Iterator[Cluster]:
    kind = options["cluster_kind"]
    if kind == "local":
        with _local(options) as cluster:
            yield cluster
        return
    opened: Cluster
    if kind == SIMULATED:
        from clusters.sim.cluster import SimCluster  # noqa: PLC0415 - `--help` needs no world

        yield SimCluster(_names(options), options["seed"])
        return
    if kind == "ssh":
        from clusters.ssh import SshCluster  # noqa: PLC0415 - brings paramiko, which `--help` does not need

        opened = SshCluster.from_inventory(_inventory(options))
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
        attached = LocalCluster.attach(name, for_test=True)
        try:
            yield attached
        finally:
            attached.close()
        return
    cluster = LocalCluster.up(name, nodes=options["nodes"], for_test=True)
    try:
        yield cluster
    finally:
        if options["keep_cluster"]:
            cluster.close()
        else:
            cluster.down()
