"""Programs in virtual time that a controller of Linux programs carries: with timers, threads and clocks of their own.

The controller (`clusters.sim.linux.driving`) runs the programs; their stdin and stdout are connections of this process. The
world has the network between them, the clients and the faults, as for all programs with pipes. The programs run until the next
event of the world. What they write meanwhile is an event of the world, at the time at which they wrote it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.pipes.child import Child
from clusters.sim.linux.building import controller
from clusters.sim.linux.driving import Controller, Parts
from clusters.sim.linux.loop import HOST
from clusters.sim.linux.seen import seen
from harness.errors import InputError
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.pipes.program import Program
    from clusters.sim.linux.driving import Event
    from clusters.sim.threads import Threads
    from clusters.sim.world import SimWorld

NEVER: Final = 2**63 - 1
FOLDER: Final = "/var/lib/node"  # the working directory of a program, as it sees it
LEAST_PARTS: Final = 3  # of the folder of a program: in its place, nodes have no folder of their own
STDOUT, STDERR = 1, 2


class Carrier:
    """Starts the programs of a run by one controller; a `clusters.pipes.pump.Pump` and a `clusters.sim.world.Companion`."""

    def __init__(self, world: SimWorld, threads: Threads) -> None:
        """Starts nothing yet.

        Args:
            world: The world.
            threads: Where threads stop.
        """
        self._world = world
        self._threads = threads
        self._root = Path(tempfile.mkdtemp(prefix="labrys-linux-"))
        self._controller: Controller | None = None
        self._children: dict[int, CarriedChild] = {}  # by the number of the program
        self._connections: dict[int, CarriedChild] = {}
        self._programs: dict[CarriedChild, Program] = {}
        self._errors = 0  # files for stderr so far
        self._reached_ns = 0

    def begin(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> CarriedChild:
        """Starts a program on a node.

        Raises:
            InfrastructureError: The controller cannot be started, e.g. without root.
            InputError: The program is in a folder that nodes cannot see.
        """
        if self._controller is None:
            self._controller = self._started(Path(command[0]))
        while self._controller.now_ns < self._world.now_ns:  # it stood still while there was no program
            self._hear(self._controller.wait(self._world.now_ns))
        self._errors += 1
        errors = f"/var/log/stderr-{self._errors}.log"
        variables = [f"{name}={value}" for name, value in environment.items()]
        number, connection = self._controller.talk(
            node, ["/usr/bin/env", *variables, *command], folder=FOLDER, output=errors
        )
        child = CarriedChild(self, self._controller, number, connection, self._controller.path_of(node, errors))
        self._children[number] = self._connections[connection] = child
        return child

    def _started(self, program: Path) -> Controller:
        shown, variables = seen()
        folder = program.parent
        if len(folder.parts) < LEAST_PARTS:
            raise InputError(
                f"expected {program} in a folder below another one, not in {folder}: all nodes see the folder"
            )
        links = sorted({path.resolve() for path in folder.iterdir() if path.is_symlink() and path.exists()})
        for path in (folder, *links):
            if not any(path.is_relative_to(other) for other in shown):
                shown = [*shown, path]
        addresses = {name: f"192.0.2.{number}" for number, name in enumerate(self._world.names, 1)}
        parts = Parts(
            seed=self._world.seed,
            root=self._root,
            nodes={**addresses, HOST: "192.0.2.250"},
            variables=variables,
            shown=shown,
            preempt=self._threads.preempt,
            stalls=self._threads.stalls,
            trace_all=self._threads.trace_all,
        )
        started = Controller(controller(lambda _: None), parts)
        for name in self._world.names:
            started.path_of(name, FOLDER).mkdir(parents=True)
        return started

    def wipe(self, node: str) -> None:
        """Empties the working directory of a node's program."""
        if self._controller is None:
            return
        folder = self._controller.path_of(node, FOLDER)
        if not folder.is_symlink():  # a program may have made one, which leads out of the simulation
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)

    def add(self, program: Program) -> None:
        """A program has started."""
        if isinstance(program.child, CarriedChild):
            self._programs[program.child] = program
            self._reached_ns = self._world.now_ns

    def remove(self, program: Program, child: Child) -> None:  # noqa: ARG002 - as `Pump` has it
        """A program ends now."""
        if isinstance(child, CarriedChild):
            self._programs.pop(child, None)

    def wrote(self, program: Program) -> None:  # noqa: ARG002 - likewise
        """Lets the programs run from now on."""
        self._reached_ns = self._world.now_ns

    @property
    def next_ns(self) -> int:
        """Returns the time from which programs may do something; `NEVER` if there is none."""
        return max(self._reached_ns, self._world.now_ns) if self._programs else NEVER

    def advance(self, until_ns: int, limit_ns: int) -> None:  # noqa: ARG002 - it foresees nothing
        """Lets the programs run up to a time, or until one of them writes something or ends."""
        if self._controller is None:
            return
        events = self._controller.wait(until_ns)
        if not events:
            self._reached_ns = until_ns + 1
            return
        self._world.now_ns = self._reached_ns = max(self._world.now_ns, min(self._controller.now_ns, until_ns))
        for child in self._hear(events):
            program = self._programs.get(child)
            if program is None:
                continue
            program.pull()
            program.act()
            if program.child is child and STDOUT in child.ended:
                program.over()

    def _hear(self, events: Sequence[Event]) -> list[CarriedChild]:
        """Takes events. Returns the children that they are about, once each."""
        heard: dict[CarriedChild, None] = {}
        for event in events:
            of = self._children if event.kind == "exited" else self._connections
            child = of.get(event.id)
            if child is not None:
                child.hear(event)
                heard[child] = None
        return list(heard)

    def end_of(self, child: CarriedChild, limit_s: float) -> None:
        """Lets the programs run until one has ended, at most for a time."""
        if self._controller is None:
            return
        limit_ns = self._controller.now_ns + int(limit_s * NS_PER_S)
        while child.status is None and self._controller.now_ns < limit_ns:
            self._hear(self._controller.wait(limit_ns))

    def close(self) -> None:
        """Ends all programs, and removes their files."""
        if self._controller is not None:
            self._controller.stop()
            self._controller = None
        shutil.rmtree(self._root, ignore_errors=True)


class CarriedChild(Child):
    """A process of the simulation. Its pipes are no descriptors of this process.

    Attributes:
        status: Its exit status, negative for a signal; None while it runs.
    """

    def __init__(self, carrier: Carrier, run: Controller, number: int, connection: int, errors: Path) -> None:
        """Describes a process that has started.

        Args:
            carrier: Who has started it.
            run: The controller.
            number: Its number in the simulation.
            connection: Its stdin and stdout.
            errors: Where this process sees what it writes to stderr.
        """
        self.pid = number
        self.stdin, self.stdout, self.stderr = -1, STDOUT, STDERR
        self.unsent = bytearray()
        self.ended = set()
        self.status: int | None = None
        self._carrier = carrier
        self._run = run
        self._connection = connection
        self._errors = errors.open("rb")
        self._out = bytearray()
        self._is_paused = False

    def hear(self, event: Event) -> None:
        """Takes an event about it."""
        if event.kind == "exited":
            self.status = os.waitstatus_to_exitcode(event.number)
        elif event.kind == "bytes":
            self._out += event.content
        elif event.kind in {"ended", "reset"}:
            self.ended.add(STDOUT)

    def write(self, data: bytes) -> None:
        """Gives bytes to its stdin."""
        self._run.send(self._connection, data)

    def read(self, descriptor: int) -> bytes:
        """Returns what it has written to stdout or stderr since the last read."""
        if descriptor == STDERR:
            return self._errors.read()
        taken = bytes(self._out)
        self._out.clear()
        return taken

    def wait(self, limit_s: float) -> int | None:
        """Waits for its end in virtual time; returns the exit status, or None if it still runs."""
        self._carrier.end_of(self, limit_s)
        return self.status

    def letter(self) -> str | None:
        """Returns T if it is paused, S if it runs, and None if it has ended."""
        if self.status is not None:
            return None
        return "T" if self._is_paused else "S"

    def pause(self) -> None:
        """Stops it and all that it has started."""
        self._run.pause(self.pid)
        self._is_paused = True

    def resume(self) -> None:
        """Continues it and all that it has started."""
        self._run.resume(self.pid)
        self._is_paused = False

    def kill(self) -> None:
        """Ends it and all that it has started."""
        self._run.kill(self.pid)
        self._run.close(self._connection)
        self._errors.close()
