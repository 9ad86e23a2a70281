"""What Labrys has to know about a system under test: how it is installed, started, broken, and looked at.

Nothing else about a system may be known outside its own folder. The methods block (they work over SSH), bring their own
deadlines, and may be called for several nodes at once from different threads. `asyncio` code calls them through
`asyncio.to_thread`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.client import Client
    from harness.node import Node
    from harness.op import Value


# Lines NAME=value without spaces, which a fault has left for the process of the system, e.g. a library that it is to load. In a
# shell: `env $(cat /run/labrys/environment 2>/dev/null) COMMAND`. A system that does not take them can have no such fault.
ENVIRONMENT = "/run/labrys/environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """What one node says about itself.

    Attributes:
        node: The node's name.
        role: `leader`, `follower`, `candidate`, or a name of the system's own.
        term: The node's term or epoch; None where the system has none.
        leader: The name of the node it believes to lead; None if it knows none.
        applied_index: The last log entry its state machine has applied; None where there is no log.
        committed_index: The last entry it knows to be committed.
        details: Whatever else it tells, for the report.
    """

    node: str
    role: str
    term: int | None = None
    leader: str | None = None
    applied_index: int | None = None
    committed_index: int | None = None
    details: Mapping[str, Value] | None = None


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


class System(Protocol):
    """A system under test on one cluster.

    A system is found by an entry point of the group `labrys.systems`, whose name is `name` and whose object is the class. The
    class is called with the cluster, its `Options` and the name of the workload.

    Attributes:
        name: As on the command line, e.g. `dledger`.
        dumps_replicas: Whether `replica` can dump a replica's state.
        refusals: Codes of `fail` errors by which a node names the node to ask instead. Availability counts them apart: they
            are no answers, and they are no outage.
        reads_need_leader: Whether a node answers reads only while it leads. Where it is False, the final reads go through
            every node as it is.
        moves_leadership: Whether `lead` can move the leadership to a node. Where reads need a leader and it cannot be moved,
            the final reads go through the node that leads.
    """

    name: str
    dumps_replicas: bool
    refusals: Sequence[str]
    reads_need_leader: bool
    moves_leadership: bool

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of what is tested, e.g. `{"dledger": "0.4.0"}`, for the record."""
        ...

    def install(self, node: Node) -> None:
        """Puts everything the system needs on `node`; quick when it is already there."""
        ...

    def start(self, node: Node) -> None:
        """Starts the process; returns when it was launched. Does nothing if it already runs.

        Where the node has a file `ENVIRONMENT`, the process gets the variables that its lines set; see there.
        """
        ...

    def wait_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the nodes serve requests together (with a leader, where there is one).

        Raises:
            InfrastructureError: They don't at the deadline; the message shows the last log lines of those to blame.
        """
        ...

    def stop(self, node: Node) -> None:
        """Ends the process, by whatever way is quick and certain. Does nothing if it does not run."""
        ...

    def kill(self, node: Node) -> None:
        """Ends the process with SIGKILL. Does nothing if it does not run."""
        ...

    def pause(self, node: Node) -> None:
        """Stops the process with SIGSTOP."""
        ...

    def resume(self, node: Node) -> None:
        """Continues a stopped process with SIGCONT. Does nothing if it does not run."""
        ...

    def process_state(self, node: Node) -> tuple[int, str] | None:
        """Reads the process from the node's kernel, not from a pid file's word alone.

        Returns:
            Its pid and its state letter as in /proc/PID/stat (`T` is stopped), or None if there is no such process.
        """
        ...

    def wipe(self, node: Node) -> None:
        """Removes the system's data and logs; the process must not run."""
        ...

    def log_files(self, node: Node) -> Sequence[str]:
        """Returns the absolute paths of the system's logs on `node`."""
        ...

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns regular expressions of log lines that a healthy node never writes, whatever faults it met."""
        ...

    def data_dir(self, node: Node) -> str:
        """Returns the absolute path of the directory that holds what must survive a crash."""
        ...

    def ports(self) -> Sequence[int]:
        """Returns the TCP ports that nodes and clients use, for probes and packet faults."""
        ...

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of `process`, placed at `node`.

        Args:
            process: The process it works for.
            node: Where it first connects, and what its operations are recorded under.
            pinned: Whether it must never leave its node, whatever the system's routing says (final reads).
        """
        ...

    async def status(self, node: Node, timeout_s: float) -> NodeStatus | None:
        """Asks `node` for its own view; None if it does not answer in time."""
        ...

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """Tries to make `node` the leader, with bounded retries, and returns whether it now leads.

        Returns False at once where `moves_leadership` is False.
        """
        ...

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Dumps the state of `node`; None if it does not answer in time, or cannot tell just now."""
        ...
