"""The environment of faults: the nodes, their shells, the system under test, and the other faults that are on.

Work on nodes blocks, so it runs in threads. A thread cannot be cancelled. So this class tracks all running work, and healing
first waits for it, for a limited time. Otherwise an unfinished command could insert a rule after the healing.
"""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.blame import Blamable, blamed, without_exit
from harness.cluster import on_nodes
from harness.leaders import leader_of
from harness.service import described
from harness.services import nodes_by_role
from harness.slowness import slowed
from harness.switch import switch_of
from nemesis.errors import FaultError
from nemesis.targets import layout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.remote import Remote
    from harness.service import NodeStatus, Service
    from harness.switch import Switch
    from harness.system import System
    from nemesis.fault import Fault, Occupied

T = TypeVar("T")

THREADS = 32
POLL_S = 0.1
STATUS_TIMEOUT_S = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResults(Generic[T]):
    """The results of an action on several nodes.

    Attributes:
        done: The result of each node where the action succeeded.
        failed: The error of each node where the action failed.
    """

    done: dict[str, T]
    failed: dict[str, Exception]


class Field:
    """The environment of all faults of a run.

    Attributes:
        system: The system under test.
        seed: The root seed of the run.
        nodes: All nodes, in order.
        names: Their names, in order.
        layout: The nodes of each role.
        faults: The faults that are on, by id.
        over: The ids of ended faults, healed or not; they affect no node any more.
    """

    def __init__(self, *, cluster: Cluster, system: System, seed: int = 0) -> None:
        self._cluster = cluster
        self.seed = seed
        # An own pool, so that commands to a silent node cannot use up the threads of other work.
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="nemesis")
        self._under_way: set[asyncio.Future[Any]] = set()
        self._probing = asyncio.Lock()
        self.system = system
        self.nodes = tuple(cluster.nodes)
        self.names = tuple(node.name for node in self.nodes)
        self.layout = layout(self.names, nodes_by_role(system))
        self.faults: dict[int, Fault] = {}
        self.over: set[int] = set()
        self._said: dict[str | None, Sequence[NodeStatus]] = {}  # by the role that was asked for its leader last

    def node(self, name: str) -> Node:
        """Returns a node by name."""
        return self.nodes[self.names.index(name)]

    def roles_on(self, node: Node) -> tuple[str, ...]:
        """Returns the roles of a node's processes, in the order of their start."""
        return tuple(daemon.role for daemon in self.system.daemons(node))

    def shell(self, node: Node) -> Remote:
        """Returns the shell on a node."""
        return self._cluster.remote(node)

    async def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the capabilities of the nodes. Only the first call probes them, and calls at the same time wait for it."""
        async with self._probing:
            return await asyncio.to_thread(self._cluster.capabilities)

    async def switch(self) -> Switch:
        """Returns the switch between the nodes. Starts it if it is not on.

        Raises:
            InfrastructureError: The cluster can have none, or it does not start.
        """
        switch = switch_of(self._cluster)
        if switch is None:
            raise FaultError(f"the cluster {self._cluster.name!r} cannot have a switch between its nodes")
        await asyncio.to_thread(switch.start)
        return switch

    def switch_on(self) -> Switch | None:
        """Returns the switch if it is on."""
        switch = switch_of(self._cluster)
        return switch if switch is not None and switch.is_on else None

    def others(self, fault: Fault) -> list[Fault]:
        """Returns the other faults that are on."""
        return [other for other in self.faults.values() if other is not fault]

    def holders(self, occupied: Occupied) -> list[Fault]:
        """Returns the faults that keep some of these nodes to themselves."""
        on = (fault for fault in self.faults.values() if fault.id not in self.over)
        return [fault for fault in on if fault.occupied.shared(occupied)]

    async def each(self, names: Iterable[str], action: Callable[[Node], T]) -> NodeResults[T]:
        """Runs a blocking action on several nodes in parallel. It continues if the caller is cancelled; see `quiesce`."""
        nodes = [self.node(name) for name in names]
        work = asyncio.get_running_loop().run_in_executor(self._threads, on_nodes, nodes, action)
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)
        results = await asyncio.shield(work)
        done = {name: result for name, result in results.items() if not isinstance(result, Exception)}
        system = Blamable(type(self.system), f"system {self.system.name}")
        failed = {name: blamed(result, system) for name, result in results.items() if isinstance(result, Exception)}
        return NodeResults(done=done, failed=failed)

    async def quiesce(self, timeout_s: float) -> bool:
        """Waits until no work runs on nodes. Returns whether that is so within the time-out."""
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=timeout_s)
        return not self._under_way

    async def leader(self, timeout_s: float, role: str | None = None) -> str | None:
        """Asks all nodes until one reports that it leads. Returns its name; None if none does in time.

        Args:
            timeout_s: The time limit in seconds.
            role: The role of the service to ask; None: the service that clients use.
        """
        leading = await self.leader_and_term(timeout_s, role)
        return leading[0] if leading else None

    async def leader_and_term(self, timeout_s: float, role: str | None = None) -> tuple[str, int | None] | None:
        """Asks all nodes until one reports that it leads. Returns the leader with the highest term, and its term."""
        return await self.until(functools.partial(self._leader_now, role), timeout_s)

    def said(self, role: str | None) -> str:
        """Returns what each node of a service said when it was last asked for the leader, e.g. `n1 does not answer`."""
        statuses = {status.node: status for status in self._said.get(role, ())}
        return "; ".join(
            f"{node.name} {described(statuses[node.name]) if node.name in statuses else 'does not answer'}"
            for node in self._service(role).nodes
        )

    async def _leader_now(self, role: str | None) -> tuple[str, int | None] | None:
        self._said[role] = await self.statuses(role)
        latest = leader_of(self._said[role])
        return None if latest is None else (latest.node, latest.term)

    async def statuses(self, role: str | None = None) -> Sequence[NodeStatus]:
        """Returns the statuses of the nodes of a service that answer; None: of the service that clients use."""
        service = self._service(role)
        lists = await asyncio.gather(
            *(without_exit(service.statuses(node, slowed(STATUS_TIMEOUT_S))) for node in service.nodes)
        )
        return [status for statuses in lists for status in statuses]

    def _service(self, role: str | None) -> Service:
        return self.system.front() if role is None else self.system.service(role)

    async def until(self, check: Callable[[], Awaitable[T]], timeout_s: float, *, every_s: float = POLL_S) -> T:
        """Repeats a check until its result is true, or the time is over. Returns the last result."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        while True:
            answer = await check()
            if answer or loop.time() >= deadline_s:
                return answer
            await asyncio.sleep(every_s)
