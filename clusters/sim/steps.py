"""The steps of the disks of a world: each change of a file, and each sync; and those who wait for one of them.

Some defects show only if a node loses its power between two certain steps: a vote is sent before it is synced, or a rename is
not durable. `labrys crash` visits every step of a run. So the disks number their steps, and a fault can begin at one of them.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_MS
from harness.world import DiskStep, DiskSteps

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from clusters.sim.machine import Machine
    from clusters.sim.world import SimWorld

HELD_NS: Final = 5 * NS_PER_MS  # how long a node stands still, so that the fault is on before the next step


class StepsOfDisks(abc.ABC):
    """The steps of the disks of one run, and those who wait for one. A subclass knows where the disks are."""

    def __init__(self) -> None:
        """Begins without a wait."""
        self._first_wait: tuple[int, int] | None = None  # the number of steps before it, and its time
        self._waiting: dict[int, asyncio.Future[DiskStep]] = {}
        self._waits = 0
        self._later: list[_Later] = []
        self._starts: list[tuple[str, int]] = []

    @abc.abstractmethod
    def noted(self) -> Sequence[DiskStep]:
        """Returns the steps so far."""

    @abc.abstractmethod
    def want(self, number: int, nodes: AbstractSet[str], *, call: str, pattern: str, nth: int) -> None:
        """Lets a node stand still right after a step. `number` is that of the wait."""

    @abc.abstractmethod
    def drop(self, number: int) -> None:
        """Ends what `want` began."""

    def so_far(self) -> DiskSteps:
        """Returns the steps so far."""
        noted = self.noted()
        before, waited_ns = self._first_wait or (len(noted), 0)
        return DiskSteps(noted=tuple(noted), before=before, waited_ns=waited_ns, starts=tuple(self._starts))

    async def wait(
        self,
        future: asyncio.Future[DiskStep],
        now_ns: int,
        nodes: AbstractSet[str],
        *,
        call: str,
        pattern: str,
        nth: int,
        starts: int,
        on_begin: Callable[[int], None] | None = None,
    ) -> DiskStep:
        """Waits for a step; see `harness.world.World.disk_step`.

        `future` gets it; `now_ns` is the time of the world; `on_begin` gets the number of a wait when it begins.
        """
        if self._first_wait is None:
            self._first_wait = len(self.noted()), now_ns
        begun: list[int] = []

        def begin(of: AbstractSet[str]) -> None:
            self._waits += 1
            begun.append(self._waits)
            self._waiting[self._waits] = future
            self.want(self._waits, of, call=call, pattern=pattern, nth=nth)
            if on_begin is not None:
                on_begin(self._waits)

        later = _Later(dict.fromkeys(nodes, starts), begin)
        if starts:
            self._later.append(later)
        else:
            begin(nodes)
        try:
            return await future
        finally:
            if starts:
                self._later.remove(later)
            for number in begun:
                del self._waiting[number]
                self.drop(number)

    def started(self, node: str, now_ns: int) -> None:
        """A node starts, and has made no step yet."""
        if self._first_wait is None:
            return
        self._starts.append((node, now_ns))
        for later in self._later:
            later.started(node)

    def waiting(self, number: int) -> asyncio.Future[DiskStep] | None:
        """Returns the future of a wait that goes on; None if it has ended."""
        return self._waiting.get(number)


class _Later:
    """Somebody who waits for a step of a node after some starts of it. Each node has its own count."""

    def __init__(self, left: dict[str, int], begin: Callable[[AbstractSet[str]], None]) -> None:
        self._left = left
        self._begin = begin

    def started(self, node: str) -> None:
        """Counts a start. The steps count after the last one."""
        if node in self._left:
            self._left[node] -= 1
            if not self._left[node]:
                self._begin(frozenset({node}))


class _Waiting:
    """Somebody who waits for the n-th step of a kind on a file of one of several nodes."""

    def __init__(self, nodes: AbstractSet[str], call: str, pattern: str, nth: int) -> None:
        self._nodes = nodes
        self._call = call
        self._pattern = pattern
        self._nth = nth
        self._seen: dict[str, int] = {}

    def takes(self, step: DiskStep) -> bool:
        """Counts a step. Returns whether it is the one."""
        if step.node not in self._nodes or not step.fits(self._call, self._pattern):
            return False
        seen = self._seen[step.node] = self._seen.get(step.node, 0) + 1
        return seen == self._nth


class Steps(StepsOfDisks):
    """The steps of the disks of one run whose processes are objects."""

    def __init__(self, world: SimWorld) -> None:
        super().__init__()
        self._world = world
        self._noted: list[DiskStep] = []
        self._wanted: dict[int, _Waiting] = {}

    def noted(self) -> Sequence[DiskStep]:
        """Returns the steps so far."""
        return self._noted

    def want(self, number: int, nodes: AbstractSet[str], *, call: str, pattern: str, nth: int) -> None:
        """Lets a machine stand still right after a step."""
        self._wanted[number] = _Waiting(nodes, call, pattern, nth)

    def drop(self, number: int) -> None:
        """Ends what `want` began."""
        del self._wanted[number]

    def made(self, machine: Machine, call: str, file: str) -> None:
        """Notes a step of the disk of a machine. If somebody waits for it, the machine stands still."""
        number = machine.disk.steps
        step = DiskStep(
            node=machine.name,
            number=number,
            time_ns=self._world.now_ns,
            call=call,
            file=file,
            unsynced=machine.disk.unsynced(),
            others=self._world.sent + len(self._noted) - number + 1,
        )
        self._noted.append(step)
        taken = [wait for wait, wanted in self._wanted.items() if wanted.takes(step)]
        for wait in taken:
            if (future := self.waiting(wait)) is not None:
                self._world.fulfil(future, step)
        if taken:
            machine.hold(HELD_NS)
