"""Holds single threads of JVMs at drawn lines of their programs.

The JVM must start with its debugger (`prepare`). It listens on the node's loopback interface only, and Labrys reaches it
through the SSH connection. When the connection ends, the JVM removes all breakpoints, and lets all threads go on. So the effect
needs no undo note.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.daemon import ENVIRONMENT
from harness.errors import LabrysError
from harness.slowness import slowed
from nemesis.errors import FaultError
from nemesis.jdwp import Debugger
from nemesis.undo import SHELL_TIMEOUT_S

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from random import Random

    from harness.remote import Remote
    from nemesis.jdwp import Line, Method

FIRST_PORT: Final = 9390
CONNECT_TIMEOUT_S: Final = 3.0  # a JVM listens again a moment after the last connection ended
CONNECT_AGAIN_S: Final = 0.2
LOOK_S: Final = 0.1
ARMED_S: Final = 5.0  # how long a line waits for a thread
LEAST_MS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A thread that was held.

    Attributes:
        at_s: When, in seconds since the beginning of the fault.
        held_s: How long at least, by the clock of the control node.
        thread: The name of the thread.
        line: Where: method and line.
        reported: Whether the JVM reported the thread as suspended meanwhile.
    """

    at_s: float
    held_s: float
    thread: str
    line: str
    reported: bool

    def __str__(self) -> str:
        return f"{self.thread} in {self.line} for {self.held_s * 1000:.0f} ms at {self.at_s:.3f} s"

    @property
    def brief(self) -> str:
        """Returns it without the package and the time, e.g. `main in Log.append:7 for 3 ms`."""
        return f"{self.thread} in {'.'.join(self.line.split('.')[-2:])} for {self.held_s * 1000:.0f} ms"


@dataclass(frozen=True, slots=True, order=True)
class _Holding:
    """A thread that is held now; the one that goes on first is the least."""

    end_s: float
    number: int
    since_s: float = field(compare=False)
    thread: int = field(compare=False)
    name: str = field(compare=False)
    line: str = field(compare=False)
    reported: bool = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many threads are held, and how long.

    Attributes:
        per_second: The mean number of lines in a second that begin to wait for a thread.
        most_s: The longest time for which a thread is held, in seconds.
    """

    per_second: float
    most_s: float


def prepare(remote: Remote, ports: dict[str, int]) -> None:
    """Lets the JVMs that start later have a debugger.

    Args:
        remote: The shell on the node.
        ports: The port of the debugger of each role.
    """
    lines = "\n".join(
        f"echo JAVA_TOOL_OPTIONS=-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address=127.0.0.1:{port} "
        f">> {ENVIRONMENT}-{role}"
        for role, port in ports.items()
    )
    remote.run(f"set -e\nmkdir -p {ENVIRONMENT.rpartition('/')[0]}\n{lines}", timeout_s=SHELL_TIMEOUT_S)


def debugger_ports(roles: Sequence[str]) -> dict[str, int]:
    """Returns the port of the debugger of each role of a node."""
    return {role: FIRST_PORT + number for number, role in enumerate(roles)}


def connect(remote: Remote, port: int) -> Debugger:
    """Connects to the debugger of a JVM.

    Raises:
        FaultError: It does not listen.
    """
    deadline_s = time.monotonic() + slowed(CONNECT_TIMEOUT_S)
    while True:
        try:
            return Debugger(remote.dial(port))
        except LabrysError as error:
            if time.monotonic() > deadline_s:
                raise FaultError(f"the debugger of the JVM does not listen on port {port}: {error}") from error
            time.sleep(CONNECT_AGAIN_S)


@dataclass(slots=True, kw_only=True)
class Holder:
    """Holds threads of one JVM.

    Attributes:
        debugger: The debugger of the JVM.
        packages: The packages of the program.
        rate: How many threads it holds, and how long.
        random: Draws the lines and the times.
        held: The threads that it has held, in order; those it still holds are not there yet.
    """

    debugger: Debugger
    packages: Sequence[str]
    rate: Rate
    random: Random
    held: list[Held] = field(default_factory=list)
    _methods: list[Method] = field(default_factory=list)
    _lines: dict[Method, list[Line]] = field(default_factory=dict)
    _asked: dict[int, Line] = field(default_factory=dict)  # by breakpoint; a thread can be at one that was just removed
    _open: dict[int, float] = field(default_factory=dict)  # the breakpoints that wait, with the end of their time
    _holding: list[_Holding] = field(default_factory=list)
    _hits: int = 0

    def look(self) -> int:
        """Looks up the methods of the program. Returns how many it found.

        Raises:
            FaultError: No class of the packages is loaded.
        """
        self._methods = self.debugger.methods(self.packages)
        if not self._methods:
            raise FaultError(f"the JVM has loaded no class of {', '.join(self.packages)}")
        return len(self._methods)

    def run(self, began_s: float, until_s: float, stop: threading.Event) -> None:
        """Holds threads until a time, or until it is stopped; then all threads go on, and the connection ends.

        Args:
            began_s: When the fault began, in seconds of `time.monotonic`.
            until_s: When it ends at the latest, likewise.
            stop: Ends it.

        Raises:
            FaultError: The JVM does not answer, or has ended.
        """
        try:
            next_s = time.monotonic()
            while not stop.is_set() and (now_s := time.monotonic()) < until_s:
                if now_s >= next_s:
                    self._arm(now_s)
                    next_s += self.random.expovariate(self.rate.per_second)
                self._let_go(now_s, began_s)
                first_s = self._holding[0].end_s if self._holding else until_s
                self._hold(min(next_s, first_s, until_s, now_s + LOOK_S))
                if not self.debugger.alive:
                    raise FaultError("the JVM has ended")
            for request in self._open:
                self.debugger.clear(request)
            self._hold(0)  # those that came before their breakpoints went
            self._let_go(float("inf"), began_s)
        finally:
            self.debugger.close()

    def _arm(self, now_s: float) -> None:
        """Draws a line that waits for a thread, and gives up those that waited too long."""
        method = self.random.choice(self._methods)
        if method not in self._lines:
            self._lines[method] = self.debugger.lines(method)
        if self._lines[method]:
            line = self.random.choice(self._lines[method])
            request = self.debugger.hold(line)
            self._asked[request] = line
            self._open[request] = now_s + ARMED_S
        for request in [request for request, end_s in self._open.items() if end_s < now_s]:
            self.debugger.clear(request)
            del self._open[request]

    def _hold(self, until_s: float) -> None:
        """Waits for threads that come to lines, and draws how long they are held."""
        for hit in self.debugger.hits(until_s):
            line = self._asked.get(hit.request)
            if line is None:
                raise FaultError(f"the JVM reports the breakpoint {hit.request}, which nobody set")
            if self._open.pop(hit.request, None) is not None:
                self.debugger.clear(hit.request)
            since_s = time.monotonic()
            lasts_s = LEAST_MS / 1000 * (self.rate.most_s * 1000 / LEAST_MS) ** self.random.random()
            self._hits += 1
            holding = _Holding(
                end_s=since_s + lasts_s,
                number=self._hits,
                since_s=since_s,
                thread=hit.thread,
                name=self.debugger.name_of(hit.thread),
                line=str(line),
                reported=self.debugger.is_held(hit.thread),
            )
            heapq.heappush(self._holding, holding)

    def _let_go(self, now_s: float, began_s: float) -> None:
        """Lets the threads go on whose time is over."""
        while self._holding and self._holding[0].end_s <= now_s:
            one = heapq.heappop(self._holding)
            held_s = time.monotonic() - one.since_s
            self.debugger.resume(one.thread)
            self.held.append(
                Held(at_s=one.since_s - began_s, held_s=held_s, thread=one.name, line=one.line, reported=one.reported)
            )
