"""A core for each run whose nodes are programs beside this process: they take turns, so one core is enough.

The kernel wakes a thread on an idle core. So the turns would move between the cores, which takes longer than many turns
themselves; `python -m benchmarks simjvm --free` shows it. A run takes a core that no other run of this user has. If it cannot
lock one, the kernel chooses: the run is the same, and slower.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.cache import cache

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
        self._lock: int | None = None
        folder = cache() / FOLDER
        for core in self._candidates():
            try:
                folder.mkdir(exist_ok=True)
                self._take(core, folder / str(core))
            except OSError:  # another run has it, or another user made the file
                continue
            break

    def _candidates(self) -> Sequence[int]:
        """Returns the cores that the thread may use, the present one first; none if it has no choice."""
        if len(self._before) == 1:
            return ()
        state = Path("/proc/thread-self/stat").read_text(encoding="utf-8", errors="replace")
        here = int(state.rpartition(")")[2].split()[_CORE_FIELD])
        return sorted(self._before, key=lambda core: (core != here, core))

    def _take(self, core: int, path: Path) -> None:
        """Locks the file of a core, and moves the thread there.

        Raises:
            OSError: One of both failed.
        """
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.sched_setaffinity(0, {core})
        except OSError:
            os.close(lock)
            raise
        self._lock = lock

    def free(self) -> None:
        """Frees the core. The thread can use all cores of before."""
        if self._lock is not None:
            os.sched_setaffinity(0, self._before)
            os.close(self._lock)
            self._lock = None
