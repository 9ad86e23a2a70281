"""The phases of a run with their times: where a run spends the time beside its workload.

Phases can overlap, so their sum is not the duration of the run. The times are those of this machine, also for a simulated run.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.console.members import Duration  # noqa: TC001 - members are read by their annotations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

logger = logging.getLogger(__name__)

BUILD: Final = "build"
CLUSTER: Final = "cluster"
INSTALL: Final = "install"
START: Final = "start"
WORKLOAD: Final = "workload"
HEAL: Final = "heal"
RECOVER: Final = "recover"
FINAL_READS: Final = "final reads"
COMPARE: Final = "compare replicas"
LOGS: Final = "collect logs"
STOP: Final = "stop"
JUDGE: Final = "judge"
DRAW: Final = "draw"
WRITE_HISTORY: Final = "write history"
WRITE: Final = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase that is over; `results.json` has its members.

    Attributes:
        name: Its name, such as `start`, `final reads` or `write`.
        node: The node that it was about; None if it was about all.
        start_s: Its start, in seconds from the beginning of the first phase.
        end_s: Its end, likewise.
    """

    name: str
    node: str | None = None
    start_s: Duration
    end_s: Duration

    def __post_init__(self) -> None:
        """Checks that it ends after its start."""
        if self.end_s < self.start_s:
            raise ValueError(f"expected an end after the start, found {self.start_s:g} s to {self.end_s:g} s")

    @property
    def seconds(self) -> float:
        """Returns its duration."""
        return self.end_s - self.start_s


class Phases:
    """Measures the phases of a run.

    Attributes:
        done: The phases that are over, in the order of their ends.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """Makes a measurement that begins now.

        Args:
            now_s: The clock.
        """
        self.done: list[Phase] = []
        self._now_s = now_s
        self._origin_s = now_s()

    def now_s(self) -> float:
        """Returns the seconds since the beginning."""
        return self._now_s() - self._origin_s

    @contextlib.contextmanager
    def during(self, name: str, node: str | None = None) -> Iterator[None]:
        """Measures a phase: the time in the context. It counts also if an error ends it."""
        start_s = self.now_s()
        try:
            yield
        finally:
            phase = Phase(name=name, start_s=start_s, end_s=self.now_s(), node=node)
            self.done.append(phase)
            through = "" if node is None else f" through {node}"
            logger.info("phase %s%s took %.2f s", name, through, phase.seconds)


def beside_workload_s(phases: Iterable[Phase]) -> float | None:
    """Returns the time from the first to the last phase without the workload; None if there is no phase."""
    all_of_them = list(phases)
    if not all_of_them:
        return None
    whole_s = max(phase.end_s for phase in all_of_them) - min(phase.start_s for phase in all_of_them)
    return whole_s - sum(phase.seconds for phase in all_of_them if phase.name == WORKLOAD)
