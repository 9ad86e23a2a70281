"""Programs in virtual time: when one is quiet, and what a seed repeats."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from clusters.pipes.kernel import Activity, Watch
from clusters.pipes.links import LEAST_NS, GivenLinks, LatencyDist
from clusters.pipes.transcript import IN, OUT, Transcript
from commands.run.again import compared
from harness.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_S: Final = 10.0
# A program that makes one system call again and again.
CALLS: Final = """
import ctypes, platform
call, time, word = ctypes.CDLL(None).syscall, ctypes.c_long * 2, ctypes.byref(ctypes.c_int(0))
while True: call({{'x86_64': {0}}}[platform.machine()], {1})
"""
PROGRAMS: Final = {
    "import sys; sys.stdin.read()": Activity.WAITS,
    "import time; time.sleep(60)": Activity.SLEEPS,
    "import select, sys; select.select([sys.stdin], [], [])": Activity.WAITS,
    "import select, sys; select.select([sys.stdin], [], [], 60)": Activity.SLEEPS,
    "import threading as t, sys; t.Thread(target=t.Event().wait, daemon=True).start(); sys.stdin.read()": Activity.WAITS,
    "import threading, sys; threading.Timer(60, print).start(); sys.stdin.read()": Activity.SLEEPS,
    "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])": Activity.SLEEPS,
    "while True: pass": Activity.RUNS,
    "import os; os.kill(os.getpid(), 19)": Activity.WAITS,  # it has stopped itself
    CALLS.format("202, 'aarch64': 98", "word, 128, 0, time(60, 0)"): Activity.WAITS,  # as a thread of Go's runtime
    CALLS.format("202, 'aarch64': 98", "word, 128, 0, time(59, 0)"): Activity.SLEEPS,
    CALLS.format("35, 'aarch64': 101", "time(0, 10_000_000), None"): Activity.NAPS,
    CALLS.format("35, 'aarch64': 101", "time(1, 0), None"): Activity.SLEEPS,
}


@pytest.mark.parametrize(("code", "expected"), PROGRAMS.items())
def test_what_a_process_does_is_read_from_the_kernel(code: str, expected: Activity) -> None:
    """Waits without a limit, sleeps with one, also in another thread or another process."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        watch = Watch(process.pid)
        try:
            if expected is Activity.RUNS:
                seen = {watch.activity() for _ in range(100)}
                assert seen == {Activity.RUNS}
                return
            deadline_s = time.monotonic() + LIMIT_S
            while (activity := watch.activity()) is Activity.RUNS and time.monotonic() < deadline_s:
                time.sleep(0.001)
            # While Python starts, it may sleep for a moment in a call that nobody has in the table.
            while activity is not expected and time.monotonic() < deadline_s:
                time.sleep(0.001)
                activity = watch.activity()
            assert activity is expected
        finally:
            watch.close()
            os.killpg(process.pid, signal.SIGKILL)


def test_the_first_difference_of_two_runs_is_the_earliest(tmp_path: Path) -> None:
    """Not the first node with a difference counts, but the first moment."""
    runs = []
    for number in (1, 2):
        run = {}
        for node, said in (("n0", f"late {number}"), ("n1", f"early {number}")):
            path = tmp_path / f"{node}-{number}.log"
            transcript = Transcript()
            transcript.add(0, IN, b"init")
            transcript.add((9 if node == "n0" else 2) * NS_PER_S, OUT, said.encode())
            transcript.copy(path)
            transcript.close()
            run[node] = path
        runs.append(run)
    equal, difference = compared(*runs)
    assert equal == 2
    assert difference is not None
    assert difference.startswith("The first difference is in message 2 of n1: 2.000000 < early 1 in the first run")
    assert compared(runs[0], runs[0]) == (4, None)


def test_a_run_that_is_longer_differs(tmp_path: Path) -> None:
    """A message that only one run has is a difference."""
    short, long = tmp_path / "short", tmp_path / "long"
    short.write_text("0.000000 > init\n")
    long.write_text("0.000000 > init\n1.000000 < more\n")
    _, difference = compared({"n0": short}, {"n0": long})
    assert difference is not None
    assert "nothing in the first run, and 1.000000 < more in the second" in difference


@pytest.mark.parametrize("dist", list(LatencyDist))
def test_given_links_have_the_mean_that_was_given(dist: LatencyDist) -> None:
    """Constant is exact; the others have the mean over many messages, and uniform is at most twice as large."""
    mean_ns = 100 * NS_PER_MS
    links = GivenLinks(1, ["n0", "n1"], mean_ns=mean_ns, dist=dist)
    drawn = [links.delay_ns("n0", "n1") for _ in range(5000)]
    assert abs(sum(drawn) / len(drawn) - mean_ns) < 0.06 * mean_ns
    if dist is LatencyDist.CONSTANT:
        assert set(drawn) == {mean_ns}
    if dist is LatencyDist.UNIFORM:
        assert max(drawn) <= 2 * mean_ns
    assert GivenLinks(1, ["n0", "n1"], mean_ns=0, dist=dist).delay_ns("n0", "n1") == LEAST_NS
