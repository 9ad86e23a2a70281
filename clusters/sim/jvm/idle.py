"""The JVMs of this process that have no run now. The next run takes one of them, because a new JVM needs seconds.

A run in such a JVM is the same as in a new one; `io.labrys.simjvm.run.Statics` explains how.

A JVM that compiles little is ready soon. After many runs, another one takes its place, which compiles what is hot as well as it
can. It needs about 6 s of processor time more until its 40th run, and half as much for each later run. A caller that knows of
many runs has such a JVM from the beginning; see `expect`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.sim.jvm.pipe import LOG_FILE, Jvm
from harness.errors import InfrastructureError
from harness.leftovers import own_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

MEMORY: Final = Path("/dev/shm")  # noqa: S108 - files of nodes are in memory, if the machine has such a place

PREFIX: Final = "labrys-sim-"  # the id of the process follows

MANY_RUNS: Final = 60

_idle: list[Jvm] = []
_many_follow = False
os.register_at_fork(after_in_child=_idle.clear)  # they belong to the parent


def expect(runs: int) -> None:
    """Notes how many runs this process will have. If they are many, each new JVM is one for many runs."""
    global _many_follow  # noqa: PLW0603 - as long as the process
    _many_follow = runs >= MANY_RUNS


def take(command: Sequence[str], lasting: Sequence[str] | None = None) -> Jvm:
    """Returns a JVM without a run; starts one if there is none.

    Args:
        command: The command line of a JVM that is ready soon.
        lasting: The command line of the JVM that takes its place after `MANY_RUNS` runs, or comes first if many follow; None if
            none does.

    Raises:
        InfrastructureError: It cannot be started.
    """
    few, many = tuple(command), tuple(lasting or command)
    for index, jvm in enumerate(_idle):
        if jvm.command in {few, many}:
            del _idle[index]
            if jvm.command == many or jvm.runs < MANY_RUNS:
                return jvm
            _close(jvm)
            return _started(many)
    return _started(many if _many_follow else few)


def _started(command: Sequence[str]) -> Jvm:
    parent = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
    directory = own_folder(PREFIX, parent)
    try:
        return Jvm(command, directory)
    except InfrastructureError:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def give_back(jvm: Jvm) -> None:
    """Ends the run of a JVM and removes its files. Ends the JVM too if it cannot have another run.

    Raises:
        InfrastructureError: The end of the run failed.
    """
    try:
        if jvm.usable:
            jvm.end()
            jvm.runs += 1
    finally:
        if jvm.usable:
            for path in jvm.directory.iterdir():
                if path.name != LOG_FILE:
                    shutil.rmtree(path)
            _idle.append(jvm)
        else:
            _close(jvm)


@atexit.register
def close_all() -> None:
    """Ends the JVMs that have no run."""
    while _idle:
        _close(_idle.pop())


def _close(jvm: Jvm) -> None:
    jvm.close()
    shutil.rmtree(jvm.directory, ignore_errors=True)
