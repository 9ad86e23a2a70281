"""The base class of systems that run in the simulator.

A subclass makes a node's process (`factory`) and the clients (`client`), and reads the status of a node. This class starts,
kills, pauses and wipes processes. None of this takes virtual time.
"""

from __future__ import annotations

import abc
import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from clusters.sim.cluster import LOG_FILE
from clusters.sim.disk import DATA_DIRECTORY
from clusters.sim.errors import Broken, Refused
from clusters.sim.host import Request
from clusters.sim.machine import FATAL
from harness.capabilities import SIMULATED_CALLS, SIMULATED_KERNEL, SIMULATED_SPEED
from harness.daemon import Daemon
from harness.errors import CommandFailed, NotServing
from harness.leaders import leader_of
from harness.node_states import DEAD, PAUSED, RUNNING, NodeState
from harness.service import first_status
from harness.system import OneServiceSystem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.sim.cluster import SimCluster
    from clusters.sim.host import Factory
    from clusters.sim.machine import Machine
    from clusters.sim.world import SimWorld
    from harness.node import Node
    from harness.op import Invocation, Outcome

AnswerT = TypeVar("AnswerT")

# What the systems with an election as in Raft promise.
ONE_LEADER = (
    "Raft has at most one leader in a term (section 5.2 of its paper), and a simulated node reads its role and its term in one "
    "step."
)
EVERY_NODE_RETURNS = "In Raft, a follower gets from the leader what its log lacks (section 5.3 of its paper)."

ROLE = "node"
PORT = 1
STATUS_TIMEOUT_S = 0.5
POLL_S = 0.1


class Connection:
    """A client's connection to the simulated nodes.

    Attributes:
        name: The client's name, which the processes see as the sender.
    """

    def __init__(self, world: SimWorld, name: str) -> None:
        self.name = name
        self._world = world
        self._requests = 0

    async def ask(self, node: str, body: Any, timeout_s: float | None = None) -> Any:
        """Sends a request to a node, and waits for the answer.

        Args:
            node: The node's name.
            body: The content of the request; see `Request`.
            timeout_s: The longest wait in seconds; None: no limit.

        Returns:
            The body of the reply.

        Raises:
            Refused: No process listens on the node. The request had no effect, and will have none.
            Broken: The process died before it answered. The request may have had an effect.
            TimeoutError: No answer came in time.
        """
        self._requests += 1
        return await self._world.ask(self.name, node, Request(self._requests, body), timeout_s)


NO_KERNEL: Final = (
    "its processes have no kernel of their own, so their messages have no bytes, and their syncs take no time"
)


class SimNodes(OneServiceSystem):
    """The processes of a system in the simulator. A subclass says how clients and observers talk to them."""

    simulated: ClassVar[bool] = True
    lacks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            SIMULATED_CALLS: "its processes are objects of Labrys that do not say what they do after an error of the disk",
            SIMULATED_KERNEL: NO_KERNEL,
            SIMULATED_SPEED: "its processes may be threads of one JVM, which have one monotonic clock",
        }
    )
    only_on: ClassVar[str] = "sim"
    role = ROLE

    @abc.abstractmethod
    def factory(self, node: Node) -> Factory:
        """Returns the function that makes the process of `node` from its host."""

    def alike(self) -> Sequence[str]:
        """Returns the names of nodes that are alike: no node prefers one of them. `labrys explore` checks it."""
        return ()

    def why_not_explored(self, *, one_clock: bool) -> str | None:  # noqa: ARG002
        """Returns why `labrys explore` cannot visit all orders of this system with its options; None if it can.

        With `one_clock`, the clocks of all nodes are one. Otherwise they have any speed.
        A system that can be explored overrides this, `request_of` and `outcome_of`.
        """
        return f"the system {self.name} does not say how a client asks it; see docs/guide/explore.md"

    def request_of(self, client: str, invocation: Invocation) -> Any:
        """Returns the body of the request by which a client carries out its only operation, at whatever node.

        Raises:
            InputError: The system does not have this operation.
        """
        raise NotImplementedError

    def outcome_of(self, invocation: Invocation, answer: Any) -> Outcome:
        """Returns the outcome of an operation from the body of a node's reply."""
        raise NotImplementedError

    @property
    def world(self) -> SimWorld:
        """Returns the world of the nodes."""
        return cast("SimCluster", self.cluster).world

    def daemon(self, node: Node) -> Daemon:  # noqa: ARG002 - the same on all nodes
        """Returns the one process of a simulated node."""
        return Daemon(
            role=ROLE,
            argv=(self.name,),
            pattern=f"^{self.name}$",
            ports=(PORT,),
            data_dir=DATA_DIRECTORY,
            log_files=(LOG_FILE,),
        )

    def install(self, node: Node) -> None:
        """Does nothing: the simulated system is code of this process."""

    def start(self, node: Node, role: str | None = None) -> None:  # noqa: ARG002 - a node has one process
        """Starts the process; does nothing if it runs."""
        self._machine(node).start(self.factory(node))

    def kill(self, node: Node, role: str | None = None) -> None:  # noqa: ARG002
        """Ends the process; does nothing if there is none."""
        self._machine(node).kill()

    def pause(self, node: Node, role: str | None = None) -> None:  # noqa: ARG002
        """Pauses the process.

        Raises:
            CommandFailed: No process runs.
        """
        if self._machine(node).state() is None:
            raise CommandFailed(node.name, "pause", 1, "no process runs")
        self._machine(node).pause()

    def resume(self, node: Node, role: str | None = None) -> None:  # noqa: ARG002
        """Resumes a paused process; does nothing otherwise."""
        self._machine(node).resume()

    def process_states(self, node: Node, role: str | None = None) -> Mapping[str, tuple[int, str] | None]:
        """Returns the state of the process by role: its number and a letter as in /proc/PID/stat."""
        return {ROLE: self._machine(node).state()} if role in {None, ROLE} else {}

    def wipe(self, node: Node, role: str | None = None) -> None:  # noqa: ARG002
        """Removes the node's data and log."""
        self._machine(node).disk.wipe()
        self._machine(node).lines.clear()

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the pattern of the log line of a process that an exception ended."""
        return (rf"^[0-9.]+ {FATAL} ",)

    def node_state(self, node: Node, key: str | None) -> NodeState:  # noqa: ARG002 - for systems with a log
        """Returns the state of a node, read from its objects without a message. `key` chooses the key to show.

        A system with a log overrides this and adds the state of its processes. It must change nothing.
        """
        machine = self._machine(node)
        process = DEAD if not machine.runs else PAUSED if machine.paused else RUNNING
        return NodeState(node=node.name, process=process)

    def _machine(self, node: Node) -> Machine:
        return self.world.machines[node.name]


class SimSystem(SimNodes):
    """A system under test in the simulator, whose processes and clients exchange messages."""

    def __init__(self, cluster: SimCluster, options: Any, workload: str) -> None:
        super().__init__(cast("Any", cluster), options, workload)
        self._observer: Connection | None = None
        self._connections = 0

    def connect(self, process: int) -> Connection:
        """Returns a new connection for the client of a process."""
        self._connections += 1
        return Connection(self.world, f"client-{process}-{self._connections}")

    async def ask(self, node: Node, body: Any, timeout_s: float) -> Any | None:
        """Sends a request to a node as an observer. Returns the answer, or None if none came in time."""
        if self._observer is None:
            self._observer = Connection(self.world, "observer")
        try:
            return await self._observer.ask(node.name, body, timeout_s)
        except (Refused, Broken, TimeoutError):
            return None

    async def ask_for(self, node: Node, body: Any, answer: type[AnswerT], timeout_s: float) -> AnswerT | None:
        """Sends a request to a node as an observer. Returns the answer; None if none of this type came in time."""
        reply = await self.ask(node, body, timeout_s)
        return reply if isinstance(reply, answer) else None

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the nodes serve together; see `lacking`.

        Raises:
            NotServing: They do not at the deadline; the message names what is missing.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        while missing := await self.lacking(nodes):
            if loop.time() >= deadline_s:
                reasons = "; ".join(f"{name} {reason}" for name, reason in missing.items())
                raise NotServing(f"{self.name} is not ready after {timeout_s:g} s: {reasons}", missing)
            await asyncio.sleep(POLL_S)

    async def lacking(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Returns what each node lacks to serve with the others: each must answer, and all must name one leader."""
        statuses = await asyncio.gather(*(first_status(self, node, STATUS_TIMEOUT_S) for node in nodes))
        silent = [node.name for node, status in zip(nodes, statuses, strict=True) if status is None]
        if silent:
            return dict.fromkeys(silent, "does not answer")
        answers = [status for status in statuses if status is not None]
        leader = leader_of(answers)
        if leader is None:
            return {status.node: "sees no node that leads" for status in answers}
        others = [status.node for status in answers if status.leader != leader.node]
        return dict.fromkeys(others, f"does not name {leader.node} as the leader")
