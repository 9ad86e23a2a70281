"""The options of the command line that choose where a test runs."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from clusters.sim.threads import PAGE_FAULTS, PREEMPT, STALLS, Threads
from harness.console.parameters import MAX_SEED, Choice
from harness.declare import Topic, option
from harness.errors import InputError
from harness.slowness import NORMAL, nodes_slower_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.cluster import Cluster
    from harness.console.sources import Origin

SIMULATED = "sim"
PIPES = "pipes"
OWN, PROGRAMS = "own", "programs"  # what carries a system in the simulator
ALONE = (SIMULATED, PIPES)  # the clusters without machines, whose nodes end with their run
MACHINES = ("local", "vagrant", "ssh")  # the clusters whose nodes are machines, or stand for them
CLUSTERS = (*MACHINES, *ALONE)
COUNTED = ("local", *ALONE)  # the clusters whose size is the option --nodes
MOST_NODES = 9  # of all kinds but pipes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Where a test runs."""

    TOPIC: ClassVar = Topic.CLUSTER

    cluster_kind: str = option(
        "local",
        "The kind of cluster; sim is the simulator, and pipes runs programs on stdin and stdout. Both need neither root nor "
        "machines.",
        flag="--cluster",
        kind=Choice(CLUSTERS),
        main=True,
    )
    nodes: int | None = option(
        5,
        f"The number of nodes of a cluster local, sim or pipes; at most {MOST_NODES}, but for pipes.",
        low=1,
        high=25,
        main=True,
    )
    virtual: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "With --cluster pipes: run the programs in virtual time.",
        flag="--virtual",
    )
    carrier: str | None = option(
        None,
        "With --cluster sim: what carries the system. own is code of the simulator, or Java with its threads in virtual time; "
        "programs is the processes as they are. The default is the system's own carrier, if it has one. With --cluster pipes "
        "--virtual: programs lets the seed decide the threads, timers and clocks of the programs too.",
        kind=Choice((OWN, PROGRAMS)),
    )
    inventory: Path | None = option(None, "The file with the hosts of --cluster ssh.")
    slowness: float = option(
        NORMAL,
        "The factor for slow nodes, e.g. 8 for emulated virtual machines. It multiplies each time limit that has no option of "
        "its own.",
        low=1,
        high=1000,
    )

    preempt: float = option(
        PREEMPT,
        "With --cluster sim, and a system in Java or programs: the probability with which a thread stops, and another runs "
        "first: in Java at a lock, in programs at a system call.",
        low=0,
        high=1,
        hunted=(PREEMPT, 0.0, 0.1),
    )
    page_faults: float = option(
        PAGE_FAULTS,
        "With --cluster sim and a system in Java: the probability with which a write into a mapped file takes time, so that a "
        "fault can come before it.",
        low=0,
        high=1,
        hunted=(PAGE_FAULTS, 0.3),
    )
    stalls: float = option(
        STALLS,
        "With --cluster sim, and a system in Java or programs: the mean number of times in a second that a thread stalls, for "
        "1 ms to 1 s: in Java where it uses a field or a lock, in programs at a system call. In Java, threads then have "
        "priorities, and --preempt has no effect.",
        low=0,
        high=1000,
        hunted=(STALLS, 0.3, 3.0),
    )

    start_seed: int | None = option(
        None,
        "With --cluster sim and programs: the nodes start as in the run of this seed, and go on by --seed when the system "
        "serves. Runs that differ only in --seed and in their faults then have the same start.",
        low=0,
        high=MAX_SEED,
    )
    trace_all: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "With --cluster sim and programs: each system call stops its thread and is in the digest, also one without a part in "
        "time, chance, threads or the network. The run is slower.",
        flag="--trace-all",
    )
    all_stop: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "With --cluster sim and programs: system calls stop their thread that the program could answer itself. The run does "
        "the same, and is slower.",
        flag="--all-stop",
    )

    @property
    def threads(self) -> Threads:
        """Returns where the threads of simulated programs in Java stop."""
        return Threads(
            preempt=self.preempt,
            page_faults=self.page_faults,
            stalls=self.stalls,
            trace_all=self.trace_all,
            all_stop=self.all_stop,
        )

    @property
    def simulated(self) -> bool:
        """Returns whether the nodes run in virtual time."""
        return self.cluster_kind == SIMULATED or self.of_programs

    @property
    def carried(self) -> bool:
        """Returns whether a controller carries the programs with pipes, so that the seed decides their threads too."""
        return self.of_programs and self.carrier == PROGRAMS

    @property
    def of_programs(self) -> bool:
        """Returns whether the nodes are programs in virtual time, whose seed may not repeat a run."""
        return self.cluster_kind == PIPES and self.virtual


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions:
    """Which cluster a test uses. It does not change what is tested, so the reproduce line leaves it out."""

    TOPIC: ClassVar = Topic.CLUSTER

    cluster_name: str | None = option(
        None, "The name of a local cluster; if no such cluster runs, the test starts one."
    )
    keep_cluster: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Do not remove the local cluster at the end.",
        flag="--keep-cluster",
    )


def settle_nodes(
    cluster: ClusterOptions, where: PlaceOptions, given: Mapping[str, Origin], *, assume: bool = False
) -> tuple[ClusterOptions, tuple[str, ...], list[str]]:
    """Finds the names of the nodes, without starting or contacting any of them.

    Args:
        cluster: The kind of cluster, and its options.
        where: Which cluster.
        given: The origins of values that are not built-in defaults, by parameter name.
        assume: If Vagrant's nodes are unknown, assume n1 to nN.

    Returns:
        The options, where those that do not apply to this cluster have its actual values; the names of the nodes; and a line
        for each option that has no effect, and for each assumption.

    Raises:
        InputError: The options contradict each other, or the nodes are unknown.
    """
    _refuse_contradictions(cluster)
    kind, lines = cluster.cluster_kind, []
    inventory = given.get("inventory")
    if kind != "ssh" and inventory is not None:
        if inventory.typed:
            raise InputError(f"{inventory.words} needs --cluster ssh, and this is --cluster {kind}")
        lines.append(f"{inventory.words} has no effect with --cluster {kind}")
        cluster = replace(cluster, inventory=None)
    if cluster.simulated and cluster.slowness != NORMAL:
        lines.append(f"--slowness has no effect with --cluster {kind} in virtual time: its nodes have no speed")
        cluster = replace(cluster, slowness=NORMAL)
    lines += [
        f"--{flag} has no effect with --cluster {kind}: its nodes end with their run"
        for flag, value in (("cluster-name", where.cluster_name), ("keep-cluster", where.keep_cluster))
        if value and kind in ALONE
    ]
    try:
        names = _names(cluster, where)
    except InputError as error:
        if not assume or kind != "vagrant":
            raise
        names = _numbered(cluster)
        return cluster, names, [*lines, f"{error}; the nodes are assumed to be {', '.join(names)}"]
    if len(names) != cluster.nodes:
        asked = given.get("nodes")
        if asked is not None and asked.typed:
            raise InputError(f"{asked.words} contradicts the cluster, which has {len(names)}: {', '.join(names)}")
        if asked is not None:
            lines.append(f"{asked.words} has no effect: the cluster has {len(names)} nodes, {', '.join(names)}")
    return replace(cluster, nodes=len(names) if kind in COUNTED else None), names, lines


def _refuse_contradictions(cluster: ClusterOptions) -> None:
    if cluster.virtual and cluster.cluster_kind != PIPES:
        raise InputError(f"--virtual needs --cluster {PIPES}, not --cluster {cluster.cluster_kind}")
    if cluster.carrier is not None and cluster.cluster_kind != SIMULATED and not cluster.carried:
        needs = f"--cluster {SIMULATED}" + (f" or --cluster {PIPES} --virtual" if cluster.carrier == PROGRAMS else "")
        raise InputError(f"--carrier {cluster.carrier} needs {needs}, not --cluster {cluster.cluster_kind}")
    if cluster.cluster_kind != PIPES and (cluster.nodes or 0) > MOST_NODES:
        raise InputError(
            f"expected at most {MOST_NODES} nodes with --cluster {cluster.cluster_kind}, not {cluster.nodes}"
        )


def _names(cluster: ClusterOptions, where: PlaceOptions) -> tuple[str, ...]:
    kind, name = cluster.cluster_kind, where.cluster_name
    if kind == "ssh":
        from clusters.ssh import read_inventory  # noqa: PLC0415 - brings paramiko, which `--help` does not need

        return tuple(machine.node.name for machine in read_inventory(_inventory(cluster))[1])
    if kind == "vagrant":
        from clusters.vagrant import read_layout  # noqa: PLC0415 - likewise

        return tuple(node.name for node in read_layout(Path("Vagrantfile"), os.environ).members())
    if name and kind == "local":
        from clusters.local import list_clusters  # noqa: PLC0415 - likewise

        for existing in list_clusters():
            if existing.name == name:
                return tuple(node.name for node in existing.nodes)
    return _numbered(cluster)


def _numbered(cluster: ClusterOptions) -> tuple[str, ...]:
    first = 0 if cluster.cluster_kind == PIPES else 1  # programs with pipes know their nodes as n0, n1, ...
    return tuple(f"n{number}" for number in range(first, (cluster.nodes or 0) + first))


def _inventory(cluster: ClusterOptions) -> Path:
    if cluster.inventory is None:
        raise InputError("--cluster ssh needs --inventory FILE, a list of hosts; docs/guide/clusters.md has an example")
    return cluster.inventory


@contextlib.contextmanager
def open_cluster(
    cluster: ClusterOptions, where: PlaceOptions, seed: int, *, by_programs: bool = False
) -> Iterator[Cluster]:
    """Opens the cluster that the options name. A cluster that this function starts is removed at the end.

    Args:
        cluster: The kind of cluster, and its options.
        where: Which cluster.
        seed: The root seed of the run, for simulated nodes.
        by_programs: In the simulator, whether the processes of the system are Linux programs.
    """
    with nodes_slower_by(cluster.slowness), _opened(cluster, where, seed, by_programs=by_programs) as opened:
        yield opened


@contextlib.contextmanager
def _opened(cluster: ClusterOptions, where: PlaceOptions, seed: int, *, by_programs: bool) -> Iterator[Cluster]:
    if cluster.cluster_kind == "local":
        with _local(cluster, where) as local:
            yield local
        return
    opened: Cluster
    if by_programs:
        from clusters.sim.linux.cluster import LinuxCluster  # noqa: PLC0415 - `--help` needs no world

        start_seed = seed if cluster.start_seed is None else cluster.start_seed
        opened = LinuxCluster(_names(cluster, where), start_seed, threads=cluster.threads)
    elif cluster.cluster_kind == SIMULATED:
        from clusters.sim.cluster import SimCluster  # noqa: PLC0415 - `--help` needs no world

        opened = SimCluster(_names(cluster, where), seed, threads=cluster.threads)
    elif cluster.cluster_kind == PIPES:
        from clusters.pipes.cluster import PipesCluster  # noqa: PLC0415 - likewise

        carried = cluster.threads if cluster.carried else None
        opened = PipesCluster(_names(cluster, where), seed, virtual=cluster.virtual, carried=carried)
    elif cluster.cluster_kind == "ssh":
        from clusters.ssh import SshCluster  # noqa: PLC0415 - brings paramiko, which `--help` does not need

        opened = SshCluster.from_inventory(_inventory(cluster))
    else:
        from clusters.vagrant import VagrantCluster  # noqa: PLC0415 - likewise

        opened = VagrantCluster.from_directory(Path())
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def _local(options: ClusterOptions, where: PlaceOptions) -> Iterator[Cluster]:
    from clusters.local import LocalCluster, list_clusters  # noqa: PLC0415 - brings paramiko, which `--help` does not need

    name = where.cluster_name or f"test-{os.getpid()}"
    if where.cluster_name and any(cluster.name == name for cluster in list_clusters()):
        attached = LocalCluster.attach(name, for_test=True)
        try:
            yield attached
        finally:
            attached.close()
        return
    cluster = LocalCluster.up(name, nodes=options.nodes or 0, for_test=True)
    try:
        yield cluster
    finally:
        if where.keep_cluster:
            cluster.close()
        else:
            cluster.down()
