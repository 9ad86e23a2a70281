"""The interface of a service of a system under test: its process on each of its nodes, its readiness, leader and replicas.

Methods that are no coroutines block (they use SSH), have their own deadlines, and may run for several nodes at the same time in
different threads. See `harness.system`.
"""

from __future__ import annotations

import abc
import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.blame import without_exit
from harness.console.plain import one_line
from harness.process_clock import logged
from harness.returns import check_returns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.daemon import Daemon
    from harness.node import Node
    from harness.op import Value
    from harness.process_clock import ClockReading
    from harness.system import System

CLOCK_POLL_S = 0.2
MAX_DESCRIBED: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """The report of a node about itself.

    Attributes:
        node: The node's name.
        role: `leader`, `follower`, `candidate`, or another name of the system. `observer`: the node is outside the group, and
            knows `term` and `leader` of one moment.
        term: The node's term or epoch; None if the system has none.
        leader: The name of the node that it believes to be the leader; None if it knows none.
        applied_index: The last log entry that its state machine has applied; None if there is no log.
        committed_index: The last entry that it knows to be committed.
        last_index: The last entry in its log, or in its snapshot if that has more.
        details: Further figures, for the report.
        group: The group of nodes that has this leader, e.g. the name of a group of brokers; None if the service has one leader.
        process: The role of the reporting service. Labrys sets it; None if the system has one service.
    """

    node: str
    role: str
    term: int | None = None
    leader: str | None = None
    applied_index: int | None = None
    committed_index: int | None = None
    last_index: int | None = None
    details: Mapping[str, Value] | None = None
    group: str | None = None
    process: str | None = None


def described(status: NodeStatus) -> str:
    """Returns what a node reports, for a sentence, e.g. `reports follower in term 4, sees n2, has applied 17`."""
    process = "" if status.process is None else f"{status.process} "
    term = "" if status.term is None else f" in term {status.term}"
    sees = f", sees {status.leader or 'no leader'}"
    applied = "" if status.applied_index is None else f", has applied {status.applied_index}"
    return one_line(f"{process}reports {status.role}{term}{sees}{applied}")[:MAX_DESCRIBED]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The whole state of one replica, for a comparison at rest.

    Attributes:
        node: The node's name.
        applied_index: The log position that the state belongs to; None if the service has no log that its replicas share. Then
            the replicas must become equal at rest, within a time limit.
        state: Key to value.
    """

    node: str
    applied_index: int | None
    state: Mapping[str, Value]


class Service(abc.ABC):
    """The processes of one role of a system: one process on each node that runs the service.

    Labrys starts the services of a system in their order. Each must serve before the next one starts.

    Attributes:
        role: The role of its processes, e.g. `broker`. It is unique in the system.
        serves_clients: Whether clients use this service. Of several services, exactly one has True. Clients and final reads go
            to its nodes only.
        dumps_replicas: Whether `replica` can dump a replica's state.
        reads_need_leader: Whether a node answers reads only while it leads. If False, the final reads go through every node
            as it is.
        reads_own_state: Whether a node answers reads from its own state, however old. Then no final read goes through a node
            that stays out.
        one_leader_per_term: Why at most one node can report that it leads in a term, as a sentence: the promise of the
            system, and why `statuses` has role and term of one moment. Then two such nodes make a run invalid. Empty: the
            report only has a sentence about them, e.g. because `statuses` reads role and term one after the other.
        raft_invariants: Why the indexes that a process reports keep the rules of `harness.indexes`, as a sentence: its
            committed and its applied index never go back, and its log never ends before its committed index. Empty: Labrys
            does not compare them.
        stores_term: Whether the term of `statuses` is the node's own, which it has stored before it names the leader of this
            term. Then `raft_invariants` holds it to this term after a restart, too.
        moves_leadership: Whether `lead` can move the leadership to a node. If it cannot and reads need the leader, the final
            reads go through the leader only.
        every_node_returns: Why each node whose data no fault damaged serves again after healing, as a sentence: the promise of
            the system. Then a node that does not makes `recovered` invalid. Empty: the report only names it.
        quiet_s: The seconds without operations and faults before the final reads, for nodes that exchange what they know in
            their own time.
    """

    role: str
    serves_clients: bool = True
    dumps_replicas: bool = False
    reads_need_leader: bool = False
    reads_own_state: bool = False
    one_leader_per_term: str = ""
    raft_invariants: str = ""
    stores_term: bool = False
    moves_leadership: bool = False
    every_node_returns: str = ""
    quiet_s: float = 0.0

    def __init_subclass__(cls, **more: Any) -> None:
        """Checks what the methods of a plug-in return; see `harness.returns`."""
        super().__init_subclass__(**more)
        check_returns(cls, "service")

    def __init__(self, system: System, nodes: Sequence[Node] | None = None) -> None:
        self._system = system
        self._nodes = system.cluster.nodes if nodes is None else nodes

    @property
    def system(self) -> System:
        """Returns the system that it belongs to."""
        return self._system

    @property
    def nodes(self) -> Sequence[Node]:
        """Returns the nodes that run it, in order; the default is all nodes, or those that the constructor got."""
        return self._nodes

    def quorum(self) -> int:
        """Returns at how many nodes clients must be served after healing, as the system promises. The default is a majority."""
        return len(self.nodes) // 2 + 1

    @abc.abstractmethod
    def daemon(self, node: Node) -> Daemon:
        """Returns the process on one of its nodes; must not contact the node. Its role is that of the service."""

    def initialise(self, node: Node) -> None:  # noqa: B027 - few services need it
        """Prepares a node once in a run: after the volumes of disk faults are mounted, and before the first start.

        E.g. it formats a data directory, or writes a configuration file that the process rewrites later. Unlike the files of
        `Daemon.config_files`, such a file stays as it is when the process starts again.

        Raises:
            InfrastructureError: It failed.
        """

    def renew(self, node: Node) -> None:  # noqa: B027 - few services need it
        """Does what an operator does before a process starts on a new, empty disk, e.g. removes the old member.

        The fault `wipe` calls it after it has removed the files, while the process does not run.

        Raises:
            InfrastructureError: It failed.
        """

    @abc.abstractmethod
    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until these nodes of the service serve requests together, with a leader if the service has one.

        An interruption of the run cancels the coroutine. It must not block the loop: a call that blocks belongs into
        `asyncio.to_thread`.

        Raises:
            InfrastructureError: They do not at the deadline; the message names what is missing. Labrys adds the state of the
                processes, the status and the last log lines of each node; see `harness.readiness`. If it is a `NotServing`,
                it also names the nodes: after healing, Labrys then waits for the others without them.
        """

    async def complete(self, timeout_s: float) -> None:  # noqa: B027 - few services need it
        """Acts on the whole service once in a run, after it serves for the first time, e.g. creates a topic.

        The next service starts afterwards. The default does nothing.

        Raises:
            InfrastructureError: It failed, or did not end at the deadline.
        """

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:  # noqa: ARG002 - for those that have one
        """Asks the process on `node` for what it believes; returns one status for each group in which it can lead.

        It returns none if the process does not answer in time. It never asks another node, and never raises:
        docs/guide/new-system.md has the rules. The default returns none, for a service without a status.
        """
        return ()

    def reports(self) -> bool:
        """Returns whether it has a status, that is whether its class defines `statuses`."""
        return type(self).statuses is not Service.statuses

    async def clock(self, node: Node, timeout_s: float) -> ClockReading | None:
        """Asks the process on `node` for its wall clock; None if it does not say it in time.

        A clock fault on a node that shares this machine's clock is proven only by this. The process must say it after the call.
        `harness.process_clock.asked` helps if the process answers a request with its time. The default waits for the next line
        of the log that `Daemon.log_clock` describes, and asks for the status meanwhile, because many systems log that.
        """
        clock = self.daemon(node).log_clock
        if clock is None:
            return None
        line = asyncio.ensure_future(logged(self.system.cluster.remote(node), clock, timeout_s))
        try:
            while not line.done():
                await self.statuses(node, timeout_s)
                await asyncio.wait((line,), timeout=CLOCK_POLL_S)
        finally:
            line.cancel()  # has no effect on one that is done
        return line.result()

    async def lead(self, node: Node, timeout_s: float) -> bool:  # noqa: ARG002
        """Tries to make `node` the leader, with bounded retries, and returns whether it now leads.

        Returns False at once if `moves_leadership` is False.
        """
        return False

    async def lead_promptly(self, node: Node, timeout_s: float) -> bool:
        """Like `lead`, in the fastest way that the system has. The final reads call it, when no workload and no fault is on.

        The default calls `lead`.
        """
        return await self.lead(node, timeout_s)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:  # noqa: ARG002
        """Dumps the state of `node`; None if it does not answer in time, or has no dump now."""
        return None


async def first_status(service: Service, node: Node, timeout_s: float) -> NodeStatus | None:
    """Asks a node of a service, and returns its first status; None if it does not answer in time, or cannot lead."""
    return next(iter(await without_exit(service.statuses(node, timeout_s))), None)
