"""The wait for recovery after healing.

The wait is bounded and does not abort a run. It is a finding if a system works again only after a restart of its nodes, or not
at all. `Recovery` records this, and a part of the verdict judges it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness import readiness
from harness.cluster import on_all
from harness.errors import LabrysError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from harness.clock import Clock
    from harness.node import Node
    from harness.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The recovery of the system after healing.

    Attributes:
        seconds: The time from healing until the system worked, or until the end of the last wait.
        restarted: Whether all nodes were restarted, because the system did not work at the end of the first wait.
        first_error: The error at the end of the first wait; None if the system worked.
        error: The error at the end of the last wait; None if the system worked.
        from_s: The start of the first wait on the run's clock; None if it was not measured.
        restarted_s: The time of the restart on the run's clock; None if there was none.
    """

    seconds: float
    restarted: bool
    first_error: str | None
    error: str | None
    from_s: float | None = None
    restarted_s: float | None = None


async def recover(system: System, nodes: Sequence[Node], *, timeout_s: float, clock: Clock) -> Recovery:
    """Waits until the system works. After the time limit, restarts all nodes and waits once more."""
    start_s = clock.now_s()
    first_error = await _error(readiness.until_ready(system, timeout_s))
    if first_error is None:
        return Recovery(seconds=clock.now_s() - start_s, restarted=False, first_error=None, error=None, from_s=start_s)
    restarted_s = clock.now_s()

    async def restart() -> None:
        await readiness.explained(system, nodes, asyncio.to_thread(on_all, nodes, system.kill))
        await readiness.bring_up(system, timeout_s, first=False)

    error = await _error(restart())
    return Recovery(
        seconds=clock.now_s() - start_s,
        restarted=True,
        first_error=first_error,
        error=error,
        from_s=start_s,
        restarted_s=restarted_s,
    )


async def _error(attempt: Awaitable[None]) -> str | None:
    try:
        await attempt
    except LabrysError as error:
        return str(error)
    return None
