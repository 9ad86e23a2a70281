"""The closed loop: each worker asks for an operation, performs it, and asks again after its answer.

A worker that gets `Later` waits for a time, an event, or both. The worker that waits longest goes first. After each operation,
all other workers have a turn before this worker asks again. So no worker gets more than its share, even if its answers are
fast.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING

from harness.driver import Driver
from harness.errors import LabrysError
from harness.op import Invocation
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from harness.clock import Clock
    from harness.driver import Seat, Setting
    from harness.generator import Later
    from harness.load import ClosedLoop

MAX_STALE = 64


class GeneratorStuck(LabrysError):  # noqa: N818 - a state of the generator
    """All workers wait for an event, and no operation is in flight that could cause one."""


class ClosedDriver(Driver):
    """Drives a fixed number of workers."""

    def __init__(self, setting: Setting, load: ClosedLoop) -> None:
        super().__init__(setting)
        self._concurrency = load.concurrency
        self._active = load.concurrency
        self._workers = frozenset(range(load.concurrency))
        self._room = WaitingRoom(self._loop, self._clock)

    def start(self) -> None:
        """Starts all workers, in the order of their numbers."""
        nodes = self._setting.nodes
        for worker in range(self._concurrency):
            seat = self._new_seat(worker, nodes[worker % len(nodes)])
            seat.task = self._spawn(self._work(seat))

    def halt(self) -> None:
        """Ends all waiting workers; workers with an operation end after it."""
        self._halted = True
        self._room.wake_all()

    async def close(self) -> None:
        """Cancels all tasks and closes all clients, in a bounded time."""
        self._room.close()
        await super().close()

    def _successor(self, seat: Seat) -> int:
        return seat.process + self._concurrency

    def _vacated(self, seat: Seat) -> None:
        if self._halted:
            self._leave()
        else:
            seat.task = self._spawn(self._work(seat))

    def _noticed(self) -> None:
        self._room.wake_for_event()

    async def _work(self, seat: Seat) -> None:
        while not self._halted:
            now_ns = self._clock.now_ns()
            answer = self._ask(seat, now_ns)
            if isinstance(answer, Invocation):
                self._begin(seat, answer, now_ns)
                if not await self._perform(seat):
                    return
                await asyncio.sleep(0)
            elif answer is None:
                break
            else:
                if answer.changed:
                    self._room.wake_for_event()
                if answer.at_ns is None and self._room.untimed + 1 == self._active and not self._deadlines:
                    raise GeneratorStuck(
                        f"the generator lets all {self._active} workers wait for an event, but no operation is in flight; "
                        "a generator may answer Later() only while an event can come"
                    )
                await self._room.wait(answer)
        self._leave()

    def _leave(self) -> None:
        self._active -= 1
        self._room.wake_for_event()
        if not self._active and not self.done.done():
            self.done.set_result(None)


class WaitingRoom:
    """Holds workers that wait for a time or an event.

    Attributes:
        untimed: The number of workers that wait for an event and not for a time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.untimed = 0
        self._loop = loop
        self._clock = clock
        self._for_event: list[asyncio.Future[None]] = []
        self._for_time: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ns = 0

    async def wait(self, later: Later) -> None:
        """Waits until the worker may ask again."""
        future: asyncio.Future[None] = self._loop.create_future()
        if later.at_ns is None:
            self.untimed += 1
        else:
            self._arrivals += 1
            heapq.heappush(self._for_time, (later.at_ns, self._arrivals, future))
            if self._alarm is None or later.at_ns < self._alarm_ns:
                self._set_alarm(later.at_ns)
        if later.at_ns is None or later.or_event:
            self._for_event.append(future)
        await future

    def wake_for_event(self) -> None:
        """Wakes all workers that wait for an event."""
        if not self._for_event:
            return
        waiting, self._for_event = self._for_event, []
        self.untimed = 0
        for future in waiting:
            if not future.done():
                future.set_result(None)
        # Woken workers that also waited for a time would pile up until that time.
        if len(self._for_time) > MAX_STALE + 2 * len(waiting):
            self._for_time = [entry for entry in self._for_time if not entry[2].done()]
            heapq.heapify(self._for_time)

    def wake_all(self) -> None:
        """Wakes all workers."""
        self.wake_for_event()
        for _, _, future in self._for_time:
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Stops watching the time."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _set_alarm(self, at_ns: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ns = at_ns
        # One nanosecond more, so that rounding never wakes a worker too early.
        delay_s = (at_ns - self._clock.now_ns() + 1) / NS_PER_S
        self._alarm = self._loop.call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now_ns = self._clock.now_ns()
        while self._for_time:
            at_ns, _, future = self._for_time[0]
            if not future.done():
                if at_ns > now_ns:
                    self._set_alarm(at_ns)
                    return
                future.set_result(None)
            heapq.heappop(self._for_time)
