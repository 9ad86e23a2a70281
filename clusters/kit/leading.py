"""Moves the leadership to a chosen node, on libraries that have a request for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clusters.kit.waiting import POLL_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.service import NodeStatus

TRANSFER_TIMEOUT_S = 10.0


async def move_leadership(
    to: str,
    timeout_s: float,
    *,
    serving: Callable[[], Awaitable[NodeStatus | None]],
    transfer: Callable[[NodeStatus, float], Awaitable[object]],
) -> bool:
    """Moves the leadership to a node, and tries again until the time is up. Returns whether the node leads and serves.

    A transfer often fails. The old leader then wins an election in a later term.

    Args:
        to: The name of the node.
        timeout_s: The time limit in seconds.
        serving: Returns the leader that serves; None if there is none.
        transfer: Requests that a leader transfers its leadership; the second argument is the time limit in seconds.
    """
    loop = asyncio.get_running_loop()  # virtual time in the simulator
    deadline_s = loop.time() + timeout_s
    while loop.time() < deadline_s:
        leader = await serving()
        if leader is not None and leader.node == to:
            return True
        if leader is not None:
            await transfer(leader, min(TRANSFER_TIMEOUT_S, deadline_s - loop.time()))
        await asyncio.sleep(POLL_S)
    return False
