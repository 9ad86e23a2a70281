"""The wait for recovery after healing.

The wait is bounded and does not abort a run. A system that works again only after its nodes were restarted, or not at all, is
a finding, recorded as `Recovery` and judged as a part of the verdict.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.cluster import on_all
from harness.errors import LabrysError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.clock import Clock
    from harness.node import Node
    from harness.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How the system came back after everything was healed.

    Attributes:
        seconds: From healing until it worked, or until the last wait gave up.
        restarted: Whether every node had to be restarted, because the first wait ended without success.
        first_error: What was missing at the end of the first wait; None if it succeeded.
        error: What was missing at the end of the last wait; None if the system works.
    """

    seconds: float
    restarted: bool
    first_error: str | None
    error: str | None


async def recover(system: System, nodes: Sequence[Node], *, timeout_s: float, clock: Clock) -> Recovery:
    """Waits until the system works; if it does not in time, restarts every node and waits once more."""
    start_s = clock.now_s()
    first_error = await _ready(system, nodes, timeout_s)
    if first_error is None:
        return Recovery(seconds=clock.now_s() - start_s, restarted=False, first_error=None, error=None)

    def restart(node: Node) -> None:
        system.kill(node)
        system.start(node)

    try:
        await asyncio.to_thread(on_all, nodes, restart)
        error = await _ready(system, nodes, timeout_s)
    except LabrysError as failed:
        error = str(failed)
    return Recovery(seconds=clock.now_s() - start_s, restarted=True, first_error=first_error, error=error)


async def _ready(system: System, nodes: Sequence[Node], timeout_s: float) -> str | None:
    try:
        await system.until_ready(nodes, timeout_s)
    except LabrysError as error:
        return str(error)
    return None
