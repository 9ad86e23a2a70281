"""Where the threads of simulated programs stop, besides where they block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREEMPT: Final = 0.02  # of the runs that have no option
PAGE_FAULTS: Final = 0.0
STALLS: Final = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """How often threads stop; see `io.labrys.simjvm.run.Scheduler` and `Stalls` for Java, and `linux/controller` for programs.

    Attributes:
        preempt: The probability with which another thread runs first: in Java at a lock, an unpark or the start of a thread; in
            programs at a system call.
        page_faults: The probability with which a write into a mapped file takes time, as if its page is not in memory.
        stalls: The mean number of times in a virtual second that a thread stalls: in Java at an access of a field, in programs
            at a system call. In Java, threads then have priorities, and `preempt` has no effect.
        trace_all: Of programs: whether every system call stops its thread and is in the digest of the run.
        all_stop: Of programs: whether those calls stop, too, that a program could answer itself. It has no effect on what they
            do.
    """

    preempt: float = PREEMPT
    page_faults: float = PAGE_FAULTS
    stalls: float = STALLS
    trace_all: bool = False
    all_stop: bool = False
