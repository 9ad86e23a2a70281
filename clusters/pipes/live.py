"""The world of programs in real time: the network, the links and the faults of the simulator on an ordinary event loop.

An event of the world is a timer of the loop. So `clusters.sim` has the one network, whatever the time is.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clusters.sim.world import MAX_EVENTS, SimWorld
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

T = TypeVar("T")

CALL_LIMIT_S: Final = 30.0


class LiveWorld(SimWorld):
    """A world in real time; see `clusters.sim.world.SimWorld`. All its events happen in the thread of its loop."""

    real_time = True

    def __init__(self, names: Sequence[str], seed: int) -> None:
        super().__init__(names, seed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None
        self._began_s = 0.0
        self._due = 0

    @property
    def now_ns(self) -> int:  # type: ignore[override]  # a world in virtual time sets it
        """Returns the time since the beginning of the run."""
        return 0 if self._loop is None else int((self._loop.time() - self._began_s) * NS_PER_S)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs `main` to its end in real time."""

        async def within() -> T:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
            self._began_s = self._loop.time()
            return await main

        return asyncio.run(within())

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Returns the loop of the run."""
        if self._loop is None:
            raise RuntimeError("the run of this world has not begun")
        return self._loop

    def later(self, delay_ns: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Calls a function with arguments after a delay in nanoseconds.

        If too many events wait, all processes die, as in virtual time.
        """
        self._due += 1
        if self._due > MAX_EVENTS:
            self._due = 0  # the processes die once; their messages still arrive
            self.end_processes()
        self.loop.call_later(delay_ns / NS_PER_S, self._fire, action, arguments)

    def _fire(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._due = max(0, self._due - 1)
        action(*arguments)

    def inside(self, action: Callable[[], T]) -> T:
        """Calls a function in the thread of the loop, and waits for its result. Faults and starts come from other threads."""
        if threading.get_ident() == self._thread:
            return action()
        done: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            try:
                done.set_result(action())
            except BaseException as error:  # noqa: BLE001 - the caller in the other thread gets it
                done.set_exception(error)

        self.loop.call_soon_threadsafe(call)
        return done.result(CALL_LIMIT_S)
