"""How much memory is free on this machine, and whether this process has taken too much of it.

Without this, the kernel of the operating system kills a process that takes too much, and nothing says why.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

from harness.errors import InfrastructureError

_FREE: Final = Path("/proc/meminfo")
_OWN: Final = Path("/proc/self/statm")
_LOOK_BYTES: Final = 16 << 20
_SHARE: Final = 0.75  # of the free memory, that reading may take; the rest is for what follows


def free_bytes() -> int | None:
    """Returns the memory that this process can still take; None if it is unknown."""
    try:
        lines = dict(line.split(":", 1) for line in _FREE.read_text(encoding="ascii").splitlines())
        free = int(lines["MemAvailable"].split()[0]) << 10
        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        return free if most == resource.RLIM_INFINITY else min(free, max(0, most - _pages(0)))
    except (OSError, ValueError, LookupError):
        return None


def _pages(field: int) -> int:
    """Returns the bytes of this process: its whole size at place 0, what is in memory at 1, and what of it is shared at 2."""
    return int(_OWN.read_text(encoding="ascii").split()[field]) * os.sysconf("SC_PAGE_SIZE")


class Room:
    """The memory for one source.

    The process may take a share of what was free at the beginning.
    """

    def __init__(self, name: str) -> None:
        """Begins with nothing taken.

        Args:
            name: The name of the source, for the error.
        """
        self._name = name
        self._read = self._looked = 0
        self._free = free_bytes()
        self._before = 0 if self._free is None else _pages(1) - _pages(2)

    def count(self, size: int) -> None:
        """Counts bytes that were read.

        Raises:
            InfrastructureError: The process has taken too much memory since the beginning.
        """
        self._read += size
        if self._free is None or self._read < self._looked + _LOOK_BYTES:
            return
        self._looked = self._read
        taken = _pages(1) - _pages(2) - self._before
        if taken > self._free * _SHARE:
            raise self._error(f"the first {self._read >> 20} MiB of it took {taken >> 20} MiB")

    def hold(self, size: int, what: str) -> None:
        """Refuses a step that takes so many bytes, if they are not free.

        Raises:
            InfrastructureError: They are not.
        """
        if self._free is not None and size > self._free * _SHARE:
            raise self._error(f"{what} takes about {size >> 20} MiB")

    def _error(self, why: str) -> InfrastructureError:
        free = 0 if self._free is None else self._free >> 20
        return InfrastructureError(
            f"{self._name}: the memory does not suffice: {why}, and {free} MiB were free at the beginning. Give this process "
            "more memory, or decide the history in parts: `labrys analyze --spark` (docs/reference/spark.md)"
        )
