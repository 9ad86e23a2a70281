"""The steps of the disks of programs in virtual time. The controller notes them, and lets a program stand still after one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clusters.sim.steps import StepsOfDisks
from harness.world import DiskStep, Unsynced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from clusters.sim.linux.driving import Controller


class ProgramSteps(StepsOfDisks):
    """The steps of the disks of one run."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller

    def noted(self) -> Sequence[DiskStep]:
        """Returns the steps so far."""
        return [step_of(line) for line in self._controller.steps()]

    def want(self, number: int, nodes: AbstractSet[str], *, call: str, pattern: str, nth: int) -> None:
        """Lets a program stand still right after a step."""
        self._controller.want(number, sorted(nodes), call=call, pattern=pattern, nth=nth)

    def drop(self, number: int) -> None:
        """Ends what `want` began."""
        self._controller.drop(number)


def step_of(line: str) -> DiskStep:
    """Returns a step as the controller tells it; `kernel/steps.rs` is the other end."""
    node, number, time_ns, call, file, others, *unsynced = line.split(" ")
    return DiskStep(
        node=node,
        number=int(number),
        time_ns=int(time_ns),
        call=call,
        file=_path(file),
        others=int(others),
        unsynced=tuple(map(_unsynced, unsynced)),
    )


def _unsynced(told: str) -> Unsynced:
    number, kind, file = re.split("([nc])", told, maxsplit=1)
    return Unsynced(number=int(number), names=kind == "n", file=_path(file))


def _path(told: str) -> str:
    return bytes.fromhex(told.removeprefix("-")).decode(errors="replace")
