"""The open loop: requests arrive at each node as a Poisson process, independent of earlier requests.

Each node has a stream of arrival times and a pool of processes. At an arrival, the generator gives an operation to the process
that has been free for the longest time. If no process is free, the pool grows up to its maximum. Beyond that, the arrival is
counted as shed. It is never dropped silently, and never waits, since waiting would close the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from harness.driver import Driver
from harness.op import Invocation
from harness.randomness import stream
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from harness.driver import Seat, Setting
    from harness.load import OpenLoop
    from harness.node import Node


class OpenDriver(Driver):
    """Drives a stream of arrivals at each node. The generator's worker is the number of the node."""

    def __init__(self, setting: Setting, load: OpenLoop) -> None:
        super().__init__(setting)
        self._load = load
        self._workers = frozenset(range(len(setting.nodes)))
        self._free: list[deque[Seat]] = [deque() for _ in setting.nodes]
        self._sizes = [0 for _ in setting.nodes]
        self._streams: list[asyncio.Task[None]] = []
        self._open_streams = len(setting.nodes)

    def start(self) -> None:
        """Gives each node its first processes and starts the arrivals."""
        for number, free in enumerate(self._free):
            free.extend(self._grow(number) for _ in range(self._load.processes_per_node))
        self._streams = [self._spawn(self._arrive(number, node)) for number, node in enumerate(self._setting.nodes)]

    def halt(self) -> None:
        """Ends the arrivals."""
        self._halted = True
        for task in self._streams:
            task.cancel()
        self._open_streams = 0
        self._finish_if_idle()

    def _successor(self, seat: Seat) -> int:  # noqa: ARG002 - a pool has no fixed order of processes
        return self.next_process

    def _vacated(self, seat: Seat) -> None:
        self._free[seat.worker].append(seat)
        self._finish_if_idle()

    def _noticed(self) -> None:
        """Does nothing, because no process waits for an event in an open loop."""

    def _grow(self, number: int) -> Seat:
        self._sizes[number] += 1
        return self._new_seat(number, self._setting.nodes[number])

    async def _arrive(self, number: int, node: Node) -> None:
        draws = stream(self._setting.seed, f"arrivals/{node.name}")
        clock, counts, free = self._clock, self.counts, self._free[number]
        due_s = clock.now_s()
        while True:
            due_s += draws.expovariate(self._load.rate_per_node)
            await asyncio.sleep(max(0.0, due_s - clock.now_s()))
            if free:
                seat = free.popleft()
            elif self._sizes[number] < self._load.max_in_flight:
                seat = self._grow(number)
            else:
                counts.shed += 1
                continue
            now_ns = clock.now_ns()
            answer = self._ask(seat, now_ns)
            if isinstance(answer, Invocation):
                due_ns = min(round(due_s * NS_PER_S), now_ns)
                self._begin(seat, answer._replace(scheduled_ns=due_ns), now_ns)
                seat.task = self._spawn(self._perform_one(seat))
                continue
            free.appendleft(seat)
            if answer is None:
                break
            counts.unused += 1
        self._open_streams -= 1
        self._finish_if_idle()

    async def _perform_one(self, seat: Seat) -> None:
        if await self._perform(seat):
            self._free[seat.worker].append(seat)
            self._finish_if_idle()

    def _finish_if_idle(self) -> None:
        if not self._open_streams and not self._deadlines and not self.done.done():
            self.done.set_result(None)
