"""Measures whether the control node kept up: the delay of its event loop, and the processor time that its hypervisor took.

If the control node stands still during a deadline, the deadline does not count against the system (docs/decisions/0012).
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
MIN_TICKS = 500  # hundredths of a second of one processor; less is too short to measure
STAT = Path("/proc/stat")
STEAL_COLUMN = 7  # user nice system idle iowait irq softirq steal, proc(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The measurements of the control node in a stage of the run.

    Attributes:
        seconds: The duration of the stage.
        worst_lag_s: The largest delay of a timer of the event loop.
        late_s: The sum of the delays of all timers.
        steal_share: The share of processor time that the hypervisor took, from 0 to 1; None if it is unknown.
    """

    seconds: float
    worst_lag_s: float
    late_s: float
    steal_share: float | None

    @property
    def behind(self) -> str | None:
        """Returns why the timing of the stage does not count for the system; None if the control node kept up."""
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
        stages: The measurements by the name of the stage.
    """

    def __init__(self, ticks: Callable[[], tuple[int, int] | None] | None = None) -> None:
        """Makes a pacer.

        Args:
            ticks: Returns the processor time of this machine so far and the stolen part of it; None if it is unknown.
        """
        self.stages: dict[str, Pace] = {}
        self._ticks = ticks or processor_ticks

    @contextlib.contextmanager
    def stage(self, name: str, clock: Clock) -> Iterator[None]:
        """Measures the stage that runs in the context, inside the running loop."""
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
    """Returns the processor time of this machine since its start and the stolen part, in hundredths of a second."""
    try:
        with STAT.open(encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1 : STEAL_COLUMN + 2]]
        return sum(ticks), ticks[STEAL_COLUMN]
    except (OSError, ValueError, IndexError):
        return None


def _steal(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None or after[0] - before[0] < MIN_TICKS:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])
