"""A core for each run whose nodes are programs beside this process: they take turns, so one core is enough.

The kernel wakes a thread on an idle core. So the turns would move between the cores, which costs time; `python -m benchmarks
simjvm --free` measures it. A run takes a core that no other run of this user has. If it cannot lock one, the kernel chooses the
cores, and the run is the same.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.cache import cache, locked
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER: Final = "cores"  # in the cache; a run locks the file with the number of its core
_CORE_FIELD: Final = 36  # the core of a thread in /proc/PID/stat: the 37th field after the name, see proc(5)


class Core:
    """A core for the calling thread, and for the programs and threads that it starts."""

    def __init__(self) -> None:
        """Takes a core, if one is free.

        Raises:
            InfrastructureError: The cache cannot be made.
        """
        self._before = os.sched_getaffinity(0)
        self._lock = contextlib.ExitStack()
        folder = cache() / FOLDER
        for core in self._candidates():
            try:
                folder.mkdir(exist_ok=True)
                with contextlib.ExitStack() as stack:
                    stack.enter_context(locked(folder / str(core), timeout_s=0.0))
                    os.sched_setaffinity(0, {core})
                    self._lock = stack.pop_all()
            except (OSError, InfrastructureError):  # another user made the file, or another run has the core
                continue
            break

    def _candidates(self) -> Sequence[int]:
        """Returns the cores that the thread may use, the present one first; none if it has no choice."""
        if len(self._before) == 1:
            return ()
        state = Path("/proc/thread-self/stat").read_text(encoding="utf-8", errors="replace")
        here = int(state.rpartition(")")[2].split()[_CORE_FIELD])
        return sorted(self._before, key=lambda core: (core != here, core))

    def free(self) -> None:
        """Frees the core. The thread can use all cores of before."""
        os.sched_setaffinity(0, self._before)
        self._lock.close()
