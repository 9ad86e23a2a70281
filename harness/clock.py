"""The one source of time: a monotonic clock, real or virtual.

Everything that waits or takes a timestamp does so through the running asyncio loop, whose `time()` is the clock. A real
run uses the ordinary loop (CLOCK_MONOTONIC, so a wall clock that jumps on the control node changes nothing). A test uses
`VirtualLoop`, in which time stands still while anything can run and then jumps to the next timer: hours of schedule pass
in milliseconds, and two runs give the same interleaving.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

SIGNAL_TURNS = 64  # a virtual loop looks for signals once in so many turns: a look takes as long as much of a turn


class Clock:
    """Nanoseconds since the clock was made, on the running loop's monotonic time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._origin_s = loop.time()

    def now_ns(self) -> int:
        """Returns the nanoseconds since this clock was made."""
        return int((self._loop.time() - self._origin_s) * NS_PER_S)

    def now_s(self) -> float:
        """Returns the seconds since this clock was made."""
        return self._loop.time() - self._origin_s

    async def sleep_until_s(self, at_s: float) -> None:
        """Waits until `now_s()` is at least `at_s`; returns at once if it already is."""
        delay_s = at_s - self.now_s()
        if delay_s > 0:
            await asyncio.sleep(delay_s)


class Events(Protocol):
    """What happens in virtual time beside the tasks of a loop, such as a simulated network."""

    def pass_until(self, deadline_s: float | None) -> float | None:
        """Lets events happen, in the order of their times, until one has given the loop something to do.

        Args:
            deadline_s: The last time that may be reached; None: there is no timer, so only an event can wake the loop.

        Returns:
            The time that was reached, at most `deadline_s`; None if there was no deadline and nothing woke the loop.
        """
        ...


class _JumpingSelector(selectors.SelectSelector):
    """A selector that never waits: where it would, it moves the loop's time on by as much, or until an event wakes it."""

    def __init__(self, events: Events | None) -> None:
        super().__init__()
        self.now_s = 0.0
        self._events = events
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        self._turns += 1
        if self._turns % SIGNAL_TURNS == 0 and (ready := super().select(0)):
            return ready
        if timeout is not None and timeout <= 0:
            return []
        reached_s = None if timeout is None else self.now_s + max(timeout, 0.0)
        if self._events is not None:
            reached_s = self._events.pass_until(reached_s)
        if reached_s is None:
            if ready := super().select(0):
                return ready
            raise RuntimeError("virtual time stands still: every task waits for something that no timer will bring")
        self.now_s = max(self.now_s, reached_s)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer whenever nothing can run. No sockets, and no threads."""

    def __init__(self, events: Events | None = None) -> None:
        self._jumping = _JumpingSelector(events)
        super().__init__(self._jumping)

    def time(self) -> float:
        """Returns the virtual time in seconds, from 0."""
        return self._jumping.now_s

    def run_in_executor(  # type: ignore[override]  # its variadic generics say the same
        self,
        executor: Any,  # noqa: ARG002 - there is none to choose
        func: Callable[..., T],
        *args: Any,
    ) -> asyncio.Future[T]:
        """Runs `func` at once, in no virtual time, so that `asyncio.to_thread` needs no thread that time would wait for."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the future
            future.set_exception(error)
        return future


def run_virtual(main: Coroutine[Any, Any, T], events: Events | None = None) -> T:
    """Runs `main` to its end in virtual time and returns its result.

    Args:
        main: What is run.
        events: What else happens in that time.
    """
    loop = VirtualLoop(events)
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


def in_virtual_time() -> bool:
    """Says whether the caller runs in a `VirtualLoop`; also from within what its `run_in_executor` carries out."""
    try:
        return isinstance(asyncio.get_running_loop(), VirtualLoop)
    except RuntimeError:
        return False
