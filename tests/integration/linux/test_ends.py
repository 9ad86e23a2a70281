"""Whoever is killed with SIGKILL, the controller or Labrys: no program, no namespace and no mount is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from clusters.sim.linux.building import BINARY, controller
from tests.by_seed import EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration
WORDS: Final = ("--system", EXAMPLE, "--nodes", "2", "--rate", "50", "--time-limit", "300", "--seed", "1")
ROOT: Final = Path(__file__).parents[3]
BEGIN_S: Final = 60.0
END_S: Final = 60.0
AT_ONCE_S: Final = 2.0
OPERATIONS: Final = 5000  # bytes of a history in the middle of a workload


def parents() -> dict[int, tuple[int, str]]:
    """Returns the parent and the name of each process of this machine."""
    by_pid = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text(errors="replace").partition("(")[2].rpartition(")")
            by_pid[int(path.parent.name)] = (int(rest.split()[1]), name)
    return by_pid


def below(pid: int) -> set[int]:
    """Returns the processes below a process."""
    of, family = parents(), {pid}
    while more := {child for child, (parent, _) in of.items() if parent in family} - family:
        family |= more
    return family - {pid}


def space(pid: int) -> str | None:
    """Returns the mount namespace of a process; None if it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return None


def is_left(pids: set[int], mounts: str) -> bool:
    """Returns whether one of some processes runs, or any process uses a mount namespace."""
    states = {pid: name for pid, (_, name) in parents().items()}
    return any(pid in states and space(pid) == mounts for pid in pids) or any(space(pid) == mounts for pid in states)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int, set[int], str]]:
    """Starts a run, and waits until its programs do. Yields it, its controller, the programs, and their mount namespace."""
    controller(lambda _: None)
    words = [sys.executable, "-m", "cli", "test", "--cluster", "sim", *WORDS, "--store", str(folder)]
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as labrys:
        try:
            deadline_s = time.monotonic() + BEGIN_S
            programs: set[int] = set()
            while (
                len(programs) < 5 and time.monotonic() < deadline_s
            ):  # the first one of their namespace, and two of each node
                time.sleep(0.05)
                of = parents()
                pids = [
                    pid
                    for pid in below(labrys.pid)
                    if of.get(pid, (0, ""))[1] == BINARY[:15] and of[pid][0] == labrys.pid
                ]
                programs = below(pids[0]) if pids else set()
            while not any(path.stat().st_size > OPERATIONS for path in folder.glob("*/2*/history.jsonl")):
                assert time.monotonic() < deadline_s, labrys.poll()
                time.sleep(0.05)
            mounts = space(pids[0])
            assert len(programs) >= 5, labrys.poll()
            assert mounts is not None
            assert mounts != space(os.getpid())
            yield labrys, pids[0], {pids[0], *below(pids[0])}, mounts
        finally:
            labrys.kill()


def test_a_killed_controller_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    """There is no verdict, the history up to then stays, and the folder of files is gone."""
    with running(tmp_path) as (labrys, controlling, programs, mounts):
        os.kill(controlling, signal.SIGKILL)
        output, _ = labrys.communicate(timeout=END_S)
        assert labrys.returncode == 255
        assert "the simulation of Linux programs broke off: its controller was killed with SIGKILL" in output
        assert "Traceback" not in output
        assert not is_left(programs, mounts)
        assert list(tmp_path.glob("labrys-linux-*")) == []
        assert list(tmp_path.glob("*/2*/results.json")) == []


COMPUTING = """
import sys
from pathlib import Path
from clusters.sim.linux.building import controller
from clusters.sim.linux.driving import Controller, Parts
parts = Parts(seed=1, root=Path(sys.argv[1]), nodes={"n1": "10.0.0.1"}, shown=[Path("/usr")])
run = Controller(controller(lambda _: None), parts)
run.start("n1", ["/usr/bin/sh", "-c", "i=0; while :; do i=$((i+1)); done"], folder="/root", output="/root/output")
print(run.pid, flush=True)
run.wait(None)
"""


def test_a_program_that_computes_does_not_outlive_this_process(tmp_path: Path) -> None:
    """The controller notices the end of its driver while it waits for the next call of a program."""
    with subprocess.Popen([sys.executable, "-c", COMPUTING, tmp_path], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        controlling = int(driver.stdout.readline())
        mounts = space(controlling)
        time.sleep(0.5)
        programs = {controlling, *below(controlling)}
        driver.kill()
    assert mounts is not None
    assert len(programs) == 3
    deadline_s = time.monotonic() + AT_ONCE_S
    while is_left(programs, mounts) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert not is_left(programs, mounts)


def test_nothing_outlives_labrys(tmp_path: Path) -> None:
    """The controller and all programs end at once, whatever they are doing."""
    with running(tmp_path) as (labrys, _, programs, mounts):
        labrys.kill()
        labrys.wait(END_S)
        deadline_s = time.monotonic() + AT_ONCE_S
        while is_left(programs, mounts) and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert not is_left(programs, mounts)
        assert "labrys-linux" not in Path("/proc/self/mountinfo").read_text()


def test_a_hunt_ends_quietly_with_a_signal_to_all_its_processes(tmp_path: Path) -> None:
    """As from a terminal, or from the manager of a service: no run breaks off, no next one begins, and the summary is true."""
    controller(lambda _: None)
    words = (
        "hunt", "--system", f"{ROOT}/examples/own_binary/system.py:OwnBinary", "--workload", "register", "--nodes", "1",
        "--runs", "3", "--minutes", "2", "--jobs", "1", "--time-limit", "60", "--rate", "200", "--seed", "1",
    )  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "cli", *words], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as hunt:  # fmt: skip
        try:
            deadline_s = time.monotonic() + BEGIN_S
            while not any(name == "kv" for pid in below(hunt.pid) for _, name in [parents().get(pid, (0, ""))]):
                assert hunt.poll() is None
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            os.killpg(hunt.pid, signal.SIGTERM)
            printed, _ = hunt.communicate(timeout=END_S)
        finally:
            hunt.kill()
    assert hunt.returncode == 130, printed
    assert "broke off" not in printed
    assert "closing a client" not in printed
    assert "\n0 runs in " in printed
    assert "0 invalid, 0 valid, 0 unknown" in printed
