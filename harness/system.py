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
        term: The node's term or epoch; None where the system has none.
        leader: The name of the node it believes to lead; None if it knows none.
        applied_index: The last log entry its state machine has applied; None where there is no log.
        committed_index: The last entry it knows to be committed.
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
        version_pattern: A regular expression whose first group is the major version in what `NAME -version` writes.
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

    Methods with a `role` act on the process of that role, or on all processes of the node where it is None.

    Attributes:
        name: As on the command line, e.g. `dledger`.
        summary: A description in one line.
        simulated: Whether it runs only in the simulator; see `clusters.sim.system`.
        Options: The frozen dataclass of its options; see `harness.declare`.
        serves: Workload name to how its functions map to the system's operations, in one line.
        programs: The programs that it needs on its nodes, for `labrys doctor`.
        dumps_replicas: Whether `replica` can dump a replica's state.
        answers: Codes of `fail` errors that a working system gives as an answer, e.g. of a compare-and-set that does not match;
            availability counts them as answered.
        refusals: Codes of `fail` errors by which a node names the node to ask instead. Availability counts them apart: they
            are neither answers nor outages.
        reads_need_leader: Whether a node answers reads only while it leads. Where it is False, the final reads go through
            every node as it is.
        moves_leadership: Whether `lead` can move the leadership to a node. Where reads need a leader and it cannot be moved,
            the final reads go through the node that leads.
        cluster: Where the nodes are.
        options: How the system is configured: an object of `Options`.
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
        """Returns the nodes of each role, without contacting a node. Plans are drawn with it.

        The default calls `processes` for nodes without a machine. A system that needs its real nodes for this overrides it.

        Args:
            nodes: The names of all nodes, in order.
            options: An object of `Options`.
            workload: The name of the workload.

        Returns:
            Role to the names of its nodes, in the order of the processes' start.
        """
        paper = Paper(nodes)
        return nodes_by_role(cls(cast("Cluster", paper), options, workload), paper.nodes)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of what is tested, e.g. `{"dledger": "0.4.0"}`, for the record."""
        return {}

    @abc.abstractmethod
    def processes(self, node: Node) -> Sequence[Daemon]:
        """Returns the processes that `node` runs, in the order of their start; must not touch the node."""

    @abc.abstractmethod
    def install(self, node: Node) -> None:
        """Puts everything the system needs on `node`; quick when it is already there."""

    @abc.abstractmethod
    def wait_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the nodes serve requests together (with a leader, where there is one).

        Raises:
            InfrastructureError: They do not at the deadline; the message shows the last log lines of the failing nodes.
        """

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Does what `wait_ready` does, without blocking the loop; this is what a run calls."""
        await asyncio.to_thread(self.wait_ready, nodes, timeout_s)

    @abc.abstractmethod
    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of `process`, placed at `node`.

        Args:
            process: The process it works for.
            node: The node to which it first connects, and under which its operations are recorded.
            pinned: Whether it must never leave its node, whatever the system's routing says (final reads).
        """

    def start(self, node: Node, role: str | None = None) -> None:
        """Starts the processes in their order; returns when they were launched. Does nothing to one that already runs.

        Where the node has a file `harness.daemon.ENVIRONMENT`, they get the variables that its lines set.
        """
        for daemon in self._of(node, role):
            daemon.start(self.cluster.remote(node))

    def stop(self, node: Node, role: str | None = None) -> None:
        """Ends the processes, in a quick and certain way. Ignores processes that do not run."""
        self.kill(node, role)

    def kill(self, node: Node, role: str | None = None) -> None:
        """Ends the processes with SIGKILL, the last one first. Does nothing to one that does not run."""
        for daemon in reversed(self._of(node, role)):
            daemon.kill(self.cluster.remote(node))

    def pause(self, node: Node, role: str | None = None) -> None:
        """Stops the processes with SIGSTOP.

        Raises:
            CommandFailed: One does not run.
        """
        for daemon in self._of(node, role):
            daemon.pause(self.cluster.remote(node))

    def resume(self, node: Node, role: str | None = None) -> None:
        """Continues stopped processes with SIGCONT. Does nothing to one that does not run."""
        for daemon in self._of(node, role):
            daemon.resume(self.cluster.remote(node))

    def process_states(self, node: Node, role: str | None = None) -> Mapping[str, tuple[int, str] | None]:
        """Reads the processes from the kernel of the node, not from a pid file alone.

        Returns:
            Role to pid and state letter as in /proc/PID/stat (`T` is stopped), or None where there is no such process.
        """
        return states(self.cluster.remote(node), self._of(node, role))

    def process_state(self, node: Node, role: str | None = None) -> tuple[int, str] | None:
        """Reads one process likewise.

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
        """Returns the absolute paths of the logs on `node`; not each is always there."""
        return list(dict.fromkeys(path for daemon in self._of(node, role) for path in daemon.log_files))

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns regular expressions of log lines that a healthy node never writes, whatever faults it met."""
        return ()

    def data_dir(self, node: Node, role: str | None = None) -> str:
        """Returns the absolute path of the directory that holds what must survive a crash of a process.

        Raises:
            InputError: The node runs several processes, and the role is not named.
        """
        return self._only(node, role).data_dir

    def ports(self, role: str | None = None) -> Sequence[int]:
        """Returns the TCP ports that nodes and clients use, for probes and packet faults."""
        daemons = (daemon for node in self.cluster.nodes for daemon in self._of(node, role))
        return list(dict.fromkeys(port for daemon in daemons for port in daemon.ports))

    async def status(self, node: Node, timeout_s: float) -> NodeStatus | None:  # noqa: ARG002 - for those who can tell
        """Asks `node` for its status; None if it does not answer in time, or has none."""
        return None

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Asks every process of `node` that can lead for its status, one status for each process.

        Processes that do not answer in time are left out. The first status is that of `status`.
        """
        status = await self.status(node, timeout_s)
        return () if status is None else (status,)

    async def lead(self, node: Node, timeout_s: float) -> bool:  # noqa: ARG002
        """Tries to make `node` the leader, with bounded retries, and returns whether it now leads.

        Returns False at once where `moves_leadership` is False.
        """
        return False

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:  # noqa: ARG002
        """Dumps the state of `node`; None if it does not answer in time, or cannot tell just now."""
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
    """Returns which of the nodes run a process of each role."""
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        for daemon in system.processes(node):
            found[daemon.role] = (*found.get(daemon.role, ()), node.name)
    return found
