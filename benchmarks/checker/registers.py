"""Long histories of one register with unique written values, as columns without an object per operation.

Each of ten processes runs one operation after the other. Half of all operations are writes. The generator draws the moments at
which operations take effect, and then intervals around them, so every history is linearizable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checker._kernel import Problem
from checker.models.opcodes import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

PROCESSES: Final = 10
NEVER_WRITTEN: Final = -1
_GAP: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A history as columns, in order of invocations; see `checker/kernel/src/ops.rs`.

    Attributes:
        f: Opcodes.
        a: Values.
        s: Starts.
        e: Ends.
    """

    f: npt.NDArray[np.uint8]
    a: npt.NDArray[np.int64]
    s: npt.NDArray[np.int64]
    e: npt.NDArray[np.int64]

    def problem(self) -> Problem:
        """Returns the kernel's problem of the history."""
        return Problem("register", self.f, self.a, np.zeros_like(self.a), self.s, self.e, initial=[NEVER_WRITTEN])

    def porcupine_lines(self) -> Iterator[str]:
        """Yields the history in the format of the porcupine driver."""
        for f, a, s, e in zip(self.f.tolist(), self.a.tolist(), self.s.tolist(), self.e.tolist(), strict=True):
            value = "" if a == NEVER_WRITTEN else str(a)
            yield f"0\t{s}\t{e}\twrite\t{value}\t\n" if f == WRITE else f"0\t{s}\t{e}\tread\t\t{value}\n"


def unique_writes(count: int, seed: int = 1) -> Columns:
    """Returns a valid history of `count` operations."""
    random = np.random.default_rng(seed)
    effect = np.arange(count, dtype=np.int64) * _GAP
    writes = random.random(count) < 0.5
    latest = np.maximum.accumulate(np.where(writes, np.arange(count, dtype=np.int64), NEVER_WRITTEN))
    # Operation i is process i mod 10's. It starts after the process's last one ended: each reaches at most half of the way.
    reach = _GAP * PROCESSES // 2
    starts = effect - random.integers(0, reach, count)
    ends = effect + random.integers(0, reach, count)
    order = np.argsort(starts, kind="stable")
    f = np.where(writes, WRITE, READ).astype(np.uint8)
    return Columns(f=f[order], a=latest[order], s=starts[order], e=ends[order])
