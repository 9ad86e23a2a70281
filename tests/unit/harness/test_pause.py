"""A pause returns when no thread of the process runs: a thread stops only when it gets a processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.daemon import Daemon
from harness.errors import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.remote import Remote

SERVER = Daemon(role="front", argv=("front",), pattern="^front ", ports=(), data_dir="/d", log_files=("/l",))
RUNS = "7 (a) b) T 1\n8 (c) R 1\n"


class Here:
    """A shell on this machine, whose `pgrep` finds one process.

    With looks at its threads, `cat` prints one after the other, and the last one for ever.
    """

    node = "n1"

    def __init__(self, folder: Path, pid: int, looks: Sequence[str] = ()) -> None:
        self.folder = folder
        self.program("pgrep", f"echo {pid}")
        for number, look in enumerate(looks):
            (folder / f"look-{number}").write_text(look)
        if looks:
            self.program("cat", f"set -- {folder}/look-*; sed -n p <$1; [ $# = 1 ] || rm $1")
            self.program("sleep", "")

    def program(self, name: str, script: str) -> None:
        """Puts a program before those of the machine."""
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def run(self, command: str, **_: Any) -> None:
        """Carries the command out."""
        path = f"{self.folder}:{os.environ['PATH']}"
        ended = subprocess.run(["sh", "-c", command], env={"PATH": path}, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise CommandFailed(self.node, command, status=ended.returncode, stderr=ended.stderr)


@pytest.fixture
def threads() -> Iterator[int]:
    """The pid of a process with four threads."""
    four = (
        "import sys, threading\nfor _ in range(3): threading.Thread(target=sys.stdin.read).start()\nprint(flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", four], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_all_threads_of_a_process_are_stopped(tmp_path: Path, threads: int) -> None:
    """They are in state T when the pause returns."""
    SERVER.pause(cast("Remote", Here(tmp_path, threads)))
    states = [path.read_text().rpartition(") ")[2][0] for path in Path(f"/proc/{threads}/task").glob("*/stat")]
    assert states == ["T"] * 4


def test_a_pause_waits_for_the_last_thread(tmp_path: Path, threads: int) -> None:
    """A thread that sleeps or runs was not stopped yet; one that waits in the kernel, or that ended, does not count."""
    looks = ["7 (a) b) T 1\n8 (c) S 1\n", RUNS, "7 (a) b) T 1\n8 (c) D 1\n9 (d) Z 1\n"]
    SERVER.pause(cast("Remote", Here(tmp_path, threads, looks)))
    assert [path.name for path in tmp_path.glob("look-*")] == ["look-2"]


def test_a_thread_that_does_not_stop_is_named(tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has its number and its state."""
    monkeypatch.setattr("harness.daemon.PAUSE_WAIT_S", 1)
    named = rf"process {threads} got SIGSTOP, and after 1 s these threads still run: 8 \(R\)"
    with pytest.raises(CommandFailed, match=named):
        SERVER.pause(cast("Remote", Here(tmp_path, threads, [RUNS])))


def test_a_process_that_does_not_run_is_named(tmp_path: Path, threads: int) -> None:
    """The error has its role."""
    here = Here(tmp_path, threads)
    here.program("pgrep", "exit 1")
    with pytest.raises(CommandFailed, match="the process front does not run"):
        SERVER.pause(cast("Remote", here))
