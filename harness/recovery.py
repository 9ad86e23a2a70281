"""The wait for recovery after healing.

The wait is bounded and does not abort a run. It is a finding if a system works again only after a restart of its nodes, or not
at all. `Recovery` records this, and a part of the verdict judges it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness import readiness
from harness.errors import LabrysError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    first_error = await _ready(system, nodes, timeout_s)
    if first_error is None:
        return Recovery(seconds=clock.now_s() - start_s, restarted=False, first_error=None, error=None, from_s=start_s)
    restarted_s = clock.now_s()

    def restart(node: Node) -> None:
        system.kill(node)
        system.start(node)

    try:
        await readiness.on_each(system, nodes, restart)
        error = await _ready(system, nodes, timeout_s)
    except LabrysError as failed:
        error = str(failed)
    return Recovery(
        seconds=clock.now_s() - start_s,
        restarted=True,
        first_error=first_error,
        error=error,
        from_s=start_s,
        restarted_s=restarted_s,
    )


async def _ready(system: System, nodes: Sequence[Node], timeout_s: float) -> str | None:
    try:
        await readiness.until_ready(system, nodes, timeout_s)
    except LabrysError as error:
        return str(error)
    return None
