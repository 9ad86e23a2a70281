"""Whether the control node kept up: how late its event loop was, and how much processor time its hypervisor took away.

A deadline that passes while the control node stands still says nothing about the system. docs/decisions/0012 has the rule.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.clock import Clock

WORKLOAD, RECOVERY = "workload", "recovery"
TICK_S = 0.25
MAX_LAG_S = 2.0
MAX_LATE_SHARE = 0.2
MAX_STEAL_SHARE = 0.3
LEAST_TICKS = 500  # of a hundredth of a second of one processor; less says nothing
STAT = Path("/proc/stat")
STEAL_COLUMN = 7  # user nice system idle iowait irq softirq steal, proc(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the control node went through a stage of the run.

    Attributes:
        seconds: How long the stage took.
        worst_lag_s: The most that a timer of the event loop was late.
        late_s: The seconds that its timers were late, all together.
        steal_share: The share of processor time that the hypervisor took away, from 0 to 1; None if it is not known.
    """

    seconds: float
    worst_lag_s: float
    late_s: float
    steal_share: float | None

    @property
    def behind(self) -> str | None:
        """Returns why nothing that hangs on timing can be concluded from the stage; None if the control node kept up."""
        if self.worst_lag_s >= MAX_LAG_S:
            return f"its event loop stood still for {self.worst_lag_s:.1f} s"
        if self.late_s > MAX_LATE_SHARE * self.seconds:
            return f"its event loop was late by {self.late_s:.1f} s in {self.seconds:.1f} s"
        if self.steal_share is not None and self.steal_share >= MAX_STEAL_SHARE:
            return f"the hypervisor took {self.steal_share:.0%} of its processor time"
        return None


class Pacer:
    """Measures stages of a run.

    Attributes:
        stages: What was measured, by the name of the stage.
    """

    def __init__(self, ticks: Callable[[], tuple[int, int] | None] | None = None) -> None:
        """Makes a pacer.

        Args:
            ticks: Returns the processor time of this machine until now and the stolen part of it; None if it is not known.
        """
        self.stages: dict[str, Pace] = {}
        self._ticks = ticks or processor_ticks

    @contextlib.contextmanager
    def stage(self, name: str, clock: Clock) -> Iterator[None]:
        """Measures what happens in the context, which has to be inside the running loop."""
        lags: list[float] = []
        before, began_s = self._ticks(), clock.now_s()
        task = asyncio.create_task(_tick(clock, lags))
        try:
            yield
        finally:
            task.cancel()
            self.stages[name] = Pace(
                seconds=clock.now_s() - began_s,
                worst_lag_s=max(lags, default=0.0),
                late_s=sum(lags),
                steal_share=_steal(before, self._ticks()),
            )


async def _tick(clock: Clock, lags: list[float]) -> None:
    while True:
        due_s = clock.now_s() + TICK_S
        await asyncio.sleep(TICK_S)
        lags.append(max(clock.now_s() - due_s, 0.0))


def processor_ticks() -> tuple[int, int] | None:
    """Returns the processor time of this machine since it started, and how much of it was stolen, in hundredths of a second."""
    try:
        with STAT.open(encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1 : STEAL_COLUMN + 2]]
        return sum(ticks), ticks[STEAL_COLUMN]
    except (OSError, ValueError, IndexError):
        return None


def _steal(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None or after[0] - before[0] < LEAST_TICKS:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])
