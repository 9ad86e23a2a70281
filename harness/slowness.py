"""The factor for slow nodes. It multiplies each time limit that has no option of its own.

These are the limits of commands over SSH, of probes, of status reports, and of the start and the end of a fault. They fit
nodes of normal speed. An emulated virtual machine is about eight times slower, so its answers do not arrive within 0.7 s.
Options such as `--operation-timeout` keep the value of the user.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NORMAL = 1.0
_factors = [NORMAL]  # the last one is in use; a command sets it once, before its threads start


def slowed(seconds: float) -> float:
    """Returns a time limit in seconds, multiplied by the present factor."""
    return seconds * _factors[-1]


@contextlib.contextmanager
def nodes_slower_by(factor: float) -> Iterator[None]:
    """Sets the factor inside the context, for all threads of the process."""
    _factors.append(factor)
    try:
        yield
    finally:
        _factors.pop()
