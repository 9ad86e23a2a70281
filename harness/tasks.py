"""Ends tasks of foreign code, which may ignore their cancellation.

The code of a system, of a client or of a fault is foreign. `asyncio.wait_for`, `asyncio.gather` and the end of `asyncio.run`
wait for a cancelled task without a limit. So whoever awaits foreign code does so by `asyncio.wait`, and then ends its tasks by
this module.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import CoroutineType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection


async def ended(tasks: Collection[asyncio.Task[Any]], grace_s: float) -> None:
    """Waits until tasks end, which the caller has cancelled, and closes those that still run after `grace_s`."""
    running = [task for task in tasks if not task.done()]
    if running:
        await asyncio.wait(running, timeout=grace_s)
    for task in running:
        if not task.done():
            _close(task)


def _close(task: asyncio.Task[Any]) -> None:
    """Ends a task that ignored its cancellation, so that the end of the event loop does not wait for it."""
    coroutine = task.get_coro()
    if isinstance(coroutine, CoroutineType):
        # A coroutine that ignores even this raises a RuntimeError, and nothing more can be done.
        with contextlib.suppress(RuntimeError):
            coroutine.close()
