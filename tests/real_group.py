"""Real nodes that a test leads step by step."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from harness.cluster import on_all
from harness.faults import PlannedFault
from harness.leaders import leaders_by_term
from harness.targets import Named
from nemesis import threadholds
from nemesis.conductor import Conductor
from tests.held_threads import HeldThreads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from typing import Self

    from clusters.kit.jvm import LedJvmSystem
    from clusters.local import LocalCluster
    from harness.node import Node
    from harness.service import NodeStatus

S = TypeVar("S", bound="LedJvmSystem")
T = TypeVar("T")

READY_S = 60.0
FOUND_S = 60.0
PAUSE_S = 0.1
CUT, SECOND_CUT, POWER, FULL, KILL, PREPARED = range(6)  # the numbers of faults


def planned(number: int, kind: str, *nodes: Node) -> PlannedFault:
    """Returns a fault of these nodes."""
    return PlannedFault(id=number, kind=kind, target=Named(tuple(node.name for node in nodes)), start_s=0.0, end_s=10.0)


async def found_in_time(find: Callable[[], Awaitable[T | None]], what: str) -> T:
    """Returns what a function finds, as soon as it finds something.

    Raises:
        TimeoutError: It finds nothing in time.
    """
    for _ in range(int(FOUND_S / PAUSE_S)):
        result = await find()
        if result is not None:
            return result
        await asyncio.sleep(PAUSE_S)
    raise TimeoutError(f"expected {what} in {FOUND_S:g} s")


class RealGroup(Generic[S]):
    """Real nodes with a client that follows the leader."""

    def __init__(self, cluster: LocalCluster, system: S, *, faults: Sequence[str] = ()) -> None:
        """Takes the nodes; none runs yet. `run` prepares them for faults of these kinds."""
        self.cluster, self.system = cluster, system
        self.conductor = Conductor(cluster=cluster, system=system)
        self._faults = faults

    def run(self, form: Callable[[Self], Awaitable[T]]) -> T:
        """Starts the nodes, and returns what a form finds."""

        async def live() -> T:
            await self.conductor.prepare([planned(PREPARED, kind, *self.cluster.nodes) for kind in self._faults])
            on_all(self.cluster.nodes, self.system.start)
            await self.system.until_ready(self.cluster.nodes, READY_S)
            self.client = self.system.client(0, self.cluster.nodes[0])
            try:
                return await form(self)
            finally:
                await self.client.close()
                on_all(self.cluster.nodes, self.system.stop)
                await self.conductor.release()

        with self.cluster, self.cluster.entered():
            on_all(self.cluster.nodes, self.system.install)
            return asyncio.run(live())

    def others(self, *without: Node) -> Sequence[Node]:
        """Returns all nodes but these."""
        return [node for node in self.cluster.nodes if node not in without]

    async def leader(self) -> Node:
        """Returns the node that serves, as soon as one does."""

        async def serving() -> NodeStatus | None:
            return await self.system.serving(await self.system.statuses_of(self.cluster.nodes))

        return self.system.node((await found_in_time(serving, "a leader that serves")).node)

    async def elected(self, *among: Node) -> NodeStatus:
        """Returns the status of the node that leads, as soon as one of these does."""

        async def leading() -> NodeStatus | None:
            statuses = (await self.system.statuses_of(among)).values()
            return next(iter(leaders_by_term(status for status in statuses if status is not None)), None)

        return await found_in_time(leading, "a leader")

    async def status(self, node: Node) -> NodeStatus:
        """Returns what a node reports, as soon as it does."""

        async def reported() -> NodeStatus | None:
            return (await self.system.statuses_of((node,)))[node.name]

        return await found_in_time(reported, f"a report of {node.name}")

    async def until(self, holds: Callable[[], bool]) -> bool:
        """Waits until something holds, and returns whether it does in time."""

        async def held() -> bool | None:
            return holds() or None

        try:
            return await found_in_time(held, "a condition")
        except TimeoutError:
            return False

    @asynccontextmanager
    async def faulted(self, kind: str, *nodes: Node, number: int) -> AsyncIterator[None]:
        """Injects a fault, with a proof. Two faults at the same time need two numbers."""
        fault = planned(number, kind, *nodes)
        await self.conductor.begin(fault)
        try:
            yield
            proof = await self.conductor.prove(fault)
            assert proof.effective, proof
        finally:
            await self.conductor.end(fault)

    def cut_off(self, *nodes: Node, number: int = CUT) -> AbstractAsyncContextManager[None]:
        """Cuts nodes off the others, with a proof."""
        return self.faulted("partition-random-halves", *nodes, number=number)

    async def lose_power(self, node: Node) -> None:
        """Turns the power of a node off and on, with a proof."""
        async with self.faulted("power-loss", node, number=POWER):
            pass

    async def votes_without_storing(self) -> bool:
        """Fills the disks of the followers. They elect one of them; it is cut off, and the other one starts again.

        Returns:
            Whether a term has two leaders. Nodes that refuse to vote on a full disk elect nobody.
        """
        first = await self.leader()
        followers = self.others(first)
        async with AsyncExitStack() as cut:
            async with AsyncExitStack() as killed, self.faulted("disk-full", *followers, number=FULL):
                self.system.kill(first)
                try:
                    second = await self.elected(*followers)
                except TimeoutError:
                    return False
                leader = self.system.node(second.node)
                (voter,) = self.others(first, leader)
                await cut.enter_async_context(self.cut_off(leader))
                await killed.enter_async_context(self.faulted("kill", voter, number=KILL))
            self.system.start(first)
            return (await self.elected(first, voter)).term == second.term

    @asynccontextmanager
    async def debugged(self, node: Node) -> AsyncIterator[HeldThreads]:
        """Connects to the debugger of a node's JVM; at the end, all its threads go on."""
        (daemon,) = self.system.daemons(node)
        port = threadholds.debugger_ports([daemon.role])[daemon.role]
        debugger = await asyncio.to_thread(threadholds.connect, self.cluster.remote(node), port)
        try:
            yield HeldThreads(debugger)
        finally:
            debugger.close()

    def shell(self, node: Node, command: str) -> str:
        """Runs a command on a node, and returns its output."""
        return self.cluster.remote(node).run(command).stdout

    def lines(self, node: Node, text: str) -> int:
        """Returns the number of lines in the logs of a node that have a text."""
        files = " ".join(self.system.log_files(node))
        return int(self.shell(node, f"cat {files} 2>/dev/null | grep --count --fixed-strings '{text}' || true"))
