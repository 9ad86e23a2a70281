"""Ends tasks of foreign code, which may ignore their cancellation.

The code of a system, of a client or of a fault is foreign. `asyncio.wait_for`, `asyncio.gather` and the end of `asyncio.run`
wait for a cancelled task without a limit. So whoever awaits foreign code does so by `asyncio.wait`, and then ends its tasks by
this module.
"""

from __future__ import annotations

import asyncio
import logging
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.blame import without_exit
from harness.errors import InfrastructureError, described
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable

T = TypeVar("T")

logger = logging.getLogger(__name__)

GRACE_S: Final = 1.0
MARGIN_S: Final = 10.0  # for a method that checks its time limit now and then


async def answers(called: str, asked: Iterable[Awaitable[T]], limit_s: float) -> list[T]:
    """Awaits a method of foreign code for several nodes at once, and ends it soon after the time limit that it was given.

    Args:
        called: The method in messages, e.g. `until_ready of the system my-store`.
        asked: The calls, at least one.
        limit_s: The time limit that each was given, in seconds.

    Returns:
        What each returned, in order.

    Raises:
        InfrastructureError: One did not end by itself.
        Exception: What the first one that failed raised.
    """
    tasks = [asyncio.ensure_future(without_exit(awaitable)) for awaitable in asked]
    try:
        done, late = await asyncio.wait(tasks, timeout=limit_s + slowed(MARGIN_S), return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()  # has no effect on one that is done
        await ended(tasks, GRACE_S)
    failed = [error for task in tasks if task in done and not task.cancelled() and (error := task.exception())]
    if failed:
        for other in failed[1:]:
            failed[0].add_note(f"also: {described(other)}")
        raise failed[0]
    if late:
        raise InfrastructureError(f"{called} did not end within its time limit of {limit_s:g} s")
    return [task.result() for task in tasks]


async def ended(tasks: Collection[asyncio.Task[Any]], grace_s: float) -> None:
    """Waits until tasks end, which the caller has cancelled, and closes those that still run after `grace_s`.

    What a task raises after its cancellation is a line of the log: nobody waits for its result any more. Without this, asyncio
    prints a traceback when it forgets the task. The caller reports the exceptions of tasks that are done.
    """
    running = [task for task in tasks if not task.done()]
    if running:
        await asyncio.wait(running, timeout=grace_s)
    deaf = [task for task in running if not task.done()]
    for task in deaf:
        _close(task)
    for task in tasks:
        if not task.done():
            task.add_done_callback(_retrieve)
        elif (error := _retrieve(task)) is not None and task in running and task not in deaf:
            logger.info("a task that was cancelled ended with %s", described(error))


def _retrieve(task: asyncio.Task[Any]) -> BaseException | None:
    """Returns the exception of a task that is done; asyncio then knows that somebody has seen it."""
    return None if task.cancelled() else task.exception()


def _close(task: asyncio.Task[Any]) -> None:
    """Ends a task that ignored its cancellation, so that the end of the event loop does not wait for it."""
    coroutine = task.get_coro()
    if isinstance(coroutine, CoroutineType):
        try:
            # A coroutine that ignores even this raises a RuntimeError, and nothing more can be done. So does `without_exit`.
            coroutine.close()
        except KeyboardInterrupt:
            raise
        except RuntimeError:
            pass
        except BaseException as error:  # noqa: BLE001 - it is foreign code
            logger.info("a task that was closed ended with %s", described(error))
        task.cancel()  # it sees its end after the caller has seen that it did not end by itself
