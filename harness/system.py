"""The interface of a system under test: installation, start, kill, and status.

A system is a subclass of `System`. It defines the processes of a node (`processes`). The rest follows: how to start, kill,
pause, examine and wipe them. No other code knows anything about a system. The methods that are no coroutines block (they use
SSH), have their own deadlines, and may run for several nodes at the same time in different threads. `asyncio` code calls them
through `asyncio.to_thread`.
"""

from __future__ import annotations

import abc
import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from harness.cluster import Paper
from harness.daemon import states
from harness.declare import NoOptions
from harness.errors import InputError
from harness.process_clock import logged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.client import Client
    from harness.cluster import Cluster
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.op import Value
    from harness.process_clock import ClockReading


CLOCK_POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """The report of a node about itself.

    Attributes:
        node: The node's name.
        role: `leader`, `follower`, `candidate`, or another name of the system.
        term: The node's term or epoch; None if the system has none.
        leader: The name of the node that it believes to be the leader; None if it knows none.
        applied_index: The last log entry that its state machine has applied; None if there is no log.
        committed_index: The last entry that it knows to be committed.
        details: Further figures, for the report.
        process: The role of the reporting process, e.g. `broker`; None if a node has one process that can lead. Then the
            leader of any role is the process of this role on the leading node.
    """

    node: str
    role: str
    term: int | None = None
    leader: str | None = None
    applied_index: int | None = None
    committed_index: int | None = None
    details: Mapping[str, Value] | None = None
    process: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The whole state of one replica, for a comparison at rest.

    Attributes:
        node: The node's name.
        applied_index: The log position that the state belongs to.
        state: Key to value.
    """

    node: str
    applied_index: int
    state: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that a system needs on its nodes; `labrys doctor` looks for it.

    Attributes:
        name: Its name on the PATH, e.g. `java`.
        package: The Debian package that has it.
        purpose: Its purpose, e.g. `running DLedger`.
        least_version: The minimum major version; None if any version works.
        version_pattern: A regular expression whose first group is the major version in the output of `NAME -version`.
        build_only: Whether only a machine that builds the system needs it.
    """

    name: str
    package: str
    purpose: str
    least_version: int | None = None
    version_pattern: str = r"(\d+)"
    build_only: bool = False


class System(abc.ABC):
    """A system under test on one cluster.

    Labrys finds a system by an entry point of the group `labrys.systems`. Its name is `name`, and its object is the class. The
    class is called with the cluster, its `Options` and the name of the workload.

    Methods with a `role` act on the process of that role, or on all processes of the node if it is None.

    Attributes:
        name: Its name on the command line, e.g. `dledger`.
        summary: A description in one line.
        simulated: Whether it runs only in the simulator; see `clusters.sim.system`.
        Options: The frozen dataclass of its options; see `harness.declare`.
        serves: For each workload that it supports: the operations of the system for its functions, in one line.
        programs: The programs that it needs on its nodes, for `labrys doctor`.
        dumps_replicas: Whether `replica` can dump a replica's state.
        answers: Codes of `fail` errors that are answers of a working system, e.g. of a compare-and-set that does not match.
            They count for the availability.
        refusals: Codes of `fail` errors by which a node names another node. For the availability, they are neither answers nor
            outages.
        telling_log_texts: Texts in log lines about elections, changes of roles and lost entries, e.g. `became leader`. Pages
            show only lines with one of them beside the operations. Empty: any lines near a violation.
        reads_need_leader: Whether a node answers reads only while it leads. If False, the final reads go through every node
            as it is.
        one_leader_per_term: Why at most one node can report that it leads in a term, as a sentence: the promise of the
            system, and why `statuses` has role and term of one moment. Then two such nodes make a run invalid. Empty: the
            report only has a sentence about them, e.g. because `statuses` reads role and term one after the other.
        moves_leadership: Whether `lead` can move the leadership to a node. If it cannot and reads need the leader, the final
            reads go through the leader only.
        faketime: Whether its processes run with libfaketime. If False, Labrys never loads this library into them. Then nodes
            that share this machine's clock have no clock faults.
        cluster: The cluster with the nodes.
        options: An object of `Options`.
        workload: The name of the workload that it serves.
        workload_options: An object of the workload's `Options`, e.g. with the lease of a lock. All methods may read it, but
            the constructor, because `made` sets it afterwards.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    simulated: ClassVar[bool] = False
    Options: ClassVar[type] = NoOptions
    serves: ClassVar[Mapping[str, str]] = {}
    programs: ClassVar[Sequence[Program]] = ()
    dumps_replicas: bool = False
    answers: Sequence[str] = ()
    refusals: Sequence[str] = ()
    telling_log_texts: Sequence[str] = ()
    reads_need_leader: bool = False
    one_leader_per_term: str = ""
    moves_leadership: bool = False
    faketime: bool = True
    workload_options: Any = None

    def __init__(self, cluster: Cluster, options: Any, workload: str) -> None:
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
        """
        system = cls(cluster, options, workload)
        system.workload_options = workload_options
        return system

    @classmethod
    def roles(
        cls, nodes: Sequence[str], options: Any, workload: str, workload_options: Any = None
    ) -> Mapping[str, Sequence[str]]:
        """Returns the nodes of each role, and contacts no node. Plans are drawn with them.

        The default calls `processes` for nodes without machines. A system that needs real nodes for this overrides it.

        Args:
            nodes: The names of all nodes, in order.
            options: An object of `Options`.
            workload: The name of the workload.
            workload_options: An object of the workload's `Options`.

        Returns:
            For each role, the names of its nodes, in the order of the processes' start.
        """
        paper = Paper(nodes)
        return nodes_by_role(cls.made(cast("Cluster", paper), options, workload, workload_options), paper.nodes)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the tested software, e.g. `{"dledger": "0.4.0"}`."""
        return {}

    @abc.abstractmethod
    def processes(self, node: Node) -> Sequence[Daemon]:
        """Returns the processes that `node` runs, in the order of their start; must not contact the node."""

    @abc.abstractmethod
    def install(self, node: Node) -> None:
        """Installs the system on `node`; returns quickly if it is installed."""

    @abc.abstractmethod
    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the nodes serve requests together, with a leader if the system has one.

        An interruption of the run cancels the coroutine. It must not block the loop: a call that blocks belongs into
        `asyncio.to_thread`.

        Raises:
            InfrastructureError: They do not at the deadline; the message names what is missing. Labrys adds the state of the
                processes, the status and the last log lines of each node; see `harness.readiness`.
        """

    @abc.abstractmethod
    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of `process` at `node`.

        Args:
            process: The process of the client.
            node: The node to which it connects first; the history records its operations with this node.
            pinned: Whether it must ask only this node, even if the system names another one (final reads).
        """

    def start(self, node: Node, role: str | None = None) -> None:
        """Starts the processes in their order, and returns when they run. Does nothing for one that already runs.

        If the node has a file `harness.daemon.ENVIRONMENT`, they get the variables in it.
        """
        for daemon in self._of(node, role):
            daemon.start(self.cluster.remote(node))

    def stop(self, node: Node, role: str | None = None) -> None:
        """Ends the processes, in a quick and certain way. Ignores processes that do not run."""
        self.kill(node, role)

    def kill(self, node: Node, role: str | None = None) -> None:
        """Ends the processes with SIGKILL, the last one first. Does nothing for one that does not run."""
        for daemon in reversed(self._of(node, role)):
            daemon.kill(self.cluster.remote(node))

    def pause(self, node: Node, role: str | None = None) -> None:
        """Stops the processes with SIGSTOP.

        Raises:
            CommandFailed: One of them does not run.
        """
        for daemon in self._of(node, role):
            daemon.pause(self.cluster.remote(node))

    def resume(self, node: Node, role: str | None = None) -> None:
        """Continues stopped processes with SIGCONT. Does nothing for one that does not run."""
        for daemon in self._of(node, role):
            daemon.resume(self.cluster.remote(node))

    def process_states(self, node: Node, role: str | None = None) -> Mapping[str, tuple[int, str] | None]:
        """Reads the states of the processes from the kernel of the node, and not from a pid file.

        Returns:
            For each role, the pid and the state letter as in /proc/PID/stat (`T` is stopped); None if it does not run.
        """
        return states(self.cluster.remote(node), self._of(node, role))

    def process_state(self, node: Node, role: str | None = None) -> tuple[int, str] | None:
        """Reads the state of one process; see `process_states`.

        Raises:
            InputError: The node runs several processes, and the role is not named.
        """
        only = self._only(node, role).role
        return self.process_states(node, only)[only]

    def wipe(self, node: Node, role: str | None = None) -> None:
        """Removes data and logs; the processes must not run."""
        for daemon in self._of(node, role):
            daemon.wipe(self.cluster.remote(node))

    def log_files(self, node: Node, role: str | None = None) -> Sequence[str]:
        """Returns the absolute paths of the logs on `node`; some may not exist."""
        return list(dict.fromkeys(path for daemon in self._of(node, role) for path in daemon.log_files))

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns regular expressions of log lines that a healthy node never writes, even under faults."""
        return ()

    def data_dir(self, node: Node, role: str | None = None) -> str:
        """Returns the absolute path of the directory with the data that must survive a crash of a process.

        Raises:
            InputError: The node runs several processes, and the role is not named.
        """
        return self._only(node, role).data_dir

    def ports(self, role: str | None = None) -> Sequence[int]:
        """Returns the TCP ports that nodes and clients use, for probes and packet faults."""
        daemons = (daemon for node in self.cluster.nodes for daemon in self._of(node, role))
        return list(dict.fromkeys(port for daemon in daemons for port in daemon.ports))

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:  # noqa: ARG002 - for systems that have one
        """Asks every process of `node` that can lead for what it believes; returns one status for each.

        Processes that do not answer in time are left out. It never asks another node, and never raises: docs/new-system.md has
        the rules. The default returns none, for a system without a status.
        """
        return ()

    async def clock(self, node: Node, role: str, timeout_s: float) -> ClockReading | None:
        """Asks the process of a role for its wall clock; None if it does not say it in time.

        A clock fault on a node that shares this machine's clock is proven only by this. The process must say it after the call.
        `harness.process_clock.asked` helps if the process answers a request with its time. The default waits for the next line
        of the log that `Daemon.log_clock` describes, and asks for the status meanwhile, because many systems log that.
        """
        clocks = [daemon.log_clock for daemon in self._of(node, role) if daemon.log_clock is not None]
        if not clocks:
            return None
        line = asyncio.ensure_future(logged(self.cluster.remote(node), clocks[0], timeout_s))
        try:
            while not line.done():
                await self.statuses(node, timeout_s)
                await asyncio.wait((line,), timeout=CLOCK_POLL_S)
        finally:
            line.cancel()  # has no effect on one that is done
        return line.result()

    def tells_time(self) -> bool:
        """Returns whether its processes say their wall clock, by `clock` or `Daemon.log_clock`."""
        if type(self).clock is not System.clock:
            return True
        return any(daemon.log_clock for node in self.cluster.nodes for daemon in self.processes(node))

    async def lead(self, node: Node, timeout_s: float) -> bool:  # noqa: ARG002
        """Tries to make `node` the leader, with bounded retries, and returns whether it now leads.

        Returns False at once if `moves_leadership` is False.
        """
        return False

    def holds_replica(self, node: Node) -> bool:  # noqa: ARG002 - for systems with nodes of several sorts
        """Returns whether `node` has a replica to compare, e.g. False for a node with a sentinel only.

        A replica that gives no dump makes the comparison unknown. A node without a replica takes no part in it.
        """
        return True

    async def lead_promptly(self, node: Node, timeout_s: float) -> bool:
        """Like `lead`, in the fastest way that the system has. The final reads call it, when no workload and no fault is on.

        The default calls `lead`.
        """
        return await self.lead(node, timeout_s)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:  # noqa: ARG002
        """Dumps the state of `node`; None if it does not answer in time, or has no dump now.

        Labrys asks only the nodes that hold a replica; see `holds_replica`.
        """
        return None

    def _of(self, node: Node, role: str | None) -> Sequence[Daemon]:
        daemons = self.processes(node)
        return daemons if role is None else [daemon for daemon in daemons if daemon.role == role]

    def _only(self, node: Node, role: str | None) -> Daemon:
        daemons = self._of(node, role)
        if len(daemons) != 1:
            roles = ", ".join(daemon.role for daemon in self.processes(node)) or "none"
            raise InputError(
                f"expected the role of one process of {self.name} on {node.name}, not {role!r}; its processes are: {roles}"
            )
        return daemons[0]


async def first_status(system: System, node: Node, timeout_s: float) -> NodeStatus | None:
    """Asks a node, and returns the first of its statuses; None if no process answers in time, or none can lead."""
    return next(iter(await system.statuses(node, timeout_s)), None)


def nodes_by_role(system: System, nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """Returns the names of the nodes that run a process of each role."""
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        for daemon in system.processes(node):
            found[daemon.role] = (*found.get(daemon.role, ()), node.name)
    return found
