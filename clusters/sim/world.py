"""A simulated world in virtual time: machines, the network between them, and one queue of events.

All events happen on one thread, in the order of their times. Events of the same time happen in the order of their scheduling.
The world also drives the virtual time of the harness' event loop (`harness.clock.Events`). While no task of the loop can run,
the world handles events, until one wakes a task or the loop's next timer is due.
"""

from __future__ import annotations

import asyncio
import heapq
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

from clusters.sim.awaited import AwaitedMessages
from clusters.sim.cores import Core
from clusters.sim.host import Reply, Request
from clusters.sim.links import Links
from clusters.sim.machine import Machine
from clusters.sim.network import Network
from clusters.sim.rarity import Rarity
from clusters.sim.steps import Steps
from harness.clock import run_virtual
from harness.console.plain import listed
from harness.errors import NodeError
from harness.units import NS_PER_S
from harness.world import Arrival, Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from clusters.sim.steps import StepsOfDisks
    from harness.damage import Changed, Damaging
    from harness.world import (
        DiskStep,
        DiskSteps,
        Disturbance,
        Failing,
        Losing,
        Lost,
        Pair,
        PassedMessage,
        RareMessage,
        Stall,
    )

T = TypeVar("T")

Event: TypeAlias = "tuple[int, int, Callable[..., None], tuple[Any, ...]]"
"""An event: its time, its number, which orders the events of one time, and the function to call with its arguments."""

# A loop without timers stops waiting after this time. Processes set timers for ever, so the queue never gets empty.
MAX_WAIT_NS = 600 * NS_PER_S
# More events than this do not wait at one time in a system that works. Processes whose messages multiply die at this limit.
MAX_EVENTS = 200_000


class Companion(Protocol):
    """Something with events of its own in the time of a world, e.g. processes in a JVM.

    Attributes:
        next_ns: The time of its next event; a time after all others if it has none.
    """

    @property
    def next_ns(self) -> int: ...  # noqa: D102 - above

    def advance(self, until_ns: int, limit_ns: int) -> None:
        """Carries out its events up to a time, or up to the first ones that change the world.

        Args:
            until_ns: The time of the world's next event; at most `limit_ns`.
            limit_ns: The time until which the world carries out its events, if none wakes the loop. A companion can take
                events until then out of the queue, if they change only the companion.
        """
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class SimWorld:
    """The world of one run; see `harness.world.World`. `clusters.pipes.live` is the same world in real time.

    Attributes:
        seed: The run's root seed. All random numbers of the world come from it.
        names: The names of the nodes, in order.
        now_ns: The time since the world's beginning.
        machines: The nodes by name.
        links: The latency of packets without faults.
        network: The network between the nodes.
        rarity: The messages between nodes so far, by shape.
        awaited: The messages between nodes that somebody waits for; None: nobody has waited yet.
        steps: The steps of the disks.
        sent: The number of messages that nodes and clients have sent so far.
        companion: Processes that do not run in this world's queue; None if there are none.
        turn_events: After so many events the loop runs, also if no task can go on, so that it sees signals.
        loses_power: Whether a fault of the run lets a node lose its power.
        notes_steps: Whether the disks note their steps.
        queue: A heap of the events to come.
    """

    real_time: ClassVar[bool] = False
    stalls: ClassVar[bool] = False
    wall_ns: ClassVar[int | None] = None
    now_ns: int = 0

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self.seed = seed
        self.names = tuple(names)
        self.links = Links(seed, self.names)
        self.network = Network(seed, self.links, self.later)
        self.rarity = Rarity(seed, self.fulfil)
        self.awaited: AwaitedMessages | None = None
        self.steps: StepsOfDisks = Steps(self)
        self.sent = 0
        self.machines = {name: Machine(name, self) for name in self.names}
        self.companion: Companion | None = None
        self.turn_events = sys.maxsize
        self.loses_power = False
        self.notes_steps = False
        self.queue: list[Event] = []
        self._scheduled = 0  # the number of events so far, which orders the events of one time
        self._woken = False
        self._runs = False
        self._core: Core | None = None
        self._failed: dict[int, list[Failed]] = {}  # the calls that failed, by the fault
        self._mended: dict[int, Mapping[Pair, int]] = {}
        # Those who wait for a line in a log: the nodes and the pattern.
        self._readers: dict[asyncio.Future[tuple[str, str]], tuple[AbstractSet[str], re.Pattern[str]]] = {}

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs `main` to its end in this world's time."""
        self._runs = True
        try:
            return run_virtual(main, self)
        finally:
            self._runs = False
            if self._core is not None:
                self._core.free()
                self._core = None

    def share_core(self) -> None:
        """Lets the programs that the run starts share a core with this thread, until its end; see `clusters.sim.cores`."""
        if self._runs and self._core is None:
            self._core = Core()

    def pass_until(self, deadline_s: float | None) -> float | None:
        """Handles events, in order, until one wakes the loop; see `harness.clock.Events`.

        If too many events wait, all processes die, as real ones would without memory.
        """
        queue = self.queue
        limit_ns = self.now_ns + MAX_WAIT_NS if deadline_s is None else int(deadline_s * NS_PER_S)
        self._woken = False
        for _ in range(self.turn_events):
            until_ns = queue[0][0] if queue and queue[0][0] < limit_ns else limit_ns
            if self.companion is not None and self.companion.next_ns <= until_ns:
                self.companion.advance(until_ns, limit_ns)
                if self._woken:
                    return self.now_ns / NS_PER_S
                continue
            if not queue or queue[0][0] > limit_ns:
                break
            at_ns, _, action, arguments = heapq.heappop(queue)
            self.now_ns = at_ns
            action(*arguments)
            if len(queue) > MAX_EVENTS:
                self.end_processes()
            if self._woken:
                return at_ns / NS_PER_S
        else:
            return self.now_ns / NS_PER_S
        if deadline_s is not None:
            self.now_ns = max(self.now_ns, limit_ns)
        return deadline_s

    def execution(self) -> None:
        """Returns None: the history says all."""

    def inside(self, action: Callable[[], T]) -> T:
        """Calls a function where the events of this world happen: here, because this world has one thread."""
        return action()

    def end_processes(self) -> None:
        """Ends all processes, because too many events wait."""
        why = f"more than {MAX_EVENTS:,} messages and timers wait; does each message cause several others?"
        for machine in self.machines.values():
            if machine.runs:
                machine.die(why)

    def wake(self) -> None:
        """Lets the loop run, because one of its tasks can go on."""
        self._woken = True

    def use_links(self, links: Links) -> None:
        """Takes other links than those that the seed draws, before the run."""
        self.links = self.network.links = links

    def close(self) -> None:
        """Ends what runs outside of this process."""
        if self.companion is not None:
            self.companion.close()
            self.companion = None

    def later(self, delay_ns: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Calls a function with arguments after a delay in nanoseconds."""
        self._scheduled += 1
        heapq.heappush(self.queue, (self.now_ns + delay_ns, self._scheduled, action, arguments))

    def fulfil(self, future: asyncio.Future[Any], result: Any) -> None:
        """Gives a future its result and wakes the loop, unless the future is done."""
        if not future.done():
            future.set_result(result)
            self._woken = True

    def fail(self, future: asyncio.Future[Any], error: Exception) -> None:
        """Gives a future an exception and wakes the loop, unless the future is done."""
        if not future.done():
            future.set_exception(error)
            self._woken = True

    def send(self, machine: Machine, to: str, message: Any) -> None:
        """Sends a message from the process of a machine to a node, or a reply to a client."""
        self.sent += 1
        target = self.machines.get(to)
        if target is not None:
            arguments = (machine.name, to, target.arrive, (machine.name, message))
            held_ns = self.rarity.held_ns(self.now_ns, machine.name, to, message) if self.rarity.counts else 0
            if self.awaited is not None:
                held_ns = max(held_ns, self.awaited.held_ns(self.now_ns, machine.name, to, message))
            if held_ns:
                self.later(held_ns, self._carry, arguments)
            else:
                self._carry(*arguments)
        elif isinstance(message, Reply):
            machine.answer(to, message)
        else:
            raise ValueError(f"expected a node or a Reply to a client; {machine.name} sent {message!r} to {to!r}")

    def _carry(self, source: str, target: str, arrive: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.network.send(source, target, arrive, arguments)

    async def ask(self, client: str, node: str, request: Request, timeout_s: float | None = None) -> Any:
        """Sends a request of a client and waits for the answer; see `clusters.sim.system.Connection.ask`.

        An event of the world ends the wait at the time-out.
        """
        self.sent += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if timeout_s is not None:
            self.later(int(timeout_s * NS_PER_S), self.fail, (future, TimeoutError()))
        self.later(self.links.near_ns(), self.machines[node].accept, (client, request, future))
        return await future

    def cut(self, key: int, grudge: Mapping[str, frozenset[str]]) -> None:
        """Applies a grudge: each node drops the packets of the nodes that it has a grudge against."""
        self.network.cut(key, grudge)

    def disturb(
        self, key: int, node: str, disturbance: Disturbance, *, arriving: bool, others: AbstractSet[str] | None = None
    ) -> None:
        """Disturbs the packets between a node and the others."""
        self.network.disturb(key, node, disturbance, arriving=arriving, others=others)

    def mend(self, key: int) -> None:
        """Removes the cut and the disturbances of a key."""
        for machine in self.machines.values():
            machine.disk.mend(key)
        cut = self.network.mend(key)
        if cut is not None:
            self._mended[key] = cut.dropped

    def dropped(self, key: int) -> Mapping[Pair, int]:
        """Returns the number of packets that a cut has dropped so far, by pair."""
        cut = self.network.cuts.get(key)
        return dict(self._mended.get(key, {}) if cut is None else cut.dropped)

    async def probe(self, pairs: Iterable[Pair], *, count: int, wait_s: float) -> Mapping[Pair, Sequence[Arrival]]:
        """Sends packets through the network. Returns those that arrived in time, in the order of arrival."""
        arrived: dict[Pair, list[Arrival]] = {pair: [] for pair in pairs}

        def note(pair: Pair, number: int, sent_ns: int, damaged: bool) -> None:  # noqa: FBT001 - as `Network.send` calls it
            arrived[pair].append(Arrival(number=number, delay_ns=self.now_ns - sent_ns, damaged=damaged))

        for number in range(count):
            for source, target in arrived:
                self.network.send(source, target, note, ((source, target), number, self.now_ns), probe=True)
        await asyncio.sleep(wait_s)
        return {pair: tuple(arrivals) for pair, arrivals in arrived.items()}

    def count_messages(self) -> None:
        """Counts the messages between nodes from now on, so that faults can wait for rare ones."""
        self.rarity.counts = True

    async def rare_message(self, nodes: AbstractSet[str], wait_s: float) -> RareMessage | None:
        """Waits for a rare message from or to one of these nodes; see `Rarity`."""
        future: asyncio.Future[RareMessage] = asyncio.get_running_loop().create_future()
        self.later(int(wait_s * NS_PER_S), self.fail, (future, TimeoutError()))
        with self.rarity.waited_for(nodes, future):
            try:
                return await future
            except TimeoutError:
                return None

    async def message(self, links: AbstractSet[Pair], *, nth: int, has: bytes) -> PassedMessage:
        """Waits for a message; see `harness.world.World`."""
        self.awaited = self.awaited or AwaitedMessages(self.fulfil)
        future: asyncio.Future[PassedMessage] = asyncio.get_running_loop().create_future()
        with self.awaited.waited_for(links, nth, has, future):
            return await future

    async def log_line(self, nodes: AbstractSet[str], pattern: str) -> tuple[str, str]:
        """Waits for a line in the log of one of these nodes; see `harness.world.World`."""
        future: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self._readers[future] = (nodes, re.compile(pattern))
        try:
            return await future
        finally:
            del self._readers[future]

    def logged(self, node: str, line: str) -> None:
        """Tells those who wait for it of a new line in a node's log."""
        for future, (nodes, pattern) in self._readers.items():
            if node in nodes and pattern.search(line):
                self.fulfil(future, (node, line))

    def handled(self, node: str, role: str | None = None) -> int:  # noqa: ARG002 - a node has one process
        """Returns the number of messages and timers that the processes of a node have handled."""
        return self.machines[node].handled

    def listens(self, node: str, role: str | None = None) -> bool:  # noqa: ARG002
        """Returns whether a process of the node accepts requests."""
        return self.machines[node].runs

    def ahead_ns(self, node: str) -> int:
        """Returns how far a node's wall clock is ahead of the true time."""
        return self.machines[node].ahead_ns()

    def set_clock(self, node: str, *, ahead_ns: int, period_ns: int | None = None) -> None:
        """Sets a node's wall clock ahead of the true time; see `Machine.set_clock`."""
        self.machines[node].set_clock(ahead_ns, period_ns)

    def set_speed(self, node: str, speed: float) -> None:
        """Lets all clocks of a node, and its timers, run at a multiple of the true speed from now on."""
        self.machines[node].clock.set_speed(self.now_ns, speed)

    def monotonic_ns(self, node: str) -> int:
        """Returns the monotonic clock of a node, as its process reads it."""
        return self.machines[node].clock.passed_ns(self.now_ns)

    def fill_disk(self, node: str, *, full: bool) -> None:
        """Fills a node's disk, or empties it to normal again."""
        self.machines[node].disk.full = full

    def disk_takes(self, node: str) -> bool:
        """Returns whether a node's disk has room for a small file."""
        return self.machines[node].disk.has_room()

    def prepare_loss(self) -> None:
        """Lets the disks remember what is synced. Those of this process always do."""
        self.loses_power = True

    def power_off(self, node: str, role: str | None = None) -> None:
        """Does nothing: the other ends hear of a power loss as of a kill."""

    def lose_power(self, node: str, losing: Losing | None = None) -> Lost:
        """Removes from a node's disk what was written and not synced, or a part of it."""
        return self.machines[node].disk.lose_power(losing)

    def note_steps(self) -> None:
        """Lets the disks note their steps from now on, so they also remember what is synced."""
        self.prepare_loss()
        self.notes_steps = True
        steps = self.steps = Steps(self)
        for machine in self.machines.values():
            machine.disk.on_step = partial(steps.made, machine)

    def disk_steps(self) -> DiskSteps:
        """Returns the steps of all disks so far."""
        return self.steps.so_far()

    async def disk_step(
        self,
        nodes: AbstractSet[str],
        *,
        call: str,
        pattern: str,
        nth: int,
        starts: int,
        stall: Stall | None = None,
    ) -> DiskStep:
        """Waits for a step of the disk of one of these nodes; see `harness.world.World`.

        Raises:
            ValueError: A thread is to stall, and this world has no such threads.
        """
        if stall is not None:
            raise ValueError(f"a thread is to stall in a world whose threads cannot stall at a call: {stall}")
        future: asyncio.Future[DiskStep] = asyncio.get_running_loop().create_future()
        return await self.steps.wait(future, self.now_ns, nodes, call=call, pattern=pattern, nth=nth, starts=starts)

    def fail_calls(self, key: int, node: str, role: str | None, failing: Failing) -> int:  # noqa: ARG002 - a node has one process
        """Lets calls on the files of a node fail; see `harness.world.CallWorld`.

        Raises:
            NodeError: The disk has no such call.
        """
        disk = self.machines[node].disk
        if failing.call not in disk.calls:
            raise NodeError(node, f"its disk has the calls {listed(disk.calls, 'and')}, and not {failing.call}")
        disk.on_error = partial(self._failed_call, node)
        disk.fail(key, failing)
        return 1

    def _failed_call(self, node: str, key: int, call: str, number: int, file: str) -> None:
        failed = Failed(node=node, time_ns=self.now_ns, call=call, number=number, program=node, file=file)
        self._failed.setdefault(key, []).append(failed)

    def failed_calls(self, key: int) -> Sequence[Failed]:
        """Returns the calls that have failed by a rule so far."""
        return tuple(self._failed.get(key, ()))

    def wipe_files(self, node: str) -> Lost:
        """Removes all files from a node's disk."""
        return self.machines[node].disk.lose_all()

    def keep_files(self, node: str) -> int:
        """Remembers the files of a node as they are durable now."""
        return self.machines[node].disk.keep()

    def damage_file(self, node: str, damaging: Damaging) -> Changed:
        """Damages one file of a node."""
        return self.machines[node].disk.damage(damaging)

    def heal(self) -> None:
        """Removes the effects of all faults."""
        for key in {**self.network.cuts, **self.network.disturbances}:
            self.mend(key)
        for machine in self.machines.values():
            machine.clock.set_speed(self.now_ns, 1)
            machine.set_clock(0, None)
            machine.disk.full = False
            machine.disk.mend(None)
            machine.resume()
