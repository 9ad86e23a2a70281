"""The commands `labrys cluster` and `labrys doctor`.

Results go to standard output, as one record a line or as one JSON document. Everything else goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusters.options import ClusterOptions
from commands.options import choosing
from harness.console import plugins
from harness.console.parameters import Choice, PluginName, Whole, existing_file
from harness.console.plain import message, one_line
from harness.console.plain import name as plain_name
from harness.console.sources import DefaultsCommand, Group
from harness.console.suggest import did_you_mean
from harness.console.terminal import echo
from harness.declare import with_option
from harness.errors import ExitCode, InputError, LabrysError
from harness.slowness import nodes_slower_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from clusters.doctor import Finding
    from clusters.local import LocalCluster
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.traits import Program

DEFAULT_NAME = "labrys"
CHECK_TIMEOUT_S = 5.0

_name = click.argument("name", default=DEFAULT_NAME, required=False)
_format = click.option(
    "--format", "output", type=Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)


def _set_slowness(context: click.Context, _: click.Parameter, value: float) -> None:
    context.with_resource(nodes_slower_by(value))


_slowness = with_option(ClusterOptions, "slowness", callback=_set_slowness, expose_value=False)


def _machine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    inventory = click.option(
        "--inventory",
        type=existing_file(),
        help="Use the hosts in this file instead of local nodes.",
    )
    vagrant = click.option(
        "--vagrant", is_flag=True, help="Use the virtual machines of the Vagrantfile in this folder."
    )
    return inventory(vagrant(_slowness(command)))


@click.group(cls=Group)
def cluster() -> None:
    """Makes, shows, heals and removes local clusters.

    The default NAME of a cluster is `labrys`. Clusters with different names can run at the same time.
    """


@cluster.command()
@_name
@click.option("--nodes", type=Whole(1, 9), default=5, show_default=True, help="The number of nodes.")
def up(name: str, nodes: int) -> None:
    """Starts a cluster of local nodes."""
    from clusters.local import LocalCluster

    began_s = time.monotonic()
    made = LocalCluster.up(name, nodes=nodes)
    made.close()
    echo(f"cluster {name}: {nodes} nodes up in {time.monotonic() - began_s:.1f} s", err=True)
    suffix = "" if name == DEFAULT_NAME else f" {name}"
    echo(
        f"`labrys cluster shell n1{suffix}` enters a node, `labrys test --cluster-name {name}` tests there, "
        f"`labrys cluster down{suffix}` takes it down",
        err=True,
    )
    for node in made.nodes:
        echo(f"{node.name} {node.address}")


@cluster.command()
@click.argument("name", required=False)
@_format
def status(name: str | None, output: str) -> None:
    """Shows all local clusters, or the cluster NAME.

    The output shows the nodes, their addresses, and whether they answer over SSH. The exit code is 0 if every node answers.
    """
    from clusters.local import LocalCluster, list_clusters

    shown = [LocalCluster.attach(name)] if name else list_clusters()
    rows = [row for one in shown for row in _status_rows(one)]
    if output == "json":
        echo(json.dumps(rows, indent=2))
    else:
        for row in rows:
            echo(one_line(f"{row['cluster']} {row['node']} {row['address']} {row['error'] or 'answers'}"))
        if not shown:
            echo("there are no local clusters", err=True)
    if any(row["error"] for row in rows):
        click.get_current_context().exit(ExitCode.INTERNAL)


def _status_rows(one: LocalCluster) -> list[dict[str, str | None]]:
    from harness.cluster import on_nodes

    answers = on_nodes(one.nodes, lambda node: one.remote(node).run("true", timeout_s=CHECK_TIMEOUT_S))
    one.close()
    return [
        {
            "cluster": one.name,
            "node": node.name,
            "address": node.address,
            "error": str(answer) if isinstance(answer := answers[node.name], Exception) else None,
        }
        for node in one.nodes
    ]


@cluster.command()
@click.argument("node")
@_name
def shell(node: str, name: str) -> None:
    """Opens a shell on NODE, such as n3.

    The exit code is that of the shell.
    """
    from clusters.local import LocalCluster

    one = LocalCluster.attach(name)
    click.get_current_context().exit(one.shell(_find(one, node)))


def _find(one: Cluster, name: str) -> Node:
    for node in one.nodes:
        if node.name == name:
            return node
    raise InputError(
        f"cluster {one.name!r} has no node {name!r}. {did_you_mean(name, [node.name for node in one.nodes])}"
    )


@cluster.command(short_help="Undoes what faults left on the nodes.")
@_name
@_machine_options
def heal(name: str, inventory: Path | None, *, vagrant: bool) -> None:
    """Removes what faults left on the nodes, such as packet rules and stopped processes."""
    from clusters.heal import heal as heal_node
    from harness.cluster import on_nodes

    failures = []
    with _opened(name, inventory, vagrant=vagrant) as one:
        ours = inventory is None and not vagrant
        results = on_nodes(one.nodes, lambda node: heal_node(one.remote(node), ours=ours))
    for node, result in results.items():
        if isinstance(result, LabrysError):
            failures.append(result)
            echo(message(f"{node} failed: {result}"), err=True)
        elif isinstance(result, Exception):
            raise result
        else:
            echo(one_line(f"{node} {', '.join(result) or 'had nothing to heal'}"))
    if failures:
        click.get_current_context().exit(ExitCode.INTERNAL)


@cluster.command(short_help="Installs what the hosts of an inventory lack.")
@click.option("--inventory", type=existing_file(), required=True, help="The file with the hosts.")
@_slowness
def provision(inventory: Path) -> None:
    """Installs the programs that systems and faults need on all hosts of an inventory.

    The command installs only missing programs, so a second run changes nothing. The hosts need Debian or Ubuntu.
    """
    from clusters.provisioning import provision_host
    from clusters.ssh import SshCluster
    from harness.cluster import on_nodes

    with contextlib.closing(SshCluster.from_inventory(inventory)) as hosts:
        results = on_nodes(hosts.nodes, lambda node: provision_host(hosts.remote(node), report=_progress))
    failures = [result for result in results.values() if isinstance(result, Exception)]
    for failure in failures:
        if not isinstance(failure, LabrysError):
            raise failure
        echo(message(f"failed: {failure}"), err=True)
    echo(f"{len(results) - len(failures)} of {len(results)} hosts have what they need", err=True)
    if failures:
        click.get_current_context().exit(ExitCode.INTERNAL)


def _progress(node: str, text: str) -> None:
    echo(one_line(f"{node} {text}"))


@cluster.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove all local clusters of this machine.")
def down(names: tuple[str, ...], *, everything: bool) -> None:
    """Removes local clusters.

    A cluster can be in any state. A name that no cluster has is an error, after the other clusters are removed. Without a name
    and with --all, the command succeeds if there is no cluster.
    """
    from clusters.local import list_clusters, take_down

    if everything and names:
        raise InputError("--all takes down every cluster; give names or --all, not both")
    wanted = [one.name for one in list_clusters()] if everything else (names or (DEFAULT_NAME,))
    missing = []
    for name in wanted:
        removed = take_down(name)
        if removed or not names:
            echo(f"cluster {name}: {'taken down' if removed else 'there is none'}", err=True)
        else:
            missing.append(name)
    if missing:
        others = [one.name for one in list_clusters()]
        raise InputError(
            f"there is no local cluster {', '.join(map(plain_name, missing))}. "
            + (did_you_mean(missing[0], others) if others else "No local cluster runs.")
        )


@contextlib.contextmanager
def _opened(name: str, inventory: Path | None, *, vagrant: bool) -> Iterator[Cluster]:
    if inventory is not None and vagrant:
        raise InputError("--inventory and --vagrant name different machines; give one of them")
    one: Cluster
    if inventory is not None:
        from clusters.ssh import SshCluster

        one = SshCluster.from_inventory(inventory)
    elif vagrant:
        from clusters.vagrant import VagrantCluster

        one = VagrantCluster.from_directory(Path())
    else:
        from clusters.local import LocalCluster

        one = LocalCluster.attach(name, for_test=True)
    try:
        yield one
    finally:
        one.close()


@click.command(cls=DefaultsCommand)
@_machine_options
@click.option(
    "--system",
    type=PluginName(plugins.SYSTEMS),
    metavar=plugins.METAVAR,
    default=choosing.NameOptions().system_name,
    show_default=True,
    help="Look for the programs that this system needs.",
)
@_format
def doctor(inventory: Path | None, output: str, system: str, *, vagrant: bool) -> None:
    """Shows what this machine and its nodes lack, its purpose, and how to install it.

    The command starts a local node for this, if the user may do so. It also tries what programs in virtual time need of this
    machine (--cluster sim). The exit code is 0 if nothing essential is missing.
    """
    from clusters.doctor import as_lines, examine_machine
    from clusters.local.namespaces import find_program
    from clusters.sim.linux.needs import examine_for_programs

    under_test = plugins.load(plugins.SYSTEMS, system, by_place=True)
    programs = under_test.programs
    machine = examine_machine(programs, libraries=under_test.libraries)
    lacking = [finding.what for finding in machine if finding.needed and not finding.ok]
    virtual = examine_for_programs(find_program)
    nodes, why_not = _examine_nodes(inventory, vagrant=vagrant, lacking=lacking, programs=programs)
    if output == "json":
        document: Mapping[str, object] = {
            "machine": [asdict(finding) for finding in machine],
            "programs_in_virtual_time": [asdict(finding) for finding in virtual],
            "nodes": [asdict(finding) for finding in nodes],
            "nodes_error": why_not,
        }
        echo(json.dumps(document, indent=2))
    else:
        echo("this machine")
        for line in as_lines(machine):
            echo(f"  {line}")
        echo("programs in virtual time (--cluster sim)")
        for line in as_lines(virtual):
            echo(f"  {line}")
        echo("nodes" if not why_not else f"nodes: not examined: {why_not}")
        for line in as_lines(nodes):
            echo(f"  {line}")
    here = [] if inventory is not None or vagrant else machine
    if why_not or any(finding.needed and not finding.ok for finding in (*here, *nodes)):
        click.get_current_context().exit(ExitCode.INTERNAL)


def _examine_nodes(
    inventory: Path | None, *, vagrant: bool, lacking: list[str], programs: Sequence[Program]
) -> tuple[list[Finding], str]:
    """Returns the findings about the nodes, and why there are none; empty if there are findings."""
    from clusters.doctor import examine_nodes

    try:
        if inventory is not None:
            from clusters.hosts import examine_hosts
            from clusters.ssh import SshCluster

            with contextlib.closing(SshCluster.from_inventory(inventory)) as hosts:
                findings, usable = examine_hosts(hosts, programs)
                return [*findings, *(examine_nodes(hosts.probed(usable)) if usable else ())], ""
        if vagrant:
            with _opened("", inventory, vagrant=vagrant) as one:
                return examine_nodes(one.capabilities()), ""
        if lacking:
            return [], f"a local node needs {', '.join(lacking)}"
        from clusters.local import LocalCluster

        with LocalCluster.up(f"doctor-{os.getpid()}", nodes=1) as local:
            return examine_nodes(local.capabilities()), ""
    except InputError:
        raise
    except LabrysError as error:
        return [], str(error)
