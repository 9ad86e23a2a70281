"""The steps of the disks of a world: each change of a file, and each sync; and those who wait for one of them.

Some defects show only if a node loses its power between two certain steps: a vote is sent before it is synced, or a rename is
not durable. `labrys crash` visits every step of a run. So the disks number their steps, and a fault can begin at one of them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_MS
from harness.world import DiskSteps

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from harness.world import DiskStep

ANY: Final = "any"
HELD_NS: Final = 5 * NS_PER_MS  # how long a node stands still, so that the fault is on before the next step


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
        if step.node not in self._nodes or self._call not in {ANY, step.call} or not self._fits(step.file):
            return False
        seen = self._seen[step.node] = self._seen.get(step.node, 0) + 1
        return seen == self._nth

    def _fits(self, file: str) -> bool:
        return fnmatchcase(file, self._pattern) or fnmatchcase(file, f"*/{self._pattern}")


class Steps:
    """The steps of the disks of one run."""

    def __init__(self, fulfil: Callable[[asyncio.Future[DiskStep], DiskStep], None]) -> None:
        """Makes it.

        Args:
            fulfil: Gives a future its result, and wakes the loop.
        """
        self._noted: list[DiskStep] = []
        self._first_wait: tuple[int, int] | None = None  # the number of steps before it, and its time
        self._fulfil = fulfil
        self._waiting: dict[asyncio.Future[DiskStep], _Waiting] = {}

    def __len__(self) -> int:
        """Returns the number of steps so far."""
        return len(self._noted)

    def so_far(self) -> DiskSteps:
        """Returns the steps so far."""
        before, waited_ns = self._first_wait or (len(self._noted), 0)
        return DiskSteps(noted=tuple(self._noted), before=before, waited_ns=waited_ns)

    def take(self, step: DiskStep) -> bool:
        """Notes a step. Returns whether somebody waited for it, so that the node stands still."""
        self._noted.append(step)
        taken = [future for future, waiting in self._waiting.items() if waiting.takes(step) and not future.done()]
        for future in taken:
            self._fulfil(future, step)
        return bool(taken)

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
            self._first_wait = len(self._noted), now_ns
        self._waiting[future] = _Waiting(nodes, call, pattern, nth)
        try:
            return await future
        finally:
            del self._waiting[future]
