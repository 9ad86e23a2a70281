"""Programs in virtual time: the clock stands still until a program is quiet.

After each line for a program, the pump waits until all its threads are blocked, and then acts on what it wrote. So a program
says everything at a known virtual time, and code takes no time. If all wait for input, the clock jumps to the next event.

A program can also sleep: it has a timer of its own, e.g. for an election. No jump wakes it. So while one sleeps, virtual time
runs as fast as real time. Such a run lasts as long as a real one, and its seed need not repeat it.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Final

from clusters.pipes.kernel import Activity, Watch
from harness.clock import look_for_signals, wake_descriptors
from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from clusters.pipes.child import Child
    from clusters.pipes.program import Program
    from clusters.sim.world import SimWorld

NEVER: Final = 2**63 - 1
BUSY_S: Final = 30.0  # a program that computes for longer counts as one that sleeps
SHORT_S: Final = 0.00002
LONG_S: Final = 0.001
LOOK_S: Final = 0.05  # a program that is not quiet for so long is interrupted by signals
NAPS_S: Final = 0.1  # a program that naps for longer after a line sleeps


class VirtualPump:
    """The pump of a world in virtual time; a `clusters.sim.world.Companion`."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._acting: set[Program] = set()
        self._written: set[Program] = set()  # those that got a line while their output was handled
        self._watches: dict[Child, Watch] = {}
        self._sleeping: dict[Program, None] = {}
        self._busy: set[Program] = set()  # those that sleep because they were not quiet in time
        self._reached_ns = 0

    def add(self, program: Program) -> None:
        """A program has started."""

    def remove(self, program: Program, child: Child) -> None:
        """A program ends now."""
        self._sleeping.pop(program, None)
        self._busy.discard(program)
        watch = self._watches.pop(child, None)
        if watch is not None:
            watch.close()

    def wrote(self, program: Program) -> None:
        """Waits until a program is quiet, and acts on its output, until it gets no further line meanwhile."""
        self._written.add(program)
        if program in self._acting:
            return  # the loop below goes on
        self._acting.add(program)
        begin_s = time.monotonic()
        try:
            while program.child is not None and program in self._written:
                self._written.discard(program)
                self._until_quiet(program, program.child, begin_s)
                program.act()
            if program.child is not None and program.child.stdout in program.child.ended:
                program.over()
        finally:
            self._acting.discard(program)
            self._written.discard(program)

    def _until_quiet(self, program: Program, child: Child, begin_s: float) -> None:
        """Waits until a program is quiet, and takes its output meanwhile.

        After a signal, it waits no longer, so that the loop can handle the signal. Then, and if the program is not quiet for
        `BUSY_S`, it counts as one that sleeps.

        Args:
            program: The program.
            child: Its process.
            begin_s: When it got the first line. Until `NAPS_S` later, a program that naps is not quiet.
        """
        wakes = wake_descriptors()
        limit_s = time.monotonic() + (NAPS_S if program in self._busy else BUSY_S)
        pause_s = SHORT_S
        watch = self._watches.get(child)
        if watch is None:
            watch = self._watches[child] = Watch(child.pid)
        while program.child is child and child.stdout not in child.ended:
            now_s = time.monotonic()
            if now_s > limit_s or (now_s > begin_s + LOOK_S and child.wait_for_output(0.0, wakes)):
                self._busy.add(program)
                self._sleeps(program, "computes for long")
                self._look()
                return
            moved = child.flush()
            if program.pull() or moved:
                pause_s = SHORT_S
                continue
            now = watch.activity()
            if now is Activity.NAPS and now_s < begin_s + NAPS_S:
                now = Activity.RUNS
            if now is Activity.RUNS:
                child.wait_for_output(pause_s, wakes)
                pause_s = min(2 * pause_s, LONG_S)
            elif not program.pull():
                self._busy.discard(program)
                if now is Activity.WAITS:
                    self._sleeping.pop(program, None)
                else:
                    self._sleeps(program, "waits by itself")
                return

    def _look(self) -> None:
        """Lets the loop run, because it may have a signal to handle."""
        look_for_signals()
        self._world.wake()

    def _sleeps(self, program: Program, how: str) -> None:
        if program not in self._sleeping:
            self._sleeping[program] = None
            program.slept(how)

    @property
    def next_ns(self) -> int:
        """Returns the time from which programs that sleep may do something; `NEVER` if all wait."""
        awake = any(not program.machine.paused for program in self._sleeping)
        return max(self._reached_ns, self._world.now_ns) if awake else NEVER

    def advance(self, until_ns: int, limit_ns: int) -> None:  # noqa: ARG002 - it foresees nothing
        """Lets real time pass for the programs that sleep, until one of them writes something."""
        begin_ns, began_ns = max(self._reached_ns - 1, self._world.now_ns), time.monotonic_ns()
        poll = select.poll()
        programs: dict[int, Program] = {}
        for program in self._sleeping:
            if program.child is not None and not program.machine.paused:
                for descriptor in {program.child.stdout, program.child.stderr} - program.child.ended:
                    programs[descriptor] = program
                    poll.register(descriptor, select.POLLIN)
        for descriptor in wake_descriptors():
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(max(0.0, (until_ns - begin_ns) / NS_PER_MS))
        now_ns = min(until_ns, begin_ns + time.monotonic_ns() - began_ns)
        if not ready:
            self._reached_ns = until_ns + 1
            return
        self._world.now_ns = self._reached_ns = max(now_ns, self._world.now_ns)
        for descriptor, _ in ready:
            if descriptor not in programs:
                self._look()
        for program in dict.fromkeys(programs[descriptor] for descriptor, _ in ready if descriptor in programs):
            self.wrote(program)

    def close(self) -> None:
        """Does nothing: the cluster ends the programs."""
