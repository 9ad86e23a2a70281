"""Processes that foreign code leaves on this machine are named and ended, and no others."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

from harness.children import Left

if TYPE_CHECKING:
    from collections.abc import Iterator

SLEEPS = ("sleep", "300")
DEAF = ("sh", "-c", "trap '' TERM; echo deaf; sleep 300; sleep 300")


@contextlib.contextmanager
def started(*commands: tuple[str, ...]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Starts commands, and ends what is left of them."""
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def runs(pid: int) -> bool:
    """Returns whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_began_in_between_is_named_and_ended() -> None:
    """A process that ignores SIGTERM gets SIGKILL, and its own child ends too."""
    with started(SLEEPS) as earlier:
        left = Left()
        with started(SLEEPS, DEAF) as processes:
            assert processes[1].stdout is not None
            processes[1].stdout.readline()
            left.note()
            with started(SLEEPS) as later:
                names = left.end()
                assert runs(later[0].pid)
            assert f"{processes[0].pid} (`sleep 300`)" in names
            assert any(name.startswith(f"{processes[1].pid} (`sh -c trap") for name in names)
            assert len(names) == 3
            assert not runs(processes[0].pid)
            assert not runs(processes[1].pid)
        assert runs(earlier[0].pid)


def test_what_has_ended_by_itself_is_not_named() -> None:
    """An installation may use processes."""
    left = Left()
    with started(("true",)) as (process,):
        process.wait()
        assert left.end() == []
