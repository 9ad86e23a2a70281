"""A simulated node: its clock, its disk, and its one process.

An exception ends a process, as it ends a real one; the node's log has the traceback. After the end of a process its timers
never fire, and its unanswered requests fail with `Broken`. The node's disk and log stay.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from clusters.sim.disk import SimDisk
from clusters.sim.errors import Broken, Refused
from clusters.sim.host import DiskError, Outside
from clusters.sim.node_clock import NodeClock
from harness.errors import LabrysError
from harness.randomness import stream
from harness.units import NS_PER_S

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from random import Random

    from clusters.sim.host import Disk, Factory, Process, Reply, Request
    from clusters.sim.world import SimWorld

EPOCH_NS = 1_767_225_600 * NS_PER_S  # the right wall time at the world's beginning: 2026-01-01T00:00:00Z
FATAL = "FATAL"
RUNNING, STOPPED = "S", "T"  # state letters as in /proc/PID/stat


class SimTimer:
    """A timer of a process."""

    __slots__ = ("_action", "_due_ns", "_host")

    def __init__(self, host: SimHost, due_ns: int, action: Callable[[], None]) -> None:
        self._host = host
        self._due_ns = due_ns  # on the clock of the node
        self._action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Stops the timer, so that it never fires."""
        self._action = None

    def fire(self) -> None:
        """Calls the action, if the timer was not cancelled and the process lives. While the process is paused, it waits.

        It is never early on the clock of the node. It can be late if the clock runs faster since it was set.
        """
        action, host = self._action, self._host
        if action is None or not host.alive:
            return
        left_ns = self._due_ns - host.monotonic_ns()
        if left_ns > 0:
            host.machine.later(left_ns, self.fire)
            return
        if host.machine.stands:
            host.machine.defer(self.fire, ())
            return
        self._action = None
        host.machine.call(action, ())


def random_of(seed: int, node: str, number: int) -> Random:
    """Returns the random numbers of a process: of the start of a node with this number, from 1."""
    return stream(seed, f"sim/process/{node}/{number}")


class SimHost:
    """The machine of one process, from its start to its end; see `clusters.sim.host.Host`.

    Attributes:
        machine: The machine.
        alive: Whether the process still runs, paused or not.
    """

    def __init__(self, machine: Machine, number: int) -> None:
        self.name = machine.name
        self.peers = machine.world.names
        self.random = random_of(machine.world.seed, machine.name, number)
        self.disk: Disk = machine.disk
        self.machine = machine
        self.alive = True
        self._world = machine.world

    def wall_ns(self) -> int:
        """Returns the node's wall clock."""
        return EPOCH_NS + self._world.now_ns + self.machine.ahead_ns()

    def monotonic_ns(self) -> int:
        """Returns a clock in nanoseconds that never jumps."""
        return self.machine.clock.passed_ns(self._world.now_ns)

    def after(self, delay_ns: int, action: Callable[[], None]) -> SimTimer:
        """Calls `action` once after a delay."""
        timer = SimTimer(self, self.monotonic_ns() + delay_ns, action)
        self.machine.later(max(0, delay_ns), timer.fire)
        return timer

    def send(self, to: str, message: Any) -> None:
        """Sends a message to a node, or a reply to a client."""
        if self.alive:
            self.machine.act(self._world.send, (self.machine, to, message))

    def log(self, text: str) -> None:
        """Writes a line into the node's log."""
        self.machine.act(self.machine.log, (text,))


class Machine:
    """A simulated node.

    Attributes:
        name: The node's name.
        world: The world it is in.
        disk: Its disk.
        clock: The time that passes on it.
        paused: Whether its process is paused.
        handled: The number of messages and timers that its processes have handled.
        lines: The lines of its log.
    """

    def __init__(self, name: str, world: SimWorld) -> None:
        self.name = name
        self.world = world
        self.disk = SimDisk(name)
        self.clock = NodeClock()
        self.paused = False
        self.handled = 0
        self.lines: list[str] = []
        self._host: SimHost | None = None
        self._process: Process | None = None
        self._started = 0
        self._waiting: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        # What the process does while the node stands still after a step of its disk: it happens later, or never.
        self._held: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None
        self._unanswered: dict[tuple[str, int], asyncio.Future[Any]] = {}
        self._ahead_ns = 0  # of the wall clock, when it was set
        self._lead_ns = 0  # of the clock then
        self._period_ns: int | None = None
        self._set_ns = 0

    @property
    def runs(self) -> bool:
        """Returns whether a process runs, paused or not."""
        return self._host is not None

    @property
    def stands(self) -> bool:
        """Returns whether its process is paused, or stands still after a step of its disk."""
        return self.paused or self._held is not None

    @property
    def process(self) -> Process | None:
        """Returns the process, so that others can inspect it; None if there is none."""
        return self._process

    def state(self) -> tuple[int, str] | None:
        """Returns a number for the process and its state letter; None if there is no process."""
        return None if self._host is None else (self._started, STOPPED if self.paused else RUNNING)

    def start(self, factory: Factory) -> None:
        """Starts a process; does nothing if one runs."""
        if self._host is not None:
            return
        self._started += 1
        self.world.steps.started(self.name, self.world.now_ns)
        self.log(f"start {self._started}")
        host = self._host = SimHost(self, self._started)

        def begin() -> None:
            self._process = factory(host)
            self._process.start()

        self.call(begin, ())

    def kill(self) -> None:
        """Ends the process and loses its memory; does nothing if there is none."""
        if self._host is None:
            return
        self._host.alive = False
        process, self._host, self._process = self._process, None, None
        if isinstance(process, Outside):
            process.killed()
        self.paused = False
        self._waiting.clear()
        if self._held is not None:
            self._held = None
            self.disk.go_back()
        unanswered, self._unanswered = self._unanswered, {}
        for future in unanswered.values():
            self.world.later(self.world.links.near_ns(), self.world.fail, (future, Broken(f"{self.name} broke off")))

    def end(self) -> None:
        """Ends a process outside of this one with the run, when no event follows any more."""
        if isinstance(self._process, Outside):
            self._process.killed()

    def die(self, why: str, trace: Sequence[str] = ()) -> None:
        """Ends the process by an error of its own; the log has a line with the error, and the lines of the trace."""
        self.log(f"{FATAL} {why}")
        self.lines.extend(trace)
        self.kill()

    def pause(self) -> None:
        """Pauses the process: its messages and timers wait."""
        was, self.paused = self.paused, self._host is not None
        if self.paused and not was and isinstance(self._process, Outside):
            self._process.paused()

    def resume(self) -> None:
        """Resumes a paused process. It handles the messages and timers that waited, in their order."""
        was, self.paused = self.paused, False
        if was and isinstance(self._process, Outside):
            self._process.resumed()
        self._go_on()

    def hold(self, duration_ns: int) -> None:
        """Lets the process stand still right after a step of its disk. What it does next happens after that, or never."""
        if self._host is not None and self._held is None:
            self._held = []
            self.disk.hold()
            self.world.later(duration_ns, self._let_go, (self._host,))

    def _let_go(self, host: SimHost) -> None:
        """Ends `hold`, unless the process has been killed since."""
        if self._host is host and self._held is not None:
            waiting, self._held = self._held, None
            self.disk.let_go()
            for action, arguments in waiting:
                action(*arguments)
            if not self.paused:
                self._go_on()

    def later(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Does something when a time has passed on the node."""
        self.world.later(self.clock.length_ns(delay_ns), action, ())

    def act(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Does something for the process now, or after `hold`."""
        if self._held is None:
            action(*arguments)
        else:
            self._held.append((action, arguments))

    def _go_on(self) -> None:
        """Handles the messages and timers that waited."""
        waiting, self._waiting = self._waiting, []
        for action, arguments in waiting:
            self.world.later(0, action, arguments)

    def defer(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Delays a call until the process resumes."""
        self._waiting.append((action, arguments))

    def call(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Calls a function of the process. An exception ends the process; one of its disk is no error of the process."""
        self.handled += 1
        try:
            action(*arguments)
        except DiskError as error:
            self.log(f"ends: {error}")
            self.kill()
        except LabrysError as error:
            self.die(str(error))
        except Exception as error:  # noqa: BLE001 - any exception ends the process, and its log shows it
            self.die(f"{type(error).__name__}: {error}", traceback.format_exc().rstrip().splitlines())

    def arrive(self, sender: str, message: Any) -> None:
        """Gives a message of another node to the process. Without a process the message is lost."""
        if self._process is None:
            return
        if self.stands:
            self.defer(self.arrive, (sender, message))
            return
        self.call(self._process.receive, (sender, message))

    def accept(self, client: str, request: Request, future: asyncio.Future[Any]) -> None:
        """Gives a request of a client to the process. Without a process the request fails with `Refused`."""
        if self._process is None:
            refused = Refused(f"nobody listens on {self.name}")
            self.world.later(self.world.links.near_ns(), self.world.fail, (future, refused))
            return
        self._unanswered[client, request.id] = future
        if self.stands:
            self.defer(self._receive, (client, request))
            return
        self._receive(client, request)

    def _receive(self, client: str, request: Request) -> None:
        if self._process is not None:
            self.call(self._process.receive, (client, request))

    def answer(self, client: str, reply: Reply) -> None:
        """Sends a reply to a client. A reply to an unknown or answered request is lost."""
        future = self._unanswered.pop((client, reply.id), None)
        if future is not None:
            self.world.later(self.world.links.near_ns(), self.world.fulfil, (future, reply.body))

    def log(self, text: str) -> None:
        """Writes a line into the log."""
        line = f"{self.world.now_ns / NS_PER_S:.6f} {text}"
        self.lines.append(line)
        self.world.logged(self.name, line)

    def ahead_ns(self) -> int:
        """Returns how far the wall clock is ahead of the true time."""
        now_ns = self.world.now_ns
        gained_ns = self.clock.lead_ns(now_ns) - self._lead_ns
        if self._period_ns is None:
            return self._ahead_ns + gained_ns
        turn = (now_ns - self._set_ns) // self._period_ns
        return (0 if turn % 2 else self._ahead_ns) + gained_ns

    def set_clock(self, ahead_ns: int, period_ns: int | None) -> None:
        """Sets the wall clock ahead of the true time. With a period it alternates between that and the true time."""
        self._ahead_ns, self._period_ns, self._set_ns = ahead_ns, period_ns, self.world.now_ns
        self._lead_ns = self.clock.lead_ns(self.world.now_ns)
        if isinstance(self._process, Outside):
            self._process.clock_set(self.wall_clock)

    @property
    def wall_clock(self) -> tuple[int, int, int]:
        """Returns how far the wall clock was set ahead, the period with which it alternates (0: none), and when it was set."""
        return self._ahead_ns, self._period_ns or 0, self._set_ns
