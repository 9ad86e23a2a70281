"""What tests on real nodes install.

A test must get it before it enters the network of the nodes, which leads nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Callable


def obtained(name: str, get: Callable[[], object]) -> None:
    """Gets the software of a system. If it cannot be had, the test is skipped by the name of the system.

    Args:
        name: The name of the system.
        get: Gets it from the cache, or builds or downloads it.
    """
    try:
        get()
    except InfrastructureError as error:
        pytest.skip(f"{name} cannot be had: {error}")
