"""What tests on real nodes install.

A test must get it before it enters the network of the nodes, which leads nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Callable

NETWORK: Final = Path("/proc/thread-self/ns/net")
OUTSIDE: Final = NETWORK.readlink()


def obtained(name: str, get: Callable[[], object]) -> None:
    """Gets the software of a system. If it cannot be had, the test is skipped by the name of the system.

    The test fails if an earlier fixture has left the process in the network of nodes, where nothing can be had.

    Args:
        name: The name of the system.
        get: Gets it from the cache, or builds or downloads it.
    """
    assert NETWORK.readlink() == OUTSIDE, f"expected the network in which the tests began, to get {name}"
    try:
        get()
    except InfrastructureError as error:
        pytest.skip(f"{name} cannot be had: {error}")
