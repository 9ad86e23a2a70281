"""The way to move a leadership to a node of choice, on each library that has a request for it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from clusters.systems.waiting import POLL_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.system import NodeStatus

TRANSFER_TIMEOUT_S = 10.0


async def move_leadership(
    to: str,
    timeout_s: float,
    *,
    serving: Callable[[], Awaitable[NodeStatus | None]],
    transfer: Callable[[NodeStatus, float], Awaitable[object]],
) -> bool:
    """Moves the leadership to a node, with as many tries as the time allows, and returns whether it serves there.

    A transfer of DLedger often fails, and the old leader is then elected again in a later term.

    Args:
        to: The name of the node.
        timeout_s: For how long to try.
        serving: Returns who leads and serves; None if nobody does.
        transfer: Asks a leader to hand over its leadership, in so many seconds at most.
    """
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        leader = await serving()
        if leader is not None and leader.node == to:
            return True
        if leader is not None:
            await transfer(leader, min(TRANSFER_TIMEOUT_S, deadline_s - time.monotonic()))
        await asyncio.sleep(POLL_S)
    return False
