"""Where the threads of simulated programs in Java stop, besides where they block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREEMPT: Final = 0.02  # of the runs that have no option
PAGE_FAULTS: Final = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """The probabilities with which threads stop; `io.labrys.simjvm.run.Scheduler` explains them.

    Attributes:
        preempt: At a lock, an unpark or the start of a thread, another thread runs first.
        page_faults: A write into a mapped file takes time before it, as if its page is not in memory.
    """

    preempt: float = PREEMPT
    page_faults: float = PAGE_FAULTS
