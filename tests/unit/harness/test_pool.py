"""Tests of `harness.pool`."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from checker.formats.errors import BadHistory
from harness.errors import CommandTimeout, InputError
from harness.pool import Pool
from results.pipeline.errors import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from harness.errors import LabrysError

PARENT = """
import os, time
from harness.pool import Pool
if __name__ == "__main__":
    with Pool(1, int) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 60).result()
"""


def test_a_killed_process_takes_its_pool_along(tmp_path: Path) -> None:
    """A process of a pool ends when its parent is killed, even while it has work."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 20
    while _lives(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(worker)


def test_ctrl_c_does_not_reach_a_pool() -> None:
    """SIGINT changes nothing in a process of a pool, and work goes on."""
    with Pool(1, int) as pool:
        worker = pool.submit(os.getpid).result()
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result() == worker


def test_a_pool_drops_work_that_has_not_begun() -> None:
    """The end of the context waits for work that runs, and cancels the rest."""
    with Pool(1, int) as pool:
        futures = [pool.submit(time.sleep, 0.2) for _ in range(20)]
    assert any(future.cancelled() for future in futures)


def test_an_interrupted_pool_does_not_wait() -> None:
    """After Ctrl-C, the end of the context ends the processes, whatever work they have."""
    began_s = time.monotonic()
    with suppress(KeyboardInterrupt), Pool(1, int) as pool:
        worker = pool.submit(os.getpid).result()
        pool.submit(time.sleep, 60)
        raise KeyboardInterrupt
    assert time.monotonic() - began_s < 30
    assert not _lives(worker)


@pytest.mark.parametrize(
    "error", [InputError("no"), CommandTimeout("n1", "ls", 2.0), Unreadable("/a", "is odd"), BadHistory("h", 3, "bad")]
)
def test_errors_pass_between_processes(error: LabrysError) -> None:
    """An error keeps its text, its attributes and its notes."""
    error.add_note("see the log")
    passed = pickle.loads(pickle.dumps(error))  # noqa: S301 - it is of this test
    assert (type(passed), str(passed), vars(passed)) == (type(error), str(error), vars(error))


def _lives(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
