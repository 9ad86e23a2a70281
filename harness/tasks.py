"""Ends tasks of foreign code, which may ignore their cancellation.

The code of a system, of a client or of a fault is foreign. `asyncio.wait_for`, `asyncio.gather` and the end of `asyncio.run`
wait for a cancelled task without a limit. So whoever awaits foreign code does so by `asyncio.wait`, and then ends its tasks by
this module.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.blame import without_exit
from harness.errors import InfrastructureError
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable

T = TypeVar("T")

GRACE_S: Final = 1.0
MARGIN_S: Final = 10.0  # for a method that checks its time limit now and then


async def answers(called: str, asked: Iterable[Awaitable[T]], limit_s: float) -> list[T]:
    """Awaits a method of foreign code for several nodes at once, and ends it soon after the time limit that it was given.

    Args:
        called: The method in messages, e.g. `until_ready of the system etcd`.
        asked: The calls, at least one.
        limit_s: The time limit that each was given, in seconds.

    Returns:
        What each returned, in order.

    Raises:
        InfrastructureError: One did not end by itself.
        Exception: What the first one that failed raised.
    """
    tasks = [asyncio.ensure_future(without_exit(each)) for each in asked]
    try:
        done, late = await asyncio.wait(tasks, timeout=limit_s + slowed(MARGIN_S), return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()  # has no effect on one that is done
        await ended(tasks, GRACE_S)
    for task in done:
        task.result()
    if late:
        raise InfrastructureError(f"{called} did not end within its time limit of {limit_s:g} s")
    return [task.result() for task in tasks]


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
