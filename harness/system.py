"""The interface of a system under test: installation, start, kill, and status.

A system is a subclass of `System`. It defines the processes of a node (`processes`). The rest follows: how to start, kill,
pause, examine and wipe them. No other code knows anything about a system. The methods block (they use SSH), have their own
deadlines, and may run for several nodes at the same time in different threads. `asyncio` code calls them through
`asyncio.to_thread`.
"""

from __future__ import annotations

import abc
import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from harness.cluster import Paper
from harness.daemon import states
from harness.declare import NoOptions
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.client import Client
    from harness.cluster import Cluster
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.op import Value


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
        process: The role of the reporting process, e.g. `broker`; None if a node has one process that can lead.
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
        reads_need_leader: Whether a node answers reads only while it leads. If False, the final reads go through every node
            as it is.
        moves_leadership: Whether `lead` can move the leadership to a node. If it cannot and reads need the leader, the final
            reads go through the leader only.
        cluster: The cluster with the nodes.
        options: An object of `Options`.
        workload: The name of the workload that it serves.
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
    reads_need_leader: bool = False
    moves_leadership: bool = False

    def __init__(self, cluster: Cluster, options: Any, workload: str) -> None:
        self.cluster = cluster
        self.options = options
        self.workload = workload

    @classmethod
    def roles(cls, nodes: Sequence[str], options: Any, workload: str) -> Mapping[str, Sequence[str]]:
        """Returns the nodes of each role, and contacts no node. Plans are drawn with them.

        The default calls `processes` for nodes without machines. A system that needs real nodes for this overrides it.

        Args:
            nodes: The names of all nodes, in order.
            options: An object of `Options`.
            workload: The name of the workload.

        Returns:
            For each role, the names of its nodes, in the order of the processes' start.
        """
        paper = Paper(nodes)
        return nodes_by_role(cls(cast("Cluster", paper), options, workload), paper.nodes)

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
    def wait_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the nodes serve requests together, with a leader if the system has one.

        Raises:
            InfrastructureError: They do not at the deadline; the message has the last log lines of the failing nodes.
        """

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Calls `wait_ready` in a thread. A run calls this method.

        A system may override it. An interruption of the run cancels a coroutine at once, but it waits for a thread.
        """
        await asyncio.to_thread(self.wait_ready, nodes, timeout_s)

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

    async def status(self, node: Node, timeout_s: float) -> NodeStatus | None:  # noqa: ARG002 - for systems that have a status
        """Asks `node` for its status; None if it does not answer in time, or has none."""
        return None

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Asks every process of `node` that can lead for its status; returns one status for each.

        Processes that do not answer in time are left out. The first status is that of `status`.
        """
        status = await self.status(node, timeout_s)
        return () if status is None else (status,)

    async def lead(self, node: Node, timeout_s: float) -> bool:  # noqa: ARG002
        """Tries to make `node` the leader, with bounded retries, and returns whether it now leads.

        Returns False at once if `moves_leadership` is False.
        """
        return False

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:  # noqa: ARG002
        """Dumps the state of `node`; None if it does not answer in time, or has no dump now."""
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


def nodes_by_role(system: System, nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """Returns the names of the nodes that run a process of each role."""
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        for daemon in system.processes(node):
            found[daemon.role] = (*found.get(daemon.role, ()), node.name)
    return found
