"""A core for each run whose nodes are programs beside this process: they take turns, so one core is enough.

The kernel wakes a thread on an idle core. So the turns would move between the cores, which takes longer than many turns
themselves; `python -m benchmarks simjvm --free` shows it. A run takes a core that no other run of this user has. If there is
none, the kernel chooses.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.cache import cache

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER: Final = "cores"  # in the cache; a run locks the file with the number of its core
_CORE_FIELD: Final = 36  # the core of a thread in /proc/PID/stat: the 37th field after the name, see proc(5)


class Core:
    """A core for the calling thread, and for the programs and threads that it starts."""

    def __init__(self) -> None:
        """Takes a core, if one is free.

        Raises:
            InfrastructureError: The folder of the locks cannot be made.
        """
        self._before = os.sched_getaffinity(0)
        self._lock: int | None = None
        for core, path in self._candidates():
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            self._lock = lock
            os.sched_setaffinity(0, {core})
            break

    def _candidates(self) -> Iterator[tuple[int, Path]]:
        """Yields the cores that the thread may use, the present one first, with the files of their locks."""
        if len(self._before) == 1:
            return
        state = Path("/proc/thread-self/stat").read_text(encoding="utf-8", errors="replace")
        here = int(state.rpartition(")")[2].split()[_CORE_FIELD])
        folder = cache() / FOLDER
        folder.mkdir(exist_ok=True)
        for core in sorted(self._before, key=lambda each: (each != here, each)):
            yield core, folder / str(core)

    def free(self) -> None:
        """Frees the core. The thread can use all cores of before."""
        if self._lock is not None:
            os.sched_setaffinity(0, self._before)
            os.close(self._lock)
            self._lock = None
