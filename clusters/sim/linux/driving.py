"""Starts a controller of Linux programs, and speaks its protocol; `controller/src/outside.rs` has the other end.

The controller stands still while this process works, and this process waits while the simulation runs. So each is a function of
what the other said. The lines of both are part of Labrys, and a line that does not fit is an error of Labrys.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from harness.children import own_environment
from harness.errors import InfrastructureError
from harness.world import Failed, Lost, SlowSyncs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.world import Disturbance, Failing

END_S: Final = 10.0
FLUSH_S: Final = 2.0
MAX_ERROR: Final = 4000  # characters of what a controller that ended wrote, in an error
END: Final = "."
DONE: Final = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run consists of.

    Attributes:
        seed: The seed.
        root: An empty folder for the files of the nodes. They are in a file system that only the programs see.
        nodes: The address of each node by its name. The last node is that of this process.
        variables: The environment of all programs.
        shown: The files and folders of this machine that the programs may read.
        log: The file for each call and each decision; None: no log.
        processor: The processor that the controller and all programs share; None: any.
        preempt: The probability with which another thread runs before a call of a thread.
        stalls: The mean number of times in a second that a thread stalls before a call, for 1 ms to 1 s.
        trace_all: Whether every system call stops and is in the digest.
        all_stop: Whether programs answer no call themselves; with a log, they never do. It has no effect on what they do.
        look_us: The processor time of a thread without a call before the controller looks whether it waits in a loop. It has no
            effect on what programs do, and tests show it; None: that of the controller.
    """

    seed: int
    root: Path
    nodes: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[Path] = ()
    log: Path | None = None
    processor: int | None = None
    preempt: float = 0.0
    stalls: float = 0.0
    trace_all: bool = False
    all_stop: bool = False
    look_us: int | None = None

    def lines(self) -> list[str]:
        """Returns the lines by which a run begins."""
        return [
            f"seed {self.seed}",
            f"root {_digits(str(self.root))}",
            *(f"node {name} {address}" for name, address in self.nodes.items()),
            *(f"variable {_digits(f'{name}={value}')}" for name, value in self.variables.items()),
            *(f"show {_digits(str(path))}" for path in self.shown),
            *([] if self.log is None else [f"log {_digits(str(self.log))}"]),
            *([] if self.processor is None else [f"cpu {self.processor}"]),
            f"preempt {self.preempt!r}",
            f"stalls {self.stalls!r}",
            *(["trace-all"] if self.trace_all else []),
            *(["all-stop"] if self.all_stop else []),
            *([] if self.look_us is None else [f"look {self.look_us}"]),
            "ready",
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What a wait of this process ended with.

    Attributes:
        kind: `connected`, `failed`, `bytes`, `ended` or `reset` of a connection, `exited` of a program, `arrived` of a probe,
            `stands` of a wait for a step of a disk, `passed` of a wait for a message.
        id: The number of the connection, the program, the probe or the wait.
        number: The error of `failed`, the status of `exited`, as waitpid returns it, the delay of `arrived` in nanoseconds, or
            the program of `stands`.
        content: The bytes of `bytes` and `passed`.
        damaged: Of a probe: whether its checksum is wrong.
        step: The step of `stands`, as the controller tells it.
        link: The sender and the receiver of `passed`.
    """

    kind: str
    id: int
    number: int = 0
    content: bytes = b""
    damaged: bool = False
    step: str = ""
    link: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a run did so far.

    Attributes:
        digest: The digest of its execution: of all calls, results, messages and decisions.
        trace: The digest at the end of each virtual second; see `harness.world.Execution`.
        figures: E.g. `time` in virtual nanoseconds, `calls` and `messages`.
        calls: The number of calls by name.
    """

    digest: str
    trace: str
    figures: Mapping[str, int]
    calls: Mapping[str, int]


class Controller:
    """A controller, and the run that it has.

    Attributes:
        now_ns: The virtual time.
    """

    def __init__(self, binary: Path, parts: Parts) -> None:
        """Starts a controller and its run. No program runs yet.

        Raises:
            InfrastructureError: It cannot be started, e.g. without root.
        """
        self.now_ns = 0
        self._binary = binary
        self._root = parts.root
        self._connections = 0
        self._programs = 0
        self._broken: InfrastructureError | None = None
        try:
            self._process = subprocess.Popen(
                [binary], env=own_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,  # a signal to all processes of a terminal or a service is for this one alone
            )  # fmt: skip
        except OSError as error:
            raise InfrastructureError(
                f"the controller {binary} cannot be started: {error.strerror or error}"
            ) from error
        self._to, self._from = (cast("IO[bytes]", pipe) for pipe in (self._process.stdin, self._process.stdout))
        for line in parts.lines():
            self._say(line)
        if self._line() != "ready":
            raise self._lost()

    def inside(self, node: str) -> list[str]:
        """Returns the words that carry out a command among the files of a node, so that no link leads out of them.

        It runs in real time, and gets a `/proc` with its own process, which those of the simulation do not see.
        """
        return [str(self._binary), "inside", str(self.pid), f"{self._root}/{node}"]

    def path_of(self, node: str, path: str) -> Path:
        """Returns where this process sees a file of a node, while the run goes on.

        The files of a run are in the mount namespace of the controller.
        """
        return Path(f"/proc/{self._process.pid}/root{self._root}/{node}{path}")

    def start(self, node: str, arguments: Sequence[str], *, folder: str, output: str) -> int:
        """Starts a program on a node.

        Args:
            node: The name of the node.
            arguments: Its command line.
            folder: Its working folder, as it sees it.
            output: The file for what it prints, likewise.

        Returns:
            The number of the program.
        """
        return self._begin("start", node, arguments, folder, output)

    def talk(self, node: str, arguments: Sequence[str], *, folder: str, output: str) -> tuple[int, int]:
        """Starts a program whose standard input and output are a connection of this process; see `start`.

        Returns:
            The number of the program, and that of the connection, which is open. `output` has the program's errors only.
        """
        self._connections += 1
        return self._begin(f"talk {self._connections}", node, arguments, folder, output), self._connections

    def _begin(self, how: str, node: str, arguments: Sequence[str], folder: str, output: str) -> int:
        self._programs += 1
        words = [how, str(self._programs), node, _digits(folder), _digits(output), *map(_digits, arguments)]
        self._do(" ".join(words))
        return self._programs

    def kill(self, program: int) -> None:
        """Kills a program and its descendants. Does nothing if it has ended."""
        self._do(f"kill {program}")

    def pause(self, program: int) -> None:
        """Stops all threads of a program and of its descendants."""
        self._say(f"pause {program}")

    def resume(self, program: int) -> None:
        """Lets the threads of a program run again."""
        self._say(f"resume {program}")

    def calls(self, program: int) -> int:
        """Returns how many calls a program and its descendants have made; 0 after its end."""
        return self._ask(f"calls {program}")

    def bound(self, node: str, port: int) -> bool:
        """Returns whether a socket of a node has a port."""
        return self._ask(f"bound {node} {port}") > 0

    def lose_power(self, program: int) -> None:
        """Kills a program as a power loss does: the other ends of its connections hear nothing.

        If no other program runs on its node, the node answers nothing until one starts. Does nothing if the program has ended.
        """
        self._do(f"power {program}")

    def add_volume(self, node: str, folder: str, *, remembers: bool) -> Path:
        """Gives a folder of a node a volume of its own, with what is there; does nothing if it has one.

        Args:
            node: The name of the node.
            folder: The folder, as programs see it. It exists.
            remembers: Whether the disk of the node remembers from now on what is durable.

        Returns:
            Where this process sees the files of the folder. No program can change to what this path leads.

        Raises:
            InfrastructureError: The volume cannot be mounted, e.g. because the folder is a link.
        """
        self._say(f"volume {node} {_digits(folder)} {int(remembers)}")
        return Path(f"/proc/{self._process.pid}/root{bytes.fromhex(self._line()).decode()}")

    def fill(self, node: str, *, full: bool) -> None:
        """Fills all volumes of a node, or frees them. A full one takes no further page."""
        self._say(f"fill {node} {int(full)}")

    def takes(self, node: str) -> bool:
        """Tries to write a small file on each volume of a node. Returns whether all take it."""
        return self._ask(f"takes {node}") > 0

    def settle(self, node: str, folder: str, file: str | None = None) -> None:
        """Makes a file below a folder, or all of the folder, durable as it is.

        Args:
            node: The name of the node.
            folder: A folder with a volume.
            file: The path of the file within the folder; None: all.
        """
        self._say(f"settle {node} {_digits(folder)} {'-' if file is None else _digits(file)}")

    def fail(self, key: int, node: str, folder: str, failing: Failing) -> None:
        """Lets calls on files of a folder with a volume fail, by the rule of a fault, until `mend`."""
        what = f"{failing.call} {_digits(failing.pattern)} {failing.nth} {failing.times} {failing.error}"
        self._say(f"fail {key} {node} {_digits(folder)} {what}")

    def failed(self, key: int) -> list[Failed]:
        """Returns the calls that have failed by the rule of a fault so far."""
        self._say(f"failed {key}")
        failed = []
        while (line := self._line()) != END:
            node, time_ns, call, number, program, file = line.split(" ")
            failed.append(
                Failed(
                    node=node,
                    time_ns=int(time_ns),
                    call=call,
                    number=int(number),
                    program=_text(program),
                    file=_text(file),
                )
            )
        return failed

    def unsynced(self, node: str) -> list[int]:
        """Returns the numbers of the changes of the disk of a node that are not durable, the oldest first."""
        self._say(f"unsynced {node}")
        return [int(number) for number in self._line().split()]

    def lose(self, node: str, folder: str, what: str = "") -> Lost:
        """Lets a folder of a node lose what is not durable. No program with data there may run.

        Args:
            node: The node.
            folder: The folder.
            what: Which changes are lost: `all`, `none`, or their numbers with `+` between them, and ` torn` after that if the
                newest write that is left is there in part. Empty: what the seed draws.

        Raises:
            InfrastructureError: What is lost is not known, e.g. because a program writes a file through memory.
        """
        self._say(f"lose {node} {_digits(folder)}{' ' if what else ''}{what}")
        files, changed, lost = map(int, self._line().split(" "))
        return Lost(files=files, changed=changed, bytes=lost)

    def reseed(self, seed: int) -> None:
        """Draws by another seed from now on."""
        self._say(f"seed {seed}")

    def become_originals(self) -> None:
        """Lets all programs stand for good, so that the run goes on in copies of them, one after the other.

        Raises:
            InfrastructureError: A program cannot be copied.
        """
        self._say("originals")
        if (answer := self._line()) != DONE:
            raise InfrastructureError(f"the programs cannot be copied: {_text(answer)}")

    def copy(self) -> None:
        """Begins a copy of the originals. The one before has ended."""
        self._do("copy")

    def back(self) -> None:
        """Ends a copy, with all that it has changed."""
        self._do("back")

    def note_steps(self) -> None:
        """Lets the disks note their steps from now on."""
        self._say("steps")

    def want(self, wait: int, nodes: Sequence[str], *, call: str, pattern: str, nth: int) -> None:
        """Lets a program stand still right after the n-th step of a node from now on, until `resume`; see `Event`."""
        self._say(f"want {wait} {call} {_digits(pattern)} {nth} {' '.join(nodes)}")

    def stall(self, wait: int, node: str, *, after_ns: int, wall: bool, nth: int, length_ns: int) -> None:
        """Lets the thread stall that makes the n-th call of a node after a time, unless `wait` is dropped before."""
        self._say(f"stall {wait} {node} {after_ns} {'wall' if wall else 'any'} {nth - 1} {length_ns}")

    def drop(self, wait: int) -> None:
        """Ends what `want` and `stall` began."""
        self._say(f"drop {wait}")

    def steps(self) -> list[str]:
        """Returns the steps of the disks so far, as the controller tells them."""
        self._say("noted")
        lines = []
        while (line := self._line()) != END:
            lines.append(line)
        return lines

    def cut(self, key: int, source: str, target: str) -> None:
        """Cuts the direction from a node to another one, by the rule of a fault."""
        self._say(f"cut {key} {source} {target}")

    def disturb(self, key: int, source: str, target: str, how: Disturbance) -> None:
        """Disturbs a direction by the rule of a fault."""
        shares = f"{how.lose!r} {how.duplicate!r} {how.damage!r}"
        self._say(
            f"disturb {key} {source} {target} {shares} {how.delay_ns} {how.jitter_ns} {how.hurry!r} {how.rate!r} {how.queue_ns}"
        )

    def mend(self, key: int) -> None:
        """Removes the rules of a fault. What a cut has kept from arriving comes with its next retransmission."""
        self._say(f"mend {key}")

    def hear(self, wait: int, links: Iterable[tuple[str, str]], *, nth: int, has: bytes) -> None:
        """Waits for the n-th message from now on with a text, on one of some links; an event `passed` tells it."""
        ends = " ".join(f"{source} {target}" for source, target in sorted(links))
        self._say(f"hear {wait} {nth} -{has.hex()} {ends}")

    def ignore(self, wait: int) -> None:
        """Ends what `hear` began."""
        self._say(f"ignore {wait}")

    def dropped(self, key: int) -> dict[tuple[str, str], int]:
        """Returns how many messages the cuts of a fault have kept from arriving, by direction."""
        self._say(f"dropped {key}")
        counts = {}
        while (line := self._line()) != END:
            source, target, count = line.split(" ")
            counts[source, target] = int(count)
        return counts

    def probe(self, probe: int, source: str, target: str, size: int) -> None:
        """Sends a datagram with a number, of so many bytes, from a node to another one; see `Event`."""
        self._say(f"probe {probe} {source} {target} {size}")

    def set_link(
        self, source: str, target: str, *, least_ns: int, most_ns: int, mean_ns: int = 0, late: float = 0.0
    ) -> None:
        """Sets the delay of messages in a direction.

        Args:
            source: The node that sends.
            target: The node that receives.
            least_ns: The least delay.
            most_ns: The largest delay, but for what follows.
            mean_ns: The mean of a further delay, of which a half is constant and a half is exponential.
            late: The share of messages that are later by 300 ms on average. It needs a mean.
        """
        self._say(f"link {source} {target} {least_ns} {most_ns} {mean_ns} {late!r}")

    def set_disk(self, node: str, *, sync_ns: int) -> None:
        """Sets the mean time of a sync on a node."""
        self._say(f"sync {node} {sync_ns}")

    def slow(self, key: int, node: str, mean_ns: int) -> None:
        """Lets each sync that begins on a node take a time with this mean, by the rule of a fault, until `mend`."""
        self._say(f"slow {key} {node} {mean_ns}")

    def slowed(self, key: int) -> dict[str, SlowSyncs]:
        """Returns the syncs that have begun under the rule of a fault, by node."""
        self._say(f"slowed {key}")
        syncs = {}
        while (line := self._line()) != END:
            node, count, longest_ns, before_ns = line.split(" ")
            syncs[node] = SlowSyncs(count=int(count), longest_ns=int(longest_ns), before_ns=int(before_ns))
        return syncs

    def set_speed(self, node: str, millionths: int) -> None:
        """Lets the clocks of a node run at a speed, in millionths of the true one."""
        self._say(f"speed {node} {millionths}")

    def monotonic_ns(self, node: str) -> int:
        """Returns the monotonic clock of a node, as its programs read it."""
        return self._ask(f"shows {node}")

    def set_clock(self, node: str, offset_ns: int) -> None:
        """Sets how far the wall clock of a node is ahead of the true time."""
        self._say(f"offset {node} {offset_ns}")

    def ahead_ns(self, node: str) -> int:
        """Returns how far the wall clock of a node is ahead of the true time, as its programs read it."""
        return self._ask(f"ahead {node}")

    def connect(self, address: str, port: int) -> int:
        """Begins to connect to an address. Returns the number of the connection."""
        self._connections += 1
        self._say(f"connect {self._connections} {address} {port}")
        return self._connections

    def send(self, connection: int, content: bytes) -> None:
        """Sends bytes. A connection that has ended takes none."""
        if content:
            self._say(f"send {connection} {content.hex()}")

    def finish(self, connection: int) -> None:
        """Sends no more over a connection, which goes on to receive."""
        self._say(f"finish {connection}")

    def close(self, connection: int) -> None:
        """Closes a connection."""
        self._say(f"close {connection}")

    def wait(self, until_ns: int | None) -> list[Event]:
        """Lets the simulation run until an event or a time, and returns the events.

        Args:
            until_ns: The virtual time; None: until an event, or until nothing can happen any more.

        Raises:
            InfrastructureError: The run cannot go on, e.g. because a program makes a call that the simulation does not know.
        """
        self._say(f"wait {'-' if until_ns is None else until_ns}")
        events = []
        while (line := self._line()) != END:
            kind, _, rest = line.partition(" ")
            if kind == "at":
                self.now_ns = int(rest)
            else:
                events.append(_event(kind, rest))
        return events

    def figures(self) -> Figures:
        """Returns what the run did so far."""
        self._say("figures")
        digest, trace, figures, calls = "", "", dict[str, int](), dict[str, int]()
        while (line := self._line()) != END:
            kind, _, rest = line.partition(" ")
            if kind == "digest":
                digest = rest
            elif kind == "trace":
                trace = rest
            elif kind == "call":
                name, _, count = rest.partition(" ")
                calls[name] = int(count)
            else:
                figures[kind] = int(rest)
        return Figures(digest=digest, trace=trace, figures=figures, calls=calls)

    def stop(self) -> None:
        """Ends the controller, and with it all its programs. Idempotent."""
        with contextlib.suppress(OSError):
            self._to.close()
        # The controller writes the end of its log before it ends. A write to a closed pipe would end it before that.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(FLUSH_S)
        with contextlib.suppress(OSError):
            self._from.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Returns the process id of the controller, whose mount namespace has the files of the nodes."""
        return self._process.pid

    def _do(self, line: str) -> None:
        """Sends a line, and waits until it is carried out."""
        self._say(line)
        if self._line() != DONE:
            raise self._lost()

    def _ask(self, line: str) -> int:
        self._say(line)
        return int(self._line())

    def _say(self, line: str) -> None:
        if self._broken is not None:
            raise InfrastructureError(str(self._broken))
        try:
            self._to.write(f"{line}\n".encode())
            self._to.flush()
        except OSError as error:
            raise self._lost() from error

    def _line(self) -> str:
        line = self._from.readline()
        if not line.endswith(b"\n"):
            raise self._lost()
        return line[:-1].decode()

    def _lost(self) -> InfrastructureError:
        """Returns the error about a controller that ended by itself. All that follows has the same error."""
        with contextlib.suppress(OSError):
            self._to.close()
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        errors = cast("IO[bytes]", self._process.stderr)
        said = errors.read(MAX_ERROR).decode(errors="replace").strip() or _end(status)
        self._broken = InfrastructureError(f"the simulation of Linux programs broke off: {said}")
        return self._broken


def _end(status: int) -> str:
    """Returns how a controller ended that said nothing."""
    if status >= 0:
        return f"its controller ended with status {status}"
    name = signal.Signals(-status).name
    return f"its controller was killed with {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")


def _digits(text: str) -> str:
    return text.encode().hex()


def _text(digits: str) -> str:
    return bytes.fromhex(digits).decode(errors="replace")


def _event(kind: str, rest: str) -> Event:
    first, *others = rest.split(" ")
    match kind:
        case "bytes":
            return Event(kind=kind, id=int(first), content=bytes.fromhex(others[0]))
        case "failed" | "exited":
            return Event(kind=kind, id=int(first), number=int(others[0]))
        case "stands":
            return Event(kind=kind, id=int(first), number=int(others[0]), step=" ".join(others[1:]))
        case "passed":
            source, target, content = others
            return Event(kind=kind, id=int(first), link=(source, target), content=bytes.fromhex(content))
        case "arrived":
            return Event(kind=kind, id=int(first), number=int(others[0]), damaged=others[1] == "1")
        case _:
            return Event(kind=kind, id=int(first))
