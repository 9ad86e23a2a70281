"""The steps of the disks of nodes whose processes run in the JVM of the simulator.

The JVM notes them, and lets a process stand still right after one that somebody waits for.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from clusters.sim.steps import HELD_NS
from harness.world import DiskStep, DiskSteps, Unsynced

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from clusters.sim.jvm.pipe import Jvm
    from clusters.sim.world import SimWorld


class JavaSteps:
    """The steps of the disks of one run; see `clusters.sim.steps.Steps`."""

    def __init__(self, world: SimWorld, jvm: Jvm) -> None:
        self._world = world
        self._jvm = jvm
        self._noted: list[DiskStep] = []
        self._first_wait: tuple[int, int] | None = None
        self._waiting: dict[int, asyncio.Future[DiskStep]] = {}
        self._waits = 0

    def so_far(self) -> DiskSteps:
        """Returns the steps so far."""
        noted = self._all()
        before, waited_ns = self._first_wait or (len(noted), 0)
        return DiskSteps(noted=tuple(noted), before=before, waited_ns=waited_ns)

    def _all(self) -> Sequence[DiskStep]:
        self._noted += [_step(line) for line in self._jvm.steps().split("\n") if line]
        return self._noted

    async def wait(
        self,
        future: asyncio.Future[DiskStep],
        now_ns: int,
        nodes: AbstractSet[str],
        *,
        call: str,
        pattern: str,
        nth: int,
    ) -> DiskStep:
        """Waits for a step; see `harness.world.World.disk_step`."""
        if self._first_wait is None:
            self._first_wait = len(self._all()), now_ns
        self._waits += 1
        number = self._waits
        either = f"{fnmatch.translate(pattern)}|{fnmatch.translate(f'*/{pattern}')}"
        self._jvm.want(number, sorted(nodes), call=call, pattern=either, nth=nth)
        self._waiting[number] = future
        try:
            return await future
        finally:
            del self._waiting[number]
            self._jvm.drop(number)

    def stands(self, number: int, told: str, go_on: Callable[[], None]) -> None:
        """A process stands still after a step.

        Args:
            number: The number of the wait.
            told: The step, as the JVM tells it.
            go_on: Lets the process go on, if nothing has happened to it.
        """
        self._world.later(HELD_NS, go_on, ())
        future = self._waiting.get(number)
        if future is not None:
            self._world.fulfil(future, _step(told))


def _step(line: str) -> DiskStep:
    """Returns a step as the JVM tells it; `io.labrys.simjvm.run.Steps` is the other end."""
    node, number, time_ns, call, file, others, unsynced = line.split("\t")
    return DiskStep(
        node=node,
        number=int(number),
        time_ns=int(time_ns),
        call=call,
        file=file,
        others=int(others),
        unsynced=tuple(_unsynced(change) for change in unsynced.split("\x01") if change),
    )


def _unsynced(told: str) -> Unsynced:
    number, kind, file = re.split("([nc])", told, maxsplit=1)
    return Unsynced(number=int(number), names=kind == "n", file=file)
