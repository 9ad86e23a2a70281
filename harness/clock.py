"""The only source of time: a monotonic clock, real or virtual.

All waits and timestamps use the `time()` of the running asyncio loop. A real run uses the ordinary loop. Its clock is
CLOCK_MONOTONIC, so a jump of the control node's wall clock has no effect. A test uses `VirtualLoop`. Its time is still while
a task can run, and then jumps to the next timer. So hours pass in milliseconds, and two runs have the same interleaving.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import signal
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

VIRTUAL_WALL_START_S = 1_700_000_000  # the wall clock of virtual time at its start
SIGNAL_TURNS = 64  # a virtual loop checks for signals once in so many turns, because a check takes long


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

    def from_monotonic_ns(self, monotonic_ns: int) -> int:
        """Returns the time of a reading of CLOCK_MONOTONIC on this clock, which must be of a real run."""
        return monotonic_ns - int(self._origin_s * NS_PER_S)

    async def sleep_until_s(self, at_s: float) -> None:
        """Waits until `now_s()` is at least `at_s`; returns at once if it already is."""
        delay_s = at_s - self.now_s()
        if delay_s > 0:
            await asyncio.sleep(delay_s)


class Events(Protocol):
    """Events in virtual time beside the tasks of a loop, such as those of a simulated network."""

    def pass_until(self, deadline_s: float | None) -> float | None:
        """Carries out events, in the order of their times, until one wakes the loop.

        Args:
            deadline_s: The time of the next timer; None if there is none, so that only an event can wake the loop.

        Returns:
            The new time, at most `deadline_s`; None if there was no deadline and nothing woke the loop.
        """
        ...


class StandsStill(RuntimeError):  # noqa: N818 - the state
    """Every task waits, and no timer can wake one."""


class _JumpingSelector(selectors.SelectSelector):
    """A selector that never waits. Instead, it advances the loop's time to the next timer or to the next event."""

    def __init__(self, events: Events | None) -> None:
        super().__init__()
        self.now_s = 0.0
        self.looks = False  # whether there is a signal to handle
        self._events = events
        self._turns = 0

    def without_events(self) -> None:
        """From now on, only timers pass the time."""
        self._events = None

    def select(self, timeout: float | None = None) -> list[Any]:
        self._turns += 1
        if (self.looks or self._turns % SIGNAL_TURNS == 0) and (ready := super().select(0)):
            self.looks = False
            return ready
        if timeout is not None and timeout <= 0:
            return []
        reached_s = None if timeout is None else self.now_s + max(timeout, 0.0)
        if self._events is not None:
            reached_s = self._events.pass_until(reached_s)
        if reached_s is None:
            if ready := super().select(0):
                return ready
            raise StandsStill("virtual time stands still: every task waits, and no timer can wake one")
        self.now_s = max(self.now_s, reached_s)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer when no task can run. It has no sockets and no threads."""

    def __init__(self, events: Events | None = None) -> None:
        self._jumping = _JumpingSelector(events)
        super().__init__(self._jumping)

    def time(self) -> float:
        """Returns the virtual time in seconds, from 0."""
        return self._jumping.now_s

    def run_in_executor(  # type: ignore[override]  # the base class has variadic generics
        self,
        executor: Any,  # noqa: ARG002 - there is no executor
        func: Callable[..., T],
        *args: Any,
    ) -> asyncio.Future[T]:
        """Runs `func` at once, in no virtual time, so that `asyncio.to_thread` needs no thread."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except StopIteration as error:  # a future takes none, as it would end a generator that awaits it
            future.set_exception(RuntimeError(f"{func!r} raised StopIteration").with_traceback(error.__traceback__))
        except Exception as error:  # noqa: BLE001 - the caller that awaits the future gets it
            future.set_exception(error)
        return future

    def reach(self, time_s: float) -> None:
        """Moves the time forward, because a callback has let events pass. Does nothing if it is later already."""
        self._jumping.now_s = max(self._jumping.now_s, time_s)

    def descriptors(self) -> list[int]:
        """Returns the descriptors that become readable when the loop has something to do, e.g. after a signal."""
        return [key.fd for key in self._jumping.get_map().values()]

    def look(self) -> None:
        """Handles signals in its next turn."""
        self._jumping.looks = True

    def hear_signals(self) -> None:
        """Hears of the signals of this process, after a fork that asyncio may have taken notice of."""
        signal.set_wakeup_fd(self._csock.fileno())  # type: ignore[attr-defined]  # as the base class does

    def give_up(self) -> None:
        """Cancels all tasks, and runs them to their ends without other events. A task that still waits then is left.

        A cancelled run ends as an interrupted one, with a KeyboardInterrupt. It must not hide why the loop gives up.
        """
        self._jumping.without_events()
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        if tasks:  # a gathering of none belongs to no loop
            with contextlib.suppress(StandsStill, KeyboardInterrupt):
                self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # asyncio complains of one that nobody reads


def run_virtual(main: Coroutine[Any, Any, T], events: Events | None = None, *, loop: VirtualLoop | None = None) -> T:
    """Runs `main` to its end in virtual time and returns its result.

    Args:
        main: The coroutine to run.
        events: Other events in that time.
        loop: A loop that has connections too; None: one without.
    """
    if loop is None:
        loop = VirtualLoop(events)
    try:
        return loop.run_until_complete(main)
    except BaseException:
        loop.give_up()
        raise
    finally:
        loop.close()


def own_loop_after_fork(loop: VirtualLoop) -> None:
    """Lets a process go on with the loop in which it was forked (fork(2)): asyncio has a running loop for one process only."""
    asyncio._set_running_loop(loop)  # noqa: SLF001 - asyncio documents it for those who make loops
    loop.hear_signals()


def in_virtual_time() -> bool:
    """Returns whether the caller runs in a `VirtualLoop`, directly or through its `run_in_executor`."""
    return _virtual_loop() is not None


def wall_s() -> float:
    """Returns the seconds since 1970 by the wall clock; in virtual time, by one that begins with the run."""
    loop = _virtual_loop()
    return time.time() if loop is None else VIRTUAL_WALL_START_S + loop.time()


def wake_descriptors() -> list[int]:
    """Returns the descriptors that become readable when the `VirtualLoop` that runs has to handle a signal; none without one.

    Code that keeps the loop from running, e.g. events that wait for a process, calls `look_for_signals` when one of them is
    readable, and returns.
    """
    loop = _virtual_loop()
    return [] if loop is None else loop.descriptors()


def look_for_signals() -> None:
    """Lets the `VirtualLoop` that runs handle signals in its next turn. Without this, it looks for them now and then."""
    loop = _virtual_loop()
    if loop is not None:
        loop.look()


def _virtual_loop() -> VirtualLoop | None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return loop if isinstance(loop, VirtualLoop) else None
