"""Threads of a JVM that a test holds at lines of the program, in an order of its own."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nemesis.jdwp import Debugger, Hit, Line

COMES_S: Final = 10.0


class HeldThreads:
    """Threads of one JVM."""

    def __init__(self, debugger: Debugger) -> None:
        """Takes the connection to the JVM's debugger."""
        self._debugger = debugger
        self._lines: dict[str, Line] = {}
        self._waiting: list[Hit] = []  # not returned yet

    def at(self, line_name: str) -> int:
        """Holds each thread that comes to a place. Returns the number of the breakpoint.

        Args:
            line_name: The method and the line, e.g. `org.example.Log.append:7`.
        """
        if line_name not in self._lines:
            (of, _, _) = line_name.rpartition(".")
            for method in self._debugger.methods([of]):
                self._lines.update({str(line): line for line in self._debugger.lines(method)})
        return self._debugger.hold(self._lines[line_name])

    async def next(self, breakpoint_: int) -> Hit:
        """Waits until a thread is held at a breakpoint, and returns it.

        Raises:
            TimeoutError: None comes there in time.
        """
        end_s = time.monotonic() + COMES_S
        while True:
            for hit in self._waiting:
                if hit.request == breakpoint_:
                    self._waiting.remove(hit)
                    return hit
            if time.monotonic() > end_s:
                raise TimeoutError(f"expected a thread at a breakpoint in {COMES_S:g} s")
            await self._wait(end_s)

    async def arrived(self, within_s: float) -> list[Hit]:
        """Returns all threads that are held and were not returned yet.

        Waits for the first one; none if the time ends before.
        """
        if not self._waiting:
            await self._wait(time.monotonic() + within_s)
        hits, self._waiting = self._waiting, []
        return hits

    async def _wait(self, until_s: float) -> None:
        self._waiting += await asyncio.to_thread(self._debugger.hits, until_s)

    def no_more_at(self, breakpoint_: int) -> None:
        """Removes a breakpoint. A thread that is held there stays held."""
        self._debugger.clear(breakpoint_)

    def go_on(self, hit: Hit) -> None:
        """Lets a thread go on."""
        self._debugger.resume(hit.thread)
