"""A world of Linux programs in virtual time: the controller has the mechanics, and this module the policy.

All that the seed draws here goes to the controller as rules. The controller draws single delays and losses from the same seed.
See `harness.world.World` and docs/reference/linux-programs.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import platform
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from clusters.sim.links import MIN_DELAY_NS, SPREAD_NS, Links
from clusters.sim.linux.building import controller
from clusters.sim.linux.data import Volumes, total
from clusters.sim.linux.driving import Controller, Parts
from clusters.sim.linux.log_files import LogFiles
from clusters.sim.linux.loop import HOST, Connections, LinuxLoop
from clusters.sim.linux.seen import processor, seen
from clusters.sim.linux.steps import ProgramSteps, step_of
from clusters.sim.node_clock import TRUE_SPEED
from clusters.sim.steps import HELD_NS
from harness.clock import VIRTUAL_WALL_START_S, run_virtual
from harness.ends import shell_status
from harness.errors import InputError, NodeError
from harness.randomness import stream
from harness.units import NS_PER_MS, NS_PER_S
from harness.world import Arrival, DiskSteps, Execution, Lost, PassedMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from clusters.sim.linux.driving import Event
    from clusters.sim.linux.programs import Program
    from clusters.sim.threads import Threads
    from harness.daemon import Daemon
    from harness.damage import Changed, Damaging
    from harness.world import (
        DiskStep,
        Disturbance,
        Failed,
        Failing,
        Losing,
        Pair,
        RareMessage,
        SlowSyncs,
        Stall,
    )

T = TypeVar("T")

MAX_WAIT_NS: Final = 600 * NS_PER_S  # a loop without timers stops waiting after this time
LOOK_NS: Final = 10 * NS_PER_MS  # how often logs are read while somebody waits for a line
HOST_ADDRESS: Final = "192.0.2.250"
REALTIME_START_NS: Final = VIRTUAL_WALL_START_S * NS_PER_S  # as in the controller
LEAST_SYNC_NS: Final = 200_000  # the mean time of a sync on the fastest disk
SLOWEST_DISK: Final = 100.0  # the slowest disk takes as many times longer
PAUSED, RUNNING = "T", "S"  # state letters as in /proc/PID/stat


class Started:
    """A process of a node: the number of its program, its description, whether it is paused, and whether its power is off."""

    def __init__(self, program: int, daemon: Daemon) -> None:
        self.program = program
        self.daemon = daemon
        self.paused = False
        self.lost_power = False


class LinuxWorld:
    """The world of one run.

    Attributes:
        seed: The run's root seed.
        names: The names of the nodes, in order.
        addresses: The address of each node.
        processes: The processes that run, by node and role.
        connections: The connections of this process.
        started: The programs that this process has started on its own node, by their numbers.
        loses_power: Whether a fault of the run lets a node lose its power.
        daemons: The processes that have been started so far, by node and role; those that were killed are last.
        ended: By node, the ends of processes that Labrys did not end: the time, the role, the status and the last lines of
            the log.
        variables: The environment of all programs.
        shown: The folders of this machine that the programs see.
    """

    real_time: ClassVar[bool] = False
    stalls: ClassVar[bool] = True

    def __init__(self, names: Sequence[str], seed: int, root: Path, threads: Threads) -> None:
        """Describes a world. The controller starts with the first need for it.

        Args:
            names: The names of the nodes.
            seed: The run's root seed.
            root: An empty folder for the files of the nodes.
            threads: Where threads stop.
        """
        self.seed = seed
        self._threads = threads
        self.names = tuple(names)
        self.addresses = {name: f"192.0.2.{number}" for number, name in enumerate(names, 1)}
        self.processes: dict[tuple[str, str], Started] = {}
        self.shown, self.variables = seen()
        self._root = root
        self._started: Controller | None = None
        self._keys: set[int] = set()
        self._drifting: set[str] = set()  # the nodes whose clocks have had another speed
        self._actions: list[tuple[int, int, Callable[[], None]]] = []
        self._planned = 0
        # For each probe so far: the arrivals of its pair, and its number.
        self._probes: list[tuple[list[Arrival], int]] = []
        self._heard: list[asyncio.Future[PassedMessage]] = []
        self._strobes: dict[str, int] = {}  # for each clock that jumps to and fro, the number of its fault
        self.loses_power = False
        self._calls_log: Path | None = None
        self.daemons: dict[tuple[str, str], Daemon] = {}
        self.ended: dict[str, list[tuple[int, str, int, tuple[str, ...]]]] = {}
        self._volumes = Volumes(self.inside)
        self.started: dict[int, Program] = {}
        self._statuses: dict[int, int] = {}  # of programs that have ended and are no processes of a node
        self._logs = LogFiles(self._path_of)
        self._notes_steps = False
        self._steps: ProgramSteps | None = None

    @property
    def controller(self) -> Controller:
        """Returns the controller, which starts with the first call."""
        if self._started is None:
            parts = Parts(
                seed=self.seed,
                root=self._root,
                nodes={**self.addresses, HOST: HOST_ADDRESS},
                variables=self.variables,
                shown=self.shown,
                preempt=self._threads.preempt,
                stalls=self._threads.stalls,
                trace_all=self._threads.trace_all,
                all_stop=self._threads.all_stop,
                log=self._calls_log,
            )
            self._started = Controller(controller(lambda _: None), parts)
            self.connections = Connections(self._started)
            self._set_links(self._started)
            self._set_disks(self._started)
            if self._notes_steps:
                self._started.note_steps()
        return self._started

    def become(self, seed: int) -> None:
        """Goes on as the run of another seed: with its links and disks, and all that is drawn from now on."""
        self.seed = seed
        self.controller.reseed(seed)
        self._set_links(self.controller)
        self._set_disks(self.controller)

    def log_calls(self, path: Path) -> None:
        """Lets the controller write each call and each decision to a file.

        Raises:
            InputError: The controller has started without it.
        """
        if self._started is not None:
            raise InputError(f"the programs have started without a log of calls, so {path} cannot have them")
        self._calls_log = path

    def _set_links(self, started: Controller) -> None:
        links = Links(self.seed, self.names)
        nearest = {"least_ns": MIN_DELAY_NS, "most_ns": MIN_DELAY_NS + SPREAD_NS}
        for name in self.names:
            for other in self.names:
                if other != name:
                    mean_ns, late = links.uneven(name, other)
                    started.set_link(name, other, **nearest, mean_ns=mean_ns, late=late)
            started.set_link(name, HOST, **nearest)
            started.set_link(HOST, name, **nearest)

    def _set_disks(self, started: Controller) -> None:
        """Draws how long syncs take: on each node from 0.2 ms, as of a fast disk, to 20 ms, as of a slow one."""
        draws = stream(self.seed, "sim/linux/disks")
        for name in self.names:
            started.set_disk(name, sync_ns=int(LEAST_SYNC_NS * SLOWEST_DISK ** draws.random()))

    @property
    def now_ns(self) -> int:
        """Returns the virtual time."""
        return 0 if self._started is None else self._started.now_ns

    @property
    def wall_ns(self) -> int:
        """Returns the true wall-clock time, which programs write into their logs."""
        return REALTIME_START_NS + self.now_ns

    def execution(self) -> Execution:
        """Returns what the programs did so far."""
        figures = self.controller.figures()
        return Execution(
            digest=figures.digest,
            trace=figures.trace,
            controller=hashlib.sha256(controller(lambda _: None).read_bytes()).hexdigest(),
            kernel=platform.release(),
            processor=processor(),
            figures=dict(figures.figures),
        )

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs `main` to its end in this world's time."""
        return run_virtual(main, loop=LinuxLoop(self))

    def pass_until(self, deadline_s: float | None) -> float | None:
        """Lets the programs run until one of them wakes the loop; see `harness.clock.Events`."""
        limit_ns = self.now_ns + MAX_WAIT_NS if deadline_s is None else int(deadline_s * NS_PER_S)
        while True:
            if self._pass(limit_ns) or (self._logs.are_awaited and self._logs.look(self._log_files())):
                return self.now_ns / NS_PER_S
            if self.now_ns >= limit_ns:
                return deadline_s

    def end_of(self, program: int, timeout_s: float) -> int | None:
        """Lets the programs run until one of them has ended. The tasks of the loop stand still meanwhile.

        Returns:
            Its status, as waitpid returns it; None if it runs after the time limit.
        """
        limit_ns = self.now_ns + int(timeout_s * NS_PER_S)
        while program not in self._statuses and self.now_ns < limit_ns:
            self._pass(limit_ns)
        return self._statuses.pop(program, None)

    def _pass(self, limit_ns: int) -> bool:
        """Lets the programs run until something happens, at most until a time. Returns whether a task may go on."""
        until_ns = min(limit_ns, self._actions[0][0]) if self._actions else limit_ns
        if self._logs.are_awaited:
            until_ns = min(until_ns, self.now_ns + LOOK_NS)
        woken = [self._take(event) for event in self.controller.wait(until_ns)]
        while self._actions and self._actions[0][0] <= self.now_ns:
            _, _, action = heapq.heappop(self._actions)
            action()
        return any(woken)

    def _take(self, event: Event) -> bool:
        """Acts on an event. Returns whether a task may go on."""
        if event.kind == "exited":
            own = self.started.pop(event.id, None)
            if own is not None:
                own.ended(event.number)
                return True
            if not self._note_end(event):
                self._statuses[event.id] = event.number  # of a tool
            return False
        if event.kind == "stands":
            return self._stands(event)
        if event.kind == "passed":
            return self._passed(event)
        if event.kind == "arrived":
            arrivals, number = self._probes[event.id]
            arrivals.append(Arrival(number=number, delay_ns=event.number, damaged=event.damaged))
            return False
        return self.connections.take(event)

    def _note_end(self, event: Event) -> bool:
        """Removes the process of a program that has exited. `LinuxProcesses.kill` has removed what it ended before.

        Returns:
            Whether it was one of the nodes.
        """
        for (node, role), process in list(self.processes.items()):
            if process.program != event.id:
                continue
            del self.processes[node, role]
            if not process.lost_power:
                lines = self._logs.last(node, process.daemon.log_files[0])
                self.ended.setdefault(node, []).append((self.now_ns, role, shell_status(event.number), lines))
            return True
        return False

    def _path_of(self, node: str, path: str) -> Path:
        """Returns where this process sees a file of a node."""
        return self.controller.path_of(node, path)

    def _later(self, delay_ns: int, action: Callable[[], None]) -> None:
        self._planned += 1
        heapq.heappush(self._actions, (self.now_ns + delay_ns, self._planned, action))

    def cut(self, key: int, grudge: Mapping[str, frozenset[str]]) -> None:
        """Lets each node drop the packets of the nodes that it has a grudge against."""
        self._keys.add(key)
        for node in self.names:
            for source in self.names:
                if source in grudge.get(node, ()):
                    self.controller.cut(key, source, node)

    def disturb(
        self, key: int, node: str, disturbance: Disturbance, *, arriving: bool, others: AbstractSet[str] | None = None
    ) -> None:
        """Disturbs the packets between a node and the others: those that arrive at it, or those that leave it."""
        self._keys.add(key)
        for other in self.names:
            if other != node and (others is None or other in others):
                self.controller.disturb(key, *((other, node) if arriving else (node, other)), disturbance)

    def mend(self, key: int) -> None:
        """Removes the rules of `cut`, `disturb`, `fail_calls` and `slow_syncs` with a key."""
        self._keys.discard(key)
        self.controller.mend(key)

    def dropped(self, key: int) -> Mapping[Pair, int]:
        """Returns the number of packets that a cut has dropped so far, by pair."""
        return self.controller.dropped(key)

    async def probe(self, pairs: Iterable[Pair], *, count: int, wait_s: float) -> Mapping[Pair, Sequence[Arrival]]:
        """Sends packets through the network. Returns those that arrived in time, in the order of arrival."""
        return await self.probe_with(pairs, size=0, count=count, wait_s=wait_s)

    async def probe_with(
        self, pairs: Iterable[Pair], *, size: int, count: int, wait_s: float
    ) -> Mapping[Pair, Sequence[Arrival]]:
        """Sends packets of so many bytes; see `probe`."""
        arrivals: dict[Pair, list[Arrival]] = {pair: [] for pair in pairs}
        for number in range(count):
            for pair, arrived in arrivals.items():
                self.controller.probe(len(self._probes), *pair, size)
                self._probes.append((arrived, number))
        await asyncio.sleep(wait_s)
        return {pair: tuple(arrived) for pair, arrived in arrivals.items()}

    def count_messages(self) -> None:
        """Does nothing: the shapes of messages are those of the programs, which Labrys does not know."""

    async def rare_message(self, nodes: AbstractSet[str], wait_s: float) -> RareMessage | None:  # noqa: ARG002
        """Waits, and returns None: Labrys does not know the messages of programs."""
        await asyncio.sleep(wait_s)
        return None

    async def message(self, links: AbstractSet[Pair], *, nth: int, has: bytes) -> PassedMessage:
        """Waits for a message between nodes; see `harness.world.World`."""
        future: asyncio.Future[PassedMessage] = asyncio.get_running_loop().create_future()
        self._heard.append(future)
        wait = len(self._heard) - 1
        self.controller.hear(wait, links, nth=nth, has=has)
        try:
            return await future
        finally:
            self.controller.ignore(wait)

    def _passed(self, event: Event) -> bool:
        """Tells who waits of a message. Returns whether somebody does."""
        future = self._heard[event.id]
        if future.done():
            return False
        source, target = event.link
        future.set_result(PassedMessage(source=source, target=target, content=event.content))
        return True

    async def log_line(self, nodes: AbstractSet[str], pattern: str) -> tuple[str, str]:
        """Waits for a line in the log of one of these nodes; see `harness.world.World`."""
        return await self._logs.line(nodes, pattern, self._log_files)

    def _log_files(self) -> list[tuple[str, str]]:
        """Returns the logs of the processes that run, each with its node."""
        return [(node, log) for (node, _), process in self.processes.items() for log in process.daemon.log_files]

    def handled(self, node: str, role: str | None = None) -> int:
        """Returns how many calls the processes of a node have made that the controller saw."""
        return sum(self.controller.calls(process.program) for process in self.of(node, role))

    def listens(self, node: str, role: str | None = None) -> bool:
        """Returns whether a process of the node runs, or a socket of the node has one of its ports."""
        if self.of(node, role):
            return True
        daemons = [daemon for (name, of), daemon in self.daemons.items() if name == node and role in {None, of}]
        return any(self.controller.bound(node, port) for daemon in daemons for port in daemon.every_port)

    def of(self, node: str, role: str | None) -> Sequence[Started]:
        """Returns the processes of a node that run; of one role, or of all."""
        return [process for (name, of), process in self.processes.items() if name == node and role in {None, of}]

    def ahead_ns(self, node: str) -> int:
        """Returns how far a node's wall clock is ahead of the true time, as its programs read it."""
        return self.controller.ahead_ns(node)

    def slow_syncs(self, key: int, node: str, mean_ns: int) -> None:
        """Lets each sync that begins on a node take a time with this mean, until `mend`."""
        self._keys.add(key)
        self.controller.slow(key, node, mean_ns)

    def slowed_syncs(self, key: int) -> Mapping[str, SlowSyncs]:
        """Returns the syncs under the rule of a fault so far."""
        return self.controller.slowed(key)

    def set_speed(self, node: str, speed: float) -> None:
        """Lets all clocks of a node, and its waits, run at a multiple of the true speed from now on."""
        self._drifting.add(node)
        self.controller.set_speed(node, round(speed * TRUE_SPEED))

    def monotonic_ns(self, node: str) -> int:
        """Returns the monotonic clock of a node, as its programs read it."""
        return self.controller.monotonic_ns(node)

    def set_clock(self, node: str, *, ahead_ns: int, period_ns: int | None = None) -> None:
        """Moves a node's wall clock; with a period, forward and back again, each for this time."""
        turn = self._strobes[node] = self._strobes.get(node, 0) + 1
        self.controller.set_clock(node, ahead_ns)
        if period_ns is not None:
            self._later(period_ns, partial(self._strobe, node, turn, ahead_ns, period_ns, is_ahead=True))

    def _strobe(self, node: str, turn: int, ahead_ns: int, period_ns: int, *, is_ahead: bool) -> None:
        if self._strobes[node] == turn:
            self.controller.set_clock(node, 0 if is_ahead else ahead_ns)
            self._later(period_ns, partial(self._strobe, node, turn, ahead_ns, period_ns, is_ahead=not is_ahead))

    def fill_disk(self, node: str, *, full: bool) -> None:
        """Fills the volumes of a node, or frees them."""
        self.controller.fill(node, full=full)

    def disk_takes(self, node: str) -> bool:
        """Returns whether the volumes of a node have room for a small file, by a try."""
        return self.controller.takes(node)

    def fail_calls(self, key: int, node: str, role: str | None, failing: Failing) -> int:
        """Lets calls of the processes of a role, or of all, fail until `mend`, on files in their folders of data."""
        self._keys.add(key)
        folders = {
            daemon.data_dir for (name, of), daemon in self.daemons.items() if name == node and role in {None, of}
        }
        for folder in sorted(folders):
            self.controller.fail(key, node, folder, failing)
        return len(folders)

    def failed_calls(self, key: int) -> Sequence[Failed]:
        """Returns the calls that have failed by the rule of a fault so far."""
        return self.controller.failed(key)

    def prepare_loss(self) -> None:
        """Lets the disks remember what is synced, from now on."""
        self.loses_power = True

    def power_off(self, node: str, role: str | None = None) -> None:
        """Ends the processes of a node; the other ends of their connections hear nothing, as after a power loss."""
        for process in self.of(node, role):
            process.lost_power = True
            self.controller.lose_power(process.program)

    def lose_power(self, node: str, losing: Losing | None = None) -> Lost:
        """Removes unsynced data from the folders of the processes of a node that do not run."""
        what = "" if losing is None else self._lost(node, losing)
        return total([self.controller.lose(node, folder, what) for folder in self._folders(node)])

    def _lost(self, node: str, losing: Losing) -> str:
        """Returns what is lost, as the controller reads it; the numbers of changes are those before the loss."""
        if losing.changes is None:
            return "all"
        unsynced = self.controller.unsynced(node)
        numbers = [str(unsynced[-position]) for position in sorted(losing.changes) if position <= len(unsynced)]
        return ("+".join(numbers) or "none") + (" torn" if losing.torn else "")

    def note_steps(self) -> None:
        """Lets the disks note their steps from now on, so they also remember what is synced."""
        self.prepare_loss()
        self._notes_steps = True
        if self._started is not None:
            self._started.note_steps()

    def disk_steps(self) -> DiskSteps:
        """Returns the steps of all disks so far."""
        return DiskSteps() if self._steps is None else self._steps.so_far()

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
        """Waits for a step of the disk of one of these nodes; see `harness.world.World`."""
        if self._steps is None:
            self._steps = ProgramSteps(self.controller)
        future: asyncio.Future[DiskStep] = asyncio.get_running_loop().create_future()

        def begin_stall(wait: int) -> None:
            if stall is not None:
                for node in sorted(stall.nodes):
                    self.controller.stall(
                        wait, node, after_ns=stall.after_ns, wall=stall.wall, nth=stall.nth, length_ns=stall.length_ns
                    )

        return await self._steps.wait(
            future,
            self.now_ns,
            nodes,
            call=call,
            pattern=pattern,
            nth=nth,
            starts=starts,
            on_begin=begin_stall,
        )

    def starts(self, node: str) -> None:
        """A process of a node starts. The node starts with the first one."""
        if self._steps is not None and not self.of(node, None):
            self._steps.started(node, self.now_ns)

    def _stands(self, event: Event) -> bool:
        """A program stands still after a step of its disk. Returns whether somebody waits for that."""
        self._later(HELD_NS, partial(self._go_on, event.number))
        future = None if self._steps is None else self._steps.waiting(event.id)
        if future is None or future.done():
            return False
        future.set_result(step_of(event.step))
        return True

    def _go_on(self, program: int) -> None:
        """Continues a program that stood still, unless it has ended or was paused since."""
        if any(process.program == program and not process.paused for process in self.processes.values()):
            self.controller.resume(program)

    def wipe_files(self, node: str) -> Lost:
        """Removes all files from the folders of the processes of a node that do not run."""
        return total(self._volumes.wipe(node, folder) for folder in self._folders(node))

    def inside(self, node: str) -> list[str]:
        """Returns the words that carry out a command among the files of a node; see `Controller.inside`."""
        return self.controller.inside(node)

    def _folders(self, node: str) -> Sequence[str]:
        running = {process.daemon.data_dir for process in self.of(node, None)}
        folders = dict.fromkeys(daemon.data_dir for (name, _), daemon in self.daemons.items() if name == node)
        return [folder for folder in folders if folder not in running]

    def add_volume(self, node: str, folder: str) -> None:
        """Gives a folder of data a volume, before a process with its data there starts."""
        self._volumes.add(self.controller, node, folder, remembers=self.loses_power)

    def stopped(self, node: str, role: str) -> None:
        """Notes that a process was killed: faults of files act on the data of the one that was killed last."""
        if (node, role) in self.daemons:
            self.daemons[node, role] = self.daemons.pop((node, role))

    def keep_files(self, node: str) -> int:
        """Remembers the files of the processes of a node as they are now."""
        folders = {daemon.data_dir for (name, _), daemon in self.daemons.items() if name == node}
        return sum(self._volumes.data(node, folder).keep() for folder in sorted(folders))

    def damage_file(self, node: str, damaging: Damaging) -> Changed:
        """Damages one file of the process of a node that was killed last.

        Raises:
            NodeError: All processes run, or no file that matches can have this damage.
        """
        folders = self._folders(node)
        if not folders:
            raise NodeError(node, "expected a process that was killed; no file of a running one is damaged")
        return self._volumes.data(node, folders[-1]).damage(damaging)

    def heal(self) -> None:
        """Removes the effects of all faults."""
        if self._started is None:
            return
        for key in sorted(self._keys):
            self.mend(key)
        for name in sorted(self._drifting):
            self.set_speed(name, 1)
        self._drifting.clear()
        for name in self.names:
            self.set_clock(name, ahead_ns=0)
            self.fill_disk(name, full=False)
        for process in self.processes.values():
            self._started.resume(process.program)
            process.paused = False

    def close(self) -> None:
        """Ends the controller and all programs."""
        if self._started is not None:
            self._started.stop()
