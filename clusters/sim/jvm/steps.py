"""The steps of the disks of nodes whose processes run in the JVM of the simulator.

The JVM notes them, and lets a process stand still right after one that somebody waits for.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from clusters.sim.steps import HELD_NS, StepsOfDisks
from harness.world import DiskStep, Unsynced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from clusters.sim.jvm.pipe import Jvm
    from clusters.sim.world import SimWorld


class JavaSteps(StepsOfDisks):
    """The steps of the disks of one run."""

    def __init__(self, world: SimWorld, jvm: Jvm) -> None:
        super().__init__()
        self._world = world
        self._jvm = jvm
        self._noted: list[DiskStep] = []

    def noted(self) -> Sequence[DiskStep]:
        """Returns the steps so far."""
        self._noted += [_step(line) for line in self._jvm.steps().split("\n") if line]
        return self._noted

    def want(self, number: int, nodes: AbstractSet[str], *, call: str, pattern: str, nth: int) -> None:
        """Lets a process stand still right after a step."""
        self._jvm.want(number, sorted(nodes), call=call, pattern=either(pattern), nth=nth)

    def drop(self, number: int) -> None:
        """Ends what `want` began."""
        self._jvm.drop(number)

    def stands(self, number: int, told: str, go_on: Callable[[], None]) -> None:
        """A process stands still after a step.

        Args:
            number: The number of the wait.
            told: The step, as the JVM tells it.
            go_on: Lets the process go on, if nothing has happened to it.
        """
        self._world.later(HELD_NS, go_on, ())
        if (future := self.waiting(number)) is not None:
            self._world.fulfil(future, _step(told))


def either(pattern: str) -> str:
    """Returns the regular expression for paths that fit a glob pattern, or whose name does."""
    return f"{fnmatch.translate(pattern)}|{fnmatch.translate(f'*/{pattern}')}"


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
