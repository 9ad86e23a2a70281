"""The pipe to the JVM of the simulator: commands in, events out.

A frame has its length (4 bytes) and then its content. Numbers are big-endian. A text has its length (4 bytes) before its UTF-8.
The commands wait here until `advance`. It sends them as one frame and reads one frame: the time that the JVM has reached, the
time of its next timer, and events. A frame can have commands for later times too: `wait_until`. `io.labrys.simjvm.Main` and
`Output` are the other end. They are part of Labrys, so the reader trusts the lengths within a frame. It limits the frame.
"""

from __future__ import annotations

import contextlib
import functools
import os
import struct
import subprocess
from typing import IO, TYPE_CHECKING, Final, NamedTuple, cast

from clusters.sim.environment import SAME_EVERYWHERE
from harness.children import own_environment
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clusters.sim.threads import Threads
    from harness.world import Losing

NEVER: Final = 2**63 - 1
MAX_FRAME: Final = 1 << 30
END_S: Final = 10.0
LOG_FILE: Final = "jvm.log"  # in the working directory
MAX_LOG: Final = 4000  # characters of the output of a JVM that ended, in an error
_LENGTH = struct.Struct(">i")
_TIME = struct.Struct(">q")
_TIMES = struct.Struct(">qq")
_HEAD = struct.Struct(">qqi")
_NUMBER_AND_LENGTH = struct.Struct(">qi")
_KIND_AND_LENGTH = struct.Struct(">Bi")
_LOSS = struct.Struct(">iiq")
_READ = 1 << 14  # most frames are shorter

LISTENS, CONNECTS, SENDS, CLOSES, LOGS, DIES, FAILS, TRACES, LOSES, TAKES, STEPS, REFUSES = b"LCDXGEFTWMYI"


class Event(NamedTuple):
    """An event in the JVM.

    Attributes:
        kind: One of the constants of this module, e.g. `SENDS`.
        node: The node; empty for `FAILS` and `TRACES`.
        number: The connection of `CONNECTS`, `SENDS` and `CLOSES`; the port of `LISTENS`; the digest of `TRACES`; the
            lost bytes of `LOSES`; 1 if the disk of `TAKES` has room for a small file, else 0; what `want` gave, of `STEPS`;
            the key of `REFUSES`.
        text: The address of `CONNECTS`, the lines of `LOGS`, the reason of `DIES` and `FAILS`; the number of decisions of
            `TRACES`; for `LOSES`, the number of files, and how many changed, with a space between; the step of `STEPS`; the
            call, its number and its file of `REFUSES`, with tabs between.
        data: The bytes of `SENDS`.
    """

    kind: int
    node: str
    number: int
    text: str
    data: bytes


class Jvm:
    """A JVM that runs simulated processes.

    Attributes:
        command: Its command line.
        directory: Its working directory.
        pid: The id of its process.
        next_ns: The time of its next timer; `NEVER` if it has none. After a command, the time of the command.
        runs: How many runs it has had.
        waited: How many of the calls of `wait_until` before the last `advance` ended without an event.
        usable: Whether it can have another command. It cannot after an error, or after an interruption of `advance`.
    """

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        """Starts the JVM.

        Args:
            command: The command line.
            directory: The working directory. The output of the JVM goes to `LOG_FILE` in it.

        Raises:
            InfrastructureError: It cannot be started.
        """
        self.command = tuple(command)
        self.directory = directory
        self.next_ns = NEVER
        self.runs = 0
        self.waited = 0
        self.usable = True
        self._thread: int | None = None
        self._log = directory / LOG_FILE
        self._commands: list[bytes] = []
        with self._log.open("wb") as log:
            try:
                self._process = subprocess.Popen(
                    command, bufsize=0, cwd=directory, env={**own_environment(), **SAME_EVERYWHERE},
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                    start_new_session=True,  # a signal to all processes of a terminal or a service is for this one alone
                )  # fmt: skip
                self.pid = self._process.pid
                self._pipes = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
                self._to, self._from = (pipe.fileno() for pipe in self._pipes)
            except OSError as error:
                raise InfrastructureError(
                    f"the simulator of Java programs cannot start {command[0]}: {error.strerror or error}"
                ) from error

    def begin(
        self, seed: int, *, threads: Threads, stretch_ns: int, loses_power: bool = False, notes_steps: bool = False
    ) -> None:
        """Begins a run. The run before must have ended. `io.labrys.simjvm.run.Scheduler` and `Disk` explain the arguments."""
        told = (
            _signed(seed),
            threads.preempt,
            threads.page_faults,
            threads.stalls,
            stretch_ns,
            loses_power,
            notes_steps,
        )
        self._commands.append(struct.pack(">cqdddq??", b"B", *told))

    def end(self) -> None:
        """Ends the run: kills all processes.

        Raises:
            InfrastructureError: As for `advance`, or a thread of the run did not end.
        """
        self._commands.append(b"E")
        self.advance(0)

    def start(self, at_ns: int, node: str, *, seed: int, main: str, arguments: Sequence[str]) -> None:
        """Starts the process of a node: the method `begin` or `main` of a class."""
        texts = b"".join(map(_text, arguments))
        content = _TIME.pack(_signed(seed)) + _text(main) + _LENGTH.pack(len(arguments)) + texts
        self._add(b"S", at_ns, node, content)

    def kill(self, at_ns: int, node: str) -> None:
        """Kills the process of a node."""
        self._add(b"K", at_ns, node)

    def lose_power(self, at_ns: int, node: str, losing: Losing | None = None) -> None:
        """Lets the disk of a node lose what is not durable. The next answer has an event `LOSES`. No process may run there."""
        if losing is None:
            self._add(b"W", at_ns, node)
            return
        places = () if losing.changes is None else sorted(losing.changes)
        count = -1 if losing.changes is None else len(places)
        self._add(b"w", at_ns, node, struct.pack(f">i{len(places)}i?", count, *places, losing.torn))

    def want(self, wanted: int, nodes: Sequence[str], *, call: str, pattern: str, nth: int) -> None:
        """Lets a process stand still right after a step of its disk; an event `STEPS` tells it.

        Args:
            wanted: A number for it.
            nodes: The nodes.
            call: The kind of the steps that count.
            pattern: A regular expression for the whole path of the file.
            nth: The number of the step of a node, from now on.
        """
        names = _LENGTH.pack(len(nodes)) + b"".join(map(_text, nodes))
        self._commands.append(b"Y" + _TIME.pack(wanted) + names + _text(call) + _text(pattern) + _TIME.pack(nth))

    def drop(self, wanted: int) -> None:
        """Ends what `want` began."""
        self._commands.append(b"y" + _TIME.pack(wanted))

    def steps(self) -> str:
        """Returns the steps of the disks since the last call: a line for each.

        It changes nothing: no time passes, and commands that wait stay.

        Raises:
            InfrastructureError: The JVM has ended.
        """
        return self._exchanged(b"J").decode()

    def wipe(self, at_ns: int, node: str) -> None:
        """Tells that the files of a node were removed."""
        self._add(b"V", at_ns, node)

    def damaged(self, at_ns: int, node: str, path: str) -> None:
        """Tells that a fault has changed a file. The path begins in the working directory. No process may run on the node."""
        self._add(b"F", at_ns, node, _text(path))

    def fill(self, at_ns: int, node: str, *, full: bool) -> None:
        """Fills the disk of a node, or frees it again."""
        self._add(b"U", at_ns, node, bytes((full,)))

    def fail(
        self, at_ns: int, node: str, key: int, *, call: str, pattern: str, nth: int, times: int, error: str
    ) -> None:
        """Lets calls of a node fail from now on, as `harness.world.Failing` says; each has an event `REFUSES`.

        `pattern` is a regular expression for the whole path of the file. `error` is the text of the error.
        """
        told = _TIME.pack(key) + _text(call) + _text(pattern) + _TIMES.pack(nth, times) + _text(error)
        self._add(b"I", at_ns, node, told)

    def mend(self, at_ns: int, node: str, key: int) -> None:
        """Ends the rules of a key."""
        self._add(b"i", at_ns, node, _TIME.pack(key))

    def try_room(self, at_ns: int, node: str) -> None:
        """Tries to write a small file on the disk of a node. The next answer has an event `TAKES`."""
        self._add(b"M", at_ns, node)

    def pause(self, at_ns: int, node: str) -> None:
        """Stops the process of a node."""
        self._add(b"P", at_ns, node)

    def resume(self, at_ns: int, node: str) -> None:
        """Continues the process of a node."""
        self._add(b"R", at_ns, node)

    def set_clock(self, at_ns: int, node: str, ahead_ns: int, period_ns: int, set_ns: int) -> None:
        """Sets the wall clock of a node; see `clusters.sim.machine.Machine.wall_clock`."""
        self._add(b"C", at_ns, node, _TIMES.pack(ahead_ns, period_ns) + _TIME.pack(set_ns))

    def accept(self, at_ns: int, node: str, *, port: int, connection: int, peer: str) -> None:
        """Tells a process that a peer has connected to its port."""
        self._add(b"A", at_ns, node, _LENGTH.pack(port) + _TIME.pack(connection) + _text(peer))

    def opened(self, at_ns: int, node: str, connection: int) -> None:
        """Tells a process that its connection is open."""
        self._add(b"O", at_ns, node, _TIME.pack(connection))

    def closed(self, at_ns: int, node: str, connection: int, why: str) -> None:
        """Tells a process that a connection is closed."""
        self._add(b"X", at_ns, node, _TIME.pack(connection) + _text(why))

    def data(self, at_ns: int, node: str, connection: int, content: bytes) -> None:
        """Gives bytes to a process."""
        self._add(b"D", at_ns, node, _TIME.pack(connection) + _bytes(content))

    def ask_trace(self) -> None:
        """Lets the next answer have an event `TRACES` with a digest of all decisions of the scheduler."""
        self._commands.append(b"Z")

    def state(self, node: str, key: str) -> str:
        """Returns what the program of a node tells about its state; empty if it runs no program, or one that tells nothing.

        It changes nothing: no time passes, and commands that wait stay.

        Raises:
            InfrastructureError: The JVM has ended.
        """
        return self._exchanged(b"Q" + _text(node) + _text(key)).decode(errors="replace")

    def follow(self) -> None:
        """Lets the threads of the processes run on the cores of this thread only. The compilers of the JVM use all cores.

        Raises:
            InfrastructureError: The JVM has ended.
        """
        if self._thread is None:
            self._thread = int(self._exchanged(b"H"))
        with contextlib.suppress(ProcessLookupError):  # it has ended; the next command says so
            os.sched_setaffinity(self._thread, os.sched_getaffinity(0))

    def wait_until(self, at_ns: int) -> None:
        """Lets the threads run until a time. If that has an event, the commands after this do not count; see `waited`."""
        self._commands.append(b"T" + _TIME.pack(at_ns))

    def advance(self, until_ns: int) -> tuple[int, Sequence[Event]]:
        """Lets the threads run until a time, or until the end of the first instant with an event.

        Returns:
            The time that the JVM has reached, and the events.

        Raises:
            InfrastructureError: The JVM has ended, or code of a program left the simulation.
        """
        self.wait_until(until_ns)
        content = b"".join(self._commands)
        self._commands.clear()
        frame = self._exchanged(content)
        if len(frame) == _HEAD.size:
            now_ns, self.next_ns, advances = _HEAD.unpack(frame)
            self.waited = advances - 1
            return now_ns, ()
        self.usable = False
        if len(frame) < _HEAD.size:
            raise InfrastructureError(
                f"the JVM of the simulator answered {len(frame)} bytes; expected two times, a number and events"
            )
        now_ns, self.next_ns, advances = _HEAD.unpack_from(frame)
        self.waited = advances - 1
        events = _events(frame)
        if events and events[-1].kind == FAILS:  # the JVM ends with it
            raise InfrastructureError(
                f"the run in the JVM of the simulator cannot be repeated, so it ends here: {events[-1].text}\n{self._said()}"
            )
        self.usable = True
        return now_ns, events

    def _exchanged(self, content: bytes) -> bytes:
        """Sends a frame, and returns the one that answers it."""
        self.usable = False
        frame = _LENGTH.pack(len(content)) + content
        try:
            sent = os.write(self._to, frame)
            while sent < len(frame):
                sent += os.write(self._to, memoryview(frame)[sent:])
        except BrokenPipeError:
            pass  # the reader below finds the reason
        answer = os.read(self._from, _READ)
        length = _LENGTH.unpack_from(answer)[0] if len(answer) >= _LENGTH.size else -1
        missing = length + _LENGTH.size - len(answer)
        if 0 < missing <= MAX_FRAME:
            answer += self._rest(missing)
            missing = length + _LENGTH.size - len(answer)
        if missing:
            raise InfrastructureError(f"the JVM of the simulator ended {self._how()}; {self._said()}")
        self.usable = True
        return answer[_LENGTH.size :]

    def _rest(self, missing: int) -> bytes:
        """Returns the rest of a long frame; less if the output of the JVM ends before."""
        pieces = []
        while missing > 0 and (piece := os.read(self._from, missing)):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Ends the JVM."""
        self._process.kill()
        self._process.wait(END_S)
        for pipe in self._pipes:
            with contextlib.suppress(BrokenPipeError):  # it has commands that the JVM never read
                pipe.close()

    def _add(self, kind: bytes, at_ns: int, node: str, content: bytes = b"") -> None:
        self._commands.append(kind + _TIME.pack(at_ns) + _name(node) + content)
        self.next_ns = min(self.next_ns, at_ns)

    def _how(self) -> str:
        """Returns how the JVM ended, as an adverbial."""
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            return "its output, and still runs"
        return f"by signal {-status}" if status < 0 else f"with status {status}"

    def _said(self) -> str:
        """Returns the end of the output of the JVM, as a clause."""
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        return f"its output ends with:\n{text[-MAX_LOG:]}" if text else "it has printed nothing"


def _events(frame: bytes) -> list[Event]:
    events = []
    at = _HEAD.size

    def content() -> bytes:
        nonlocal at
        size: int = _LENGTH.unpack_from(frame, at)[0]
        at += _LENGTH.size + size
        return frame[at - size : at]

    while at < len(frame):
        kind, size = _KIND_AND_LENGTH.unpack_from(frame, at)
        at += _KIND_AND_LENGTH.size + size
        node, number, text, data = frame[at - size : at].decode(), 0, "", b""
        if kind == SENDS:
            number, size = _NUMBER_AND_LENGTH.unpack_from(frame, at)
            at += _NUMBER_AND_LENGTH.size + size
            data = frame[at - size : at]
        elif kind in {LOGS, DIES, FAILS}:
            text = content().decode()
        elif kind == LISTENS:
            number = _LENGTH.unpack_from(frame, at)[0]
            at += _LENGTH.size
        elif kind == LOSES:
            files, changed, number = _LOSS.unpack_from(frame, at)
            at += _LOSS.size
            text = f"{files} {changed}"
        elif kind == TRACES:
            number, decisions = _TIMES.unpack_from(frame, at)
            at += _TIMES.size
            text = str(decisions)
        else:
            number = _TIME.unpack_from(frame, at)[0]
            at += _TIME.size
            text = content().decode() if kind in {CONNECTS, STEPS, REFUSES} else ""
        events.append(Event(kind, node, number, text, data))
    return events


def _bytes(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


@functools.cache
def _name(node: str) -> bytes:
    """Returns the name of a node as a text. A run has few names and many commands."""
    return _text(node)


def _text(text: str) -> bytes:
    return _bytes(text.encode())


def _signed(number: int) -> int:
    """Returns the low 64 bits of a number as Java's `long`."""
    return (number + 2**63) % 2**64 - 2**63
