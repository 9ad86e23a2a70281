"""Feeds the recorded messages of one node to its program alone, so that a debugger or a print statement shows what it does.

The program gets each line that the node got, in the same order. Before the next one, it must have said what the node had said
by then. It starts again where the node did, at each `init`, with the same folder and the same `LABRYS_SEED`. The command comes
from the command line only, because a run may come from anyone.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.pipes.child import Child
from clusters.pipes.command import environment_of
from clusters.pipes.keeper import Keeper
from clusters.sim.machine import random_of
from harness.console import below
from harness.console.documents import parse_json, shown
from harness.console.plain import counted, name, one_line
from harness.console.terminal import echo
from harness.errors import ExitCode, InputError
from results.logs.transcripts import FILE, left_out_of, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from results.logs.transcripts import Line
    from results.record.record import RunRecord
    from results.store.store import Run

MAX_BYTES: Final = 256 << 20  # of a transcript; a run keeps less, and one of an earlier version no more
MAX_LINE: Final = 32 << 20
MAX_SHOWN: Final = 2000
NOTHING: Final = "nothing"
LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a program said.

    Attributes:
        same: How many lines were as recorded.
        starts: How often it started.
        fed: How many lines it got.
        expected: The first recorded line that it did not say; None if it said all.
        came: What it said instead; None if nothing came.
        why: Why nothing came.
    """

    same: int
    starts: int
    fed: int
    expected: Line | None = None
    came: bytes | None = None
    why: str = ""

    @property
    def code(self) -> ExitCode:
        """Returns the exit code: valid, invalid after a line that differs, or unknown if no line was compared."""
        if self.expected is not None:
            return ExitCode.INVALID
        return ExitCode.VALID if self.same else ExitCode.UNKNOWN

    def sentences(self, node: str) -> list[str]:
        """Returns the result as sentences."""
        started = "" if self.starts == 1 else f" in {counted(self.starts, 'start')}"
        head = (
            f"{name(node)} got {counted(self.fed, 'message')}{started}, and wrote the same {counted(self.same, 'line')}"
        )
        if self.expected is None:
            return [f"{head}."]
        came = self.why if self.came is None else _shown(self.came)
        return [
            f"{head} until line {self.expected.number} of {FILE}, at {self.expected.seconds:.6f} s.",
            f"expected  {_shown(self.expected.text)}",
            f"came      {came}",
        ]


def recorded_lines(run: Run, record: RunRecord, node: str) -> list[Line]:
    """Returns the transcript of a node.

    Raises:
        InputError: The run has none.
    """
    if node not in record.test.nodes:
        known = ", ".join(map(name, record.test.nodes[:8]))
        raise InputError(f"--node names {shown(node)}; the nodes of {run.path} are {known}")
    path = run.nodes_dir / node / FILE
    try:
        with below.open_file(run.path, path) as file:
            return list(lines_of(file, most_bytes=MAX_BYTES, most_line=MAX_LINE))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"{path} cannot be read: {reason}. Only runs of programs with pipes (--cluster pipes) record messages"
        ) from error


def end_of(run: Run, node: str) -> str:
    """Returns a sentence about what the transcript of a node leaves out; empty if it is whole."""
    with below.open_file(run.path, run.nodes_dir / node / FILE) as file:
        left = left_out_of(file)
    return (
        "" if left is None else f"{FILE} leaves out {left.what}, from {left.from_s:.6f} s on; they were not compared."
    )


def replayed(
    lines: Iterable[Line], command: Sequence[str], *, seed: int, node: str, until_s: float | None, wait_s: float
) -> Replayed:
    """Feeds a transcript to a program, up to the first line that differs.

    Args:
        lines: The transcript.
        command: The program with its arguments.
        seed: The seed of the run.
        node: The name of the node.
        until_s: Later lines are left out; None: none.
        wait_s: How long it waits for a line.

    Raises:
        InputError: The transcript does not begin with a start.
        InfrastructureError: The program cannot be started.
    """
    directory = Path(tempfile.mkdtemp(prefix="labrys-replay-"))
    keeper = Keeper(directory)
    talk: _Talk | None = None
    same = starts = fed = 0
    try:
        for line in lines:
            if until_s is not None and line.seconds > until_s:
                break
            if line.is_in and _begins(line.text):
                if talk is not None:
                    talk.end()
                starts += 1
                talk = _Talk(Child(keeper, command, directory, environment_of(random_of(seed, node, starts))))
            if talk is None:
                raise InputError(
                    f"line {line.number} of {FILE} comes before the first init, so the transcript is not whole"
                )
            if line.is_in:
                fed += 1
                talk.child.write(line.text + b"\n")
                continue
            came = talk.line(wait_s)
            if came != line.text:
                return Replayed(same=same, starts=starts, fed=fed, expected=line, came=came, why=talk.why)
            same += 1
    finally:
        if talk is not None:
            talk.end()
        keeper.close()
        shutil.rmtree(directory, ignore_errors=True)
    return Replayed(same=same, starts=starts, fed=fed)


def _begins(text: bytes) -> bool:
    """Returns whether a line on stdin is `init`, the first one of each start."""
    if b'"init"' not in text:
        return False
    with contextlib.suppress(InputError):
        message = parse_json(text, "the message")
        body = message.get("body") if isinstance(message, dict) else None
        return isinstance(body, dict) and body.get("type") == "init"
    return False


class _Talk:
    """A program that runs.

    Attributes:
        child: Its process.
        why: Why the last line did not come.
    """

    def __init__(self, child: Child) -> None:
        self.child = child
        self.why = ""
        self._out = bytearray()
        self._err = bytearray()

    def line(self, wait_s: float) -> bytes | None:
        """Returns the next line of stdout; None if none comes in time, or if the program has ended."""
        deadline_s = time.monotonic() + wait_s
        while b"\n" not in self._out:
            if self.child.stdout in self.child.ended:
                status = self.child.wait(wait_s)
                self.why = f"{NOTHING}: the program ended with status {status}"
                return None
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                self.why = f"{NOTHING} in {wait_s:g} s"
                return None
            self.child.wait_for_output(min(left_s, LOOK_S))
            self.child.flush()
            self._pull()
        text, _, rest = bytes(self._out).partition(b"\n")
        self._out[:] = rest
        return text

    def _pull(self) -> None:
        """Takes what the program wrote, and shows its stderr."""
        self._out += self.child.read(self.child.stdout)
        self._err += self.child.read(self.child.stderr)
        *lines, rest = bytes(self._err).split(b"\n")
        self._err[:] = rest
        for line in lines:
            echo(line.decode("utf-8", "replace"), err=True)

    def end(self) -> None:
        """Ends the program, and shows the rest of its stderr."""
        self._pull()
        if self._err:
            echo(bytes(self._err).decode("utf-8", "replace"), err=True)
        self.child.kill()


def _shown(line: bytes) -> str:
    return one_line(line.decode("utf-8", "replace"))[:MAX_SHOWN]
