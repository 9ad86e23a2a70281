"""A node's program as a process of the world: what joins the pipes of `child` to a simulated machine.

A subclass says what the lines on stdin and stdout mean. Each line of stderr is a line of the node's log. The end of the program
is an error, unless a fault killed it. Whatever a program writes, the memory that this takes is bounded.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.pipes.transcript import IN, OUT
from harness.console.plain import one_line
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.pipes.child import Child
    from clusters.pipes.pump import Pump
    from clusters.pipes.transcript import Transcript
    from clusters.sim.host import Host
    from clusters.sim.machine import Machine

MAX_LINE: Final = 16 << 20  # bytes of a line of stdout; a longer one ends the process
MAX_LOG_LINE: Final = 2000  # characters of a line of the log
MAX_LOG_BYTES: Final = 4 * MAX_LOG_LINE  # of a line of stderr; the rest of a longer one is lost
MAX_LOG_LINES: Final = 200_000  # lines of the log of a node
MAX_LOG: Final = 64 << 20  # characters of the log of a node
END_S: Final = 2.0  # a program that closed its stdout gets this time to end by itself
TAIL: Final = 5  # the last lines of stderr that a program leaves
# A program that writes more lines in a second of virtual time ends. The time would nearly stand still.
MAX_IN_SECOND: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a program starts.

    Attributes:
        node: The name of its node.
        command: The program and its arguments.
        environment: Variables beside those of all programs.
        transcript: Takes the lines on its stdin and stdout.
        begin: Starts it in the folder of its node.
    """

    node: str
    command: Sequence[str]
    environment: Mapping[str, str]
    transcript: Transcript
    begin: Callable[[str, Sequence[str], Mapping[str, str]], Child]


class Program(abc.ABC):
    """A node's program; a `clusters.sim.host.Process`, and `Outside`.

    Attributes:
        host: Its host.
        machine: Its machine.
        child: Its process; None before `start`.
        lines: The number of lines that it wrote to stdout.
        tail: The last lines that it wrote to stderr.
    """

    def __init__(self, host: Host, machine: Machine, pump: Pump, launch: Launch) -> None:
        """Makes a program that has not started.

        Args:
            host: Its host.
            machine: Its machine.
            pump: Moves the bytes of its pipes.
            launch: How it starts.
        """
        self.host = host
        self.machine = machine
        self.child: Child | None = None
        self.lines = 0
        self.tail: list[str] = []
        self._pump = pump
        self._launch = launch
        self._recent = (0, 0)  # a second of virtual time, and how many lines it wrote in it
        self._out = bytearray()
        self._err = bytearray()  # the last line of stderr so far, at most `MAX_LOG_BYTES` of it
        self._log_lines = self._logged = 0
        self._slept = False

    @abc.abstractmethod
    def began(self) -> None:
        """The process runs; writes the first lines to its stdin."""

    @abc.abstractmethod
    def said(self, line: bytes) -> None:
        """The program wrote a line to stdout, which `lines` counts."""

    @abc.abstractmethod
    def ended(self, how: str) -> None:
        """The program ended by itself; `how` is a clause, e.g. `ended with status 1`."""

    @abc.abstractmethod
    def receive(self, sender: str, message: object) -> None:
        """Handles a message of a node, or a request of a client; see `clusters.sim.host.Process`."""

    def start(self) -> None:
        """Starts the process."""
        self.machine.world.share_core()
        launch = self._launch
        self.child = launch.begin(launch.node, launch.command, launch.environment)
        self._pump.add(self)
        self.began()

    def write(self, line: bytes) -> None:
        """Writes a line to its stdin."""
        if self.child is not None:
            self._launch.transcript.add(self.machine.world.now_ns, IN, line)
            self.child.write(line + b"\n")
            self._pump.wrote(self)

    def pull(self) -> bool:
        """Takes the output that is in the pipes. It logs stderr, and does not act on stdout. Returns whether there was some."""
        child = self.child
        if child is None:
            return False
        err, out = child.read(child.stderr), child.read(child.stdout)
        *lines, rest = err.split(b"\n")
        for line in lines:
            self._end_log_line(line)
        self._err += rest[: MAX_LOG_BYTES - len(self._err)]
        self._out += out
        self._count(out.count(b"\n"))
        if len(self._out) > 2 * MAX_LINE:  # several pulls without a line
            self.act()
        return bool(err or out)

    def _count(self, lines: int) -> None:
        if self.machine.world.real_time:
            return
        second = self.machine.world.now_ns // NS_PER_S
        then, before = self._recent
        self._recent = (second, lines + (before if then == second else 0))
        if self._recent[1] > MAX_IN_SECOND:
            self._die(
                f"wrote more than {MAX_IN_SECOND:,} lines in a second of virtual time; does each message cause another one?"
            )

    def act(self) -> bool:
        """Acts on the complete lines of stdout so far. The log has the lines of stderr before, and so the reason of a message.

        Returns:
            Whether there was a line on stdout.
        """
        lines = _taken(self._out)
        for line in lines:
            if self.child is None:
                break  # a line before had killed it
            self._launch.transcript.add(self.machine.world.now_ns, OUT, line)
            self.lines += 1
            self.machine.handled += 1
            self.said(line)
        if len(self._out) > MAX_LINE:
            self._die(f"wrote a line of more than {MAX_LINE >> 20} MB to stdout")
        return bool(lines)

    def over(self) -> None:
        """Its stdout is closed: it has ended, or ends soon."""
        child = self.child
        if child is None:
            return
        status = child.wait(END_S)
        self.pull()
        self.act()
        if self._err:
            self._end_log_line(b"")
        if status is None:
            self._die("closed its stdout, and still runs")
        else:
            self._die(f"was ended by signal {-status}" if status < 0 else f"ended with status {status}")

    def slept(self, how: str) -> None:
        """Writes into the log, once, that the program is not quiet, so that virtual time is as fast as real time."""
        if not self._slept:
            self._slept = True
            self.machine.log(f"(the program {how}; while it does, virtual time is as fast as real time)")

    def _die(self, how: str) -> None:
        if self.child is not None:
            self.ended(how)
            self.machine.die(f"the program {how}")

    def _end_log_line(self, end: bytes) -> None:
        """Writes the line of stderr so far into the log, with its end."""
        line = bytes(self._err) + end[: MAX_LOG_BYTES - len(self._err)]
        self._err.clear()
        text = one_line(line.decode("utf-8", "replace"))[:MAX_LOG_LINE]
        self.tail = [*self.tail[1 - TAIL :], text]
        if self._log_lines >= MAX_LOG_LINES or self._logged > MAX_LOG:
            return
        self._log_lines += 1
        self._logged += len(text)
        self.machine.log(text)
        if self._log_lines >= MAX_LOG_LINES or self._logged > MAX_LOG:
            kept = f"{MAX_LOG_LINES:,} lines and {MAX_LOG >> 20} MB"
            self.machine.log(f"(Labrys keeps at most {kept} of stderr; the rest is lost)")

    def killed(self) -> None:
        """Ends the process. Its output that was not handled is lost."""
        child, self.child = self.child, None
        if child is not None:
            self._pump.remove(self, child)
            child.kill()

    def paused(self) -> None:
        """Stops the process, and handles what it had written before."""
        if self.child is not None:
            self.child.pause()
            self.pull()
            self.act()

    def resumed(self) -> None:
        """Continues the process."""
        if self.child is not None:
            self.child.resume()
            self._pump.wrote(self)

    def clock_set(self, clock: tuple[int, int, int]) -> None:  # noqa: B027 - all programs read the clock of this machine
        """Does nothing: the place refuses clock faults."""


def _taken(buffer: bytearray) -> list[bytes]:
    """Takes the complete lines from a buffer, without their ends."""
    end = buffer.rfind(b"\n")
    if end < 0:
        return []
    lines = bytes(buffer[:end]).split(b"\n")
    del buffer[: end + 1]
    return lines
