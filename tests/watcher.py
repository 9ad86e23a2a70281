"""The process that watches those that run tests (`tests.watching`), from outside.

It ends a process whose test has taken much longer than its limit, with all that the process has started. It ends what a process
has left that died. And it ends the whole run if that takes longer than its own limit. Each time it writes to stderr which tests
ran, and their stacks. It ends when the first process of the run does.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from harness import children
from harness.children import PROC, Process

MARK: Final = "LABRYS_TESTED_BY"  # in the environment of what a process starts: who it is
STACKS: Final = signal.SIGUSR2  # a process that runs tests answers with its stacks, whatever it does
POLL_S: Final = 0.5
WRITING_S: Final = 1.0  # how long a process has to write its stacks


class Running(NamedTuple):
    """What a process that runs tests says about itself."""

    process: Process
    name: str
    test: str | None
    since_s: float
    limit_s: float | None

    @property
    def who(self) -> str:
        """The process."""
        return f"{self.name} (process {self.process.pid})"

    @property
    def what(self) -> str:
        """The test."""
        return f"{self.test}, begun {time.monotonic() - self.since_s:.0f} s ago" if self.test else "no test"


def main() -> None:
    """Watches the run whose processes write into a folder.

    The arguments are the folder, the pid of the run's first process, the seconds that a process has after a limit to end a test
    or itself, and the limit of the run in seconds.
    """
    folder, first = Path(sys.argv[1]), children.found(int(sys.argv[2]))
    grace_s, limit_s = map(float, sys.argv[3:5])
    overdue: list[Running] = []
    run_end_s, killed_s = time.monotonic() + limit_s, math.inf
    while first is not None and children.runs(first) and not select.select([0], [], [], POLL_S)[0]:
        _look(folder, grace_s)
        if time.monotonic() > run_end_s and killed_s == math.inf:
            _tell(f"the run takes longer than {limit_s:g} s, and ends. This still runs:")
            overdue = _running(folder)
            _show(overdue)
            killed_s = time.monotonic() + grace_s
            _send(first, signal.SIGINT)  # pytest then shows what has failed until now
        if time.monotonic() > killed_s:
            _tell("the run does not end, and is killed.")
            _kill(first, folder)
    end_s = time.monotonic() + grace_s
    while (running := _running(folder)) and time.monotonic() < end_s:
        _look(folder, grace_s)
        time.sleep(POLL_S)
    for one in running:
        _tell(f"the run has ended, and {one.who} still runs {one.what}. It is killed.")
        _kill(one.process, folder)
    for one in overdue:
        _end_left(one.process)
    shutil.rmtree(folder, ignore_errors=True)


def _running(folder: Path) -> list[Running]:
    """Returns what the processes have written that did not end as they should."""
    running = []
    for file in sorted(folder.iterdir() if folder.is_dir() else ()):
        if file.name.isdecimal():
            with contextlib.suppress(FileNotFoundError):
                said = json.loads(file.read_text(encoding="utf-8"))
                process = Process(int(file.name), said["start"])
                running.append(Running(process, said["name"], said["test"], said["since_s"], said["limit_s"]))
    return running


def _look(folder: Path, grace_s: float) -> None:
    """Ends what has died, and what takes too long."""
    for one in _running(folder):
        if not children.runs(one.process):
            _tell(f"{one.who} has died. It ran {one.what}.")
            _kill(one.process, folder)
        elif one.limit_s is not None and time.monotonic() - one.since_s > one.limit_s + grace_s:
            _tell(f"{one.who} does not end {one.what}, whose limit is {one.limit_s:g} s. It is killed.")
            _show([one])
            _kill(one.process, folder)


def _show(running: list[Running]) -> None:
    """Lets processes write their stacks."""
    for one in running:
        _tell(f"{one.who} runs {one.what}.")
        _send(one.process, STACKS)
        time.sleep(WRITING_S)


def _kill(process: Process, folder: Path) -> None:
    """Kills a process that runs tests, and ends what it has started."""
    _send(process, signal.SIGSTOP)  # so that it starts nothing more
    _end_left(process)
    _send(process, signal.SIGKILL)
    _end_left(process)
    (folder / str(process.pid)).unlink(missing_ok=True)


def _end_left(process: Process) -> None:
    """Ends what a process has started."""
    started = marked(process)
    if children.runs(process):
        started |= children.below(process.pid)
    if names := children.end(one for one in started if one.pid != os.getpid()):
        _tell(f"process {process.pid} has left these, which are ended: {', '.join(names)}.")


def mark(process: Process) -> str:
    """Returns the value of `MARK` in the environment of what a process starts."""
    return f"{process.pid}.{process.start}"


def marked(starter: Process) -> set[Process]:
    """Returns what a process has started, also what has left it; without what has removed the mark from its environment."""
    variable = f"{MARK}={mark(starter)}".encode()
    starters = set()
    for folder in PROC.iterdir() if PROC.is_dir() else ():
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            if folder.name.isdecimal() and variable in (folder / "environ").read_bytes().split(b"\0"):
                starters.add(children.found(int(folder.name)))
    return {process for process in starters if process is not None and process != starter}


def _send(process: Process, number: signal.Signals) -> None:
    if children.runs(process):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(process.pid, number)


def _tell(sentence: str) -> None:
    sys.stderr.write(f"\ntests: {sentence}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
