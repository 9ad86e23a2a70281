"""The maximum resident memory of a process and its descendants."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

PERIOD_S = 0.2
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Memory:
    """Samples the resident memory of this process's descendants, and of itself.

    Attributes:
        peak: The maximum in bytes.
    """

    def __init__(self, *, own: bool = True) -> None:
        """Starts without a sample; `own` is whether this process counts too."""
        self.peak = 0
        self._own = own
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(PERIOD_S):
            self.peak = max(self.peak, _resident(own=self._own))


def _resident(*, own: bool) -> int:
    parents, sizes = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                after = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has ended
            parents[int(folder.name)] = int(after[1])
            sizes[int(folder.name)] = int(after[21]) * _PAGE
    ours, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours |= more
        grown = bool(more)
    return sum(sizes.get(pid, 0) for pid in ours if own or pid != os.getpid())
