"""The interface of a system under test: installation, services, start, kill, and status.

A system is an ordered list of services (`System.services`). A service is the processes of one role: one process on each of its
nodes. It knows its readiness, its leader and its replicas. The rest follows: how to start, kill, pause, examine and wipe the
processes. A system with one service is a subclass of `OneServiceSystem`, which is both.

No other code knows anything about a system. The methods that are no coroutines block (they use SSH), have their own deadlines,
and may run for several nodes at the same time in different threads. `asyncio` code calls them through `asyncio.to_thread`.
"""

from __future__ import annotations

import abc
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from harness.cluster import Paper
from harness.console.installation import require
from harness.daemon import processes_of
from harness.declare import NoOptions
from harness.errors import InputError
from harness.returns import check_returns
from harness.service import Service
from harness.services import nodes_by_role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from harness.builds import Artifact
    from harness.client import Client
    from harness.cluster import Cluster
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.promise import OnDamage, Promise
    from harness.remote import Result
    from harness.traits import LogLine, Program, Tier
    from harness.verdict import Part


class System(abc.ABC):
    """A system under test on one cluster.

    Labrys finds a system by an entry point of the group `labrys.systems`. Its name is `name`, and its object is the class. The
    class is called with the cluster, its `Options` and the name of the workload.

    Methods with a `role` act on the process of that role, or on all processes of the node if it is None. Processes start in the
    order of their services.

    Attributes:
        name: Its name on the command line, e.g. `my-store`.
        summary: A description in one line.
        tier: What tests of it are for; None: it does not say.
        simulated: Whether its nodes are machines of a simulated world; see `clusters.sim.system`.
        not_by_seed: Why its processes do not run as programs in virtual time; empty: they may. A call that the simulation does
            not know ends such a run; see docs/reference/linux-programs.md.
        only_on: The only kind of cluster that it runs on, e.g. `sim`; empty: any kind with machines.
        Options: The frozen dataclass of its options; see `harness.declare`.
        serves: For each workload that it supports: the operations of the system for its functions, in one line.
        programs: The programs that it needs on its nodes, for `labrys doctor`.
        libraries: The libraries that its clients need, by the name of the module, with the extra of Labrys that brings them.
        answers: Codes of `fail` errors that are answers of a working system, e.g. of a compare-and-set that does not match.
            They count for the availability.
        refusals: Codes of `fail` errors by which a node names another node. For the availability, they are neither answers nor
            outages.
        telling_log_texts: Texts in log lines about elections, changes of roles and lost entries, e.g. `became leader`. Pages
            show only lines with one of them beside the operations. Empty: any lines near a violation.
        log_lines: Lines of its logs by the names that the trigger `log-line` takes, e.g. `snapshot`. Take them from logs of
            real runs.
        on_damage: What it promises about damaged files; None: it does not say.
        faketime: Whether its processes run with libfaketime. If False, Labrys never loads this library into them. Then nodes
            that share this machine's clock have no clock faults.
        lacks: Capabilities of nodes that this system does not let faults use, each with the reason; see `harness.capabilities`.
        threaded: Whether it has threads that the simulator schedules, so that `--preempt`, `--page-faults` and `--stalls` have
            an effect.
        simulator_class: The class that runs the same software in the simulator, as `MODULE:CLASS`; empty if there is none.
        usual_nodes: The number of nodes of a test that names none, if the system cannot work on the usual number.
        ready_timeout_s: The time limit in seconds for all services to serve after the start of a run, on nodes of normal speed.
        cluster: The cluster with the nodes.
        options: An object of `Options`.
        workload: The name of the workload that it serves.
        workload_options: An object of the workload's `Options`, e.g. with the lease of a lock. All methods may read it, but
            the constructor, because `made` sets it afterwards.
        artifact: What `build` returned for the same options. A run sets it before `install`. A system that
            builds nothing has none.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    tier: ClassVar[Tier | None] = None
    simulated: ClassVar[bool] = False
    threaded: ClassVar[bool] = False
    not_by_seed: ClassVar[str] = ""
    only_on: ClassVar[str] = ""
    Options: ClassVar[type] = NoOptions
    serves: ClassVar[Mapping[str, str]] = {}
    programs: ClassVar[Sequence[Program]] = ()
    libraries: ClassVar[Mapping[str, str]] = {}
    log_lines: ClassVar[Mapping[str, LogLine]] = {}
    answers: Sequence[str] = ()
    refusals: Sequence[str] = ()
    telling_log_texts: Sequence[str] = ()
    on_damage: ClassVar[OnDamage | None] = None
    faketime: bool = True
    ready_timeout_s: float = 60.0
    workload_options: Any = None
    lacks: ClassVar[Mapping[str, str]] = {}
    simulator_class: ClassVar[str] = ""
    usual_nodes: ClassVar[int | None] = None
    artifact: Artifact

    def __init_subclass__(cls, **more: Any) -> None:
        """Checks what the methods of a plug-in return; see `harness.returns`."""
        check_returns(cls, "system")  # before `Service` does
        super().__init_subclass__(**more)

    def __init__(self, cluster: Cluster, options: Any, workload: str) -> None:
        """Describes the system on a cluster.

        Raises:
            InputError: A library is not installed.
        """
        for module, extra in self.libraries.items():
            require(module, extra=extra)
        self.cluster = cluster
        self.options = options
        self.workload = workload

    @classmethod
    def made(cls, cluster: Cluster, options: Any, workload: str, workload_options: Any) -> Self:
        """Makes the system, and gives it the options of the workload. Labrys makes every system with it.

        Args:
            cluster: The cluster with the nodes.
            options: An object of `Options`.
            workload: The name of the workload.
            workload_options: An object of the workload's `Options`.

        Raises:
            InputError: The options cannot work together.
        """
        system = cls(cluster, options, workload)
        system.workload_options = workload_options
        system.refuse_options()
        return system

    @classmethod
    def promises(cls, options: Any) -> Mapping[str, Promise]:  # noqa: ARG003 - for systems that promise something
        """Returns what the system promises to the clients of each workload, with these options; see `harness.promise`.

        The options of a workload default to its promise, and the report says which promise was tested. A workload without an
        entry has its own defaults. The default says nothing.

        Args:
            options: An object of `Options`.
        """
        return {}

    def refuse_options(self) -> None:  # noqa: B027 - few systems need it
        """Refuses options of the system and of the workload that cannot work together; must not contact a node.

        Labrys calls it before it opens a cluster.

        Raises:
            InputError: They cannot; the message has the options to give.
        """

    @classmethod
    def build(cls, options: Any, say: Callable[[str], object]) -> Artifact | None:  # noqa: ARG003 - for systems with a build
        """Builds what `install` copies to the nodes, on the control node, or takes it from the cache; see `harness.builds`.

        A run calls it before `install`, and puts the artifact into `versions` and `test.json`. All that determines the
        artifact comes from the options, so it is in the reproduce line too. The default builds nothing.

        Args:
            options: An object of `Options`.
            say: Is called with a sentence about what goes on.

        Returns:
            The artifact; None if the system builds nothing.

        Raises:
            InfrastructureError: It cannot be built; the error says what is missing, and what to do.
        """
        return None

    @classmethod
    def in_simulator(cls) -> type[System] | None:
        """Returns the class that runs the same software in the simulator, with the same options; None if there is none."""
        if cls.simulated or not cls.simulator_class:
            return cls if cls.simulated else None
        system: type[System] = EntryPoint(name=cls.name, value=cls.simulator_class, group="").load()
        return system

    @classmethod
    def builds(cls) -> bool:
        """Returns whether the system has a build of its own."""
        return cls.build.__func__ is not System.build.__func__  # type: ignore[attr-defined]

    @classmethod
    def roles(
        cls, nodes: Sequence[str], options: Any, workload: str, workload_options: Any = None
    ) -> Mapping[str, Sequence[str]]:
        """Returns the nodes of each role, and contacts no node. Plans are drawn with them.

        The default calls `services` for nodes without machines. A system that needs real nodes for this overrides it.

        Args:
            nodes: The names of all nodes, in order.
            options: An object of `Options`.
            workload: The name of the workload.
            workload_options: An object of the workload's `Options`.

        Returns:
            For each role, the names of its nodes, in the order of the services.

        Raises:
            InputError: Two services have one role, or not exactly one service serves clients.
        """
        return nodes_by_role(cls.made(cast("Cluster", Paper(nodes)), options, workload, workload_options))

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the tested software, e.g. `{"my-store": "0.4.0"}`.

        A run calls it before `install`, which has no network in the simulator: packages are downloaded here.
        """
        return {}

    @abc.abstractmethod
    def services(self) -> Sequence[Service]:
        """Returns the services in the order of their start, always the same objects; must not contact a node."""

    @abc.abstractmethod
    def install(self, node: Node) -> None:
        """Installs the system on `node`; returns quickly if it is installed."""

    @abc.abstractmethod
    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of `process` at `node`.

        Args:
            process: The process of the client.
            node: The node of the service for clients to which it connects first; the history records its operations with it.
            pinned: Whether it must ask only this node, even if the system names another one (final reads).
        """

    def start(self, node: Node, role: str | None = None) -> None:
        """Starts the processes in their order, and returns when they run. Does nothing for one that already runs.

        If the node has a file `harness.daemon.ENVIRONMENT`, they get the variables in it.
        """
        for daemon in self.daemons(node, role):
            processes_of(self.cluster, node).start(daemon)

    def stop(self, node: Node, role: str | None = None) -> None:
        """Ends the processes, in a quick and certain way. Ignores processes that do not run."""
        self.kill(node, role)

    def kill(self, node: Node, role: str | None = None) -> None:
        """Ends the processes with SIGKILL, the last one first. Does nothing for one that does not run."""
        for daemon in reversed(self.daemons(node, role)):
            processes_of(self.cluster, node).kill(daemon)

    def pause(self, node: Node, role: str | None = None) -> None:
        """Stops the processes with SIGSTOP, and returns when none of their threads runs.

        Raises:
            CommandFailed: One of them does not run, or does not stop.
        """
        for daemon in self.daemons(node, role):
            processes_of(self.cluster, node).pause(daemon)

    def resume(self, node: Node, role: str | None = None) -> None:
        """Continues stopped processes with SIGCONT. Does nothing for one that does not run."""
        for daemon in self.daemons(node, role):
            processes_of(self.cluster, node).resume(daemon)

    def tool(self, node: Node, command: str, *, timeout_s: float) -> Result:
        """Runs a tool of the system on a node to its end: a command line of its shell, with programs of the system. Blocks.

        Use it for a program that connects to nodes, reads a clock or draws at random, e.g. one that formats a disk. In virtual
        time, it is a program of the simulation, so that the seed repeats it; the rest of Labrys stands still meanwhile. The
        commands of `cluster.remote(node).run` run outside of the simulation, and reach no node.

        Raises:
            CommandFailed: Its status is not 0.
            CommandTimeout: The deadline passed.
            NodeUnreachable: The connection is lost or cannot be made.
        """
        return processes_of(self.cluster, node).tool(command, timeout_s)

    def process_states(self, node: Node, role: str | None = None) -> Mapping[str, tuple[int, str] | None]:
        """Reads the states of the processes from the kernel of the node, and not from a pid file.

        Returns:
            For each role, the pid and the state letter as in /proc/PID/stat (`T` is stopped); None if it does not run.
        """
        return processes_of(self.cluster, node).states(self.daemons(node, role))

    def process_state(self, node: Node, role: str | None = None) -> tuple[int, str] | None:
        """Reads the state of one process; see `process_states`.

        Raises:
            InputError: The node runs several processes, and the role is not named.
        """
        only = self._only(node, role).role
        return self.process_states(node, only)[only]

    def wipe(self, node: Node, role: str | None = None) -> None:
        """Removes data and logs; the processes must not run."""
        for daemon in self.daemons(node, role):
            processes_of(self.cluster, node).wipe(daemon)

    def log_files(self, node: Node, role: str | None = None) -> Sequence[str]:
        """Returns the absolute paths of the logs on `node`; some may not exist."""
        return list(dict.fromkeys(path for daemon in self.daemons(node, role) for path in daemon.log_files))

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns regular expressions of log lines that a healthy node never writes, even under faults."""
        return ()

    def own_parts(self) -> Sequence[Part]:
        """Returns parts of a run's verdict about what the system itself saw, e.g. of the protocol of its nodes; after a run."""
        return ()

    def data_dir(self, node: Node, role: str | None = None) -> str:
        """Returns the absolute path of the directory with the data that must survive a crash of a process.

        Raises:
            InputError: The node runs several processes, and the role is not named.
        """
        return self._only(node, role).data_dir

    def ports(self, role: str | None = None) -> Sequence[int]:
        """Returns the TCP ports that nodes and clients use, for probes and packet faults."""
        daemons = (daemon for node in self.cluster.nodes for daemon in self.daemons(node, role))
        return list(dict.fromkeys(port for daemon in daemons for port in daemon.every_port))

    def leader_ports(self) -> Collection[int]:
        """Returns the TCP ports on which a process listens only while it leads."""
        return {port for node in self.cluster.nodes for daemon in self.daemons(node) for port in daemon.leader_ports}

    def front(self) -> Service:
        """Returns the service that clients use."""
        return next(service for service in self.services() if service.serves_clients)

    def service(self, role: str) -> Service:
        """Returns the service of a role."""
        return next(service for service in self.services() if service.role == role)

    def tells_time(self) -> bool:
        """Returns whether its processes say their wall clock, by `Service.clock` or `Daemon.log_clock`."""
        return any(
            type(service).clock is not Service.clock or service.daemon(node).log_clock is not None
            for service in self.services()
            for node in service.nodes
        )

    def runs_java(self) -> bool:
        """Returns whether one of its processes is a JVM whose packages are known (`Daemon.java_packages`)."""
        return any(service.daemon(node).java_packages for service in self.services() for node in service.nodes)

    def daemons(self, node: Node, role: str | None = None) -> Sequence[Daemon]:
        """Returns the processes of a node, in the order of their start."""
        return [
            service.daemon(node)
            for service in self.services()
            if role in {None, service.role} and node in service.nodes
        ]

    def _only(self, node: Node, role: str | None) -> Daemon:
        daemons = self.daemons(node, role)
        if len(daemons) != 1:
            roles = ", ".join(daemon.role for daemon in self.daemons(node)) or "none"
            raise InputError(
                f"expected the role of one process of {self.name} on {node.name}, not {role!r}; its processes are: {roles}"
            )
        return daemons[0]


class OneServiceSystem(System, Service):
    """A system that is its own and only service, on all nodes. It defines the members of both."""

    @property
    def system(self) -> System:
        """Returns itself."""
        return self

    @property
    def nodes(self) -> Sequence[Node]:
        """Returns all nodes."""
        return self.cluster.nodes

    def services(self) -> Sequence[Service]:
        """Returns itself."""
        return (self,)
