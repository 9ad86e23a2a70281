"""What moves the bytes between the pipes of programs and the world.

In real time, the event loop says when there is output (`LivePump`). In virtual time, the pump waits after each line until the
program is quiet, see `clusters.pipes.virtual`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clusters.pipes.child import Child
    from clusters.pipes.live import LiveWorld
    from clusters.pipes.program import Program


class Pump(Protocol):
    """Moves the bytes of all programs of a run."""

    def add(self, program: Program) -> None:
        """A program has started."""
        ...

    def remove(self, program: Program, child: Child) -> None:
        """A program ends now; its pipes are still open."""
        ...

    def wrote(self, program: Program) -> None:
        """A line was written for the stdin of a program, or the program goes on after a pause."""
        ...


class LivePump:
    """The pump of a world in real time."""

    def __init__(self, world: LiveWorld) -> None:
        self._world = world
        self._writing: set[int] = set()

    def add(self, program: Program) -> None:
        """Reads its output from now on."""
        child = program.child
        if child is not None:
            self._world.loop.add_reader(child.stdout, self._readable, program, child, child.stdout)
            self._world.loop.add_reader(child.stderr, self._readable, program, child, child.stderr)

    def remove(self, program: Program, child: Child) -> None:  # noqa: ARG002 - as `Pump` has it
        """Leaves its pipes."""
        if self._world.loop.is_closed():
            return
        self._world.loop.remove_reader(child.stdout)
        self._world.loop.remove_reader(child.stderr)
        if child.stdin in self._writing:
            self._writing.discard(child.stdin)
            self._world.loop.remove_writer(child.stdin)

    def wrote(self, program: Program) -> None:
        """Writes the rest as soon as the pipe takes it."""
        child = program.child
        if child is not None and child.unsent and child.stdin not in self._writing:
            self._writing.add(child.stdin)
            self._world.loop.add_writer(child.stdin, self._writable, child)

    def _writable(self, child: Child) -> None:
        child.flush()
        if not child.unsent:
            self._writing.discard(child.stdin)
            self._world.loop.remove_writer(child.stdin)

    def _readable(self, program: Program, child: Child, descriptor: int) -> None:
        if program.child is not child:
            return
        program.pull()
        program.act()
        if program.child is child and descriptor in child.ended:
            self._world.loop.remove_reader(descriptor)
            if descriptor == child.stdout:
                program.over()
