"""The factor for slow nodes: it multiplies every time limit for a node that has no option of its own.

Such limits hold for commands over SSH, probes, reports of the status, and the start and the end of a fault. They fit machines
of normal speed. An emulated virtual machine is about eight times slower, so none of its answers would arrive within 0.7 s.
Options such as `--operation-timeout` keep the value that the user gave.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NORMAL = 1.0
_factors = [NORMAL]  # the last one holds; a command sets it once, before its threads start


def slowed(seconds: float) -> float:
    """Returns a time limit in seconds, multiplied by the factor that holds now."""
    return seconds * _factors[-1]


@contextlib.contextmanager
def nodes_slower_by(factor: float) -> Iterator[None]:
    """Sets the factor for the time of the context, in all threads of the process."""
    _factors.append(factor)
    try:
        yield
    finally:
        _factors.pop()
