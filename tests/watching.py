"""Ends a test that runs for too long, with what it has started, and says where it was.

Each process that runs tests does this itself, if it can: SIGALRM fails the test, and the report shows the stacks of all
threads. The test's own clean-up then works as after any failure, and the next test runs.

Native code, or code that catches the exception, keeps a process from it. And no process can tell that it has died. So another
process (`tests.watcher`) watches those that run tests. Each writes into a file what it runs, and how long it may take.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import pytest_timeout

from harness import children
from harness.children import Process
from tests.watcher import MARK, STACKS, mark, marked

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = "labrys_watched"  # what a worker of xdist learns from the process that started it
BEGAN: Final = pytest.StashKey[float]()
TIMED_OUT: Final = pytest.StashKey[bool]()


class Watching:
    """The plugin of a process that runs tests, or that has workers run them."""

    def __init__(self, config: pytest.Config) -> None:
        """Tells the watcher of this process, and starts one if no other process of this run did."""
        given = getattr(config, "workerinput", None)
        self._folder = Path(given[FOLDER] if given else tempfile.mkdtemp(prefix="labrys-tests-"))
        self._own = children.found(os.getpid()) or Process(os.getpid(), "")  # there is no /proc
        self._name = given["workerid"] if given else "pytest"
        os.environ[MARK] = mark(self._own)
        self._stderr = os.dup(2)  # a test's own is captured
        faulthandler.register(STACKS, file=self._stderr, all_threads=True)
        self._write(None, None)
        self._watcher = None if given else self._watch(config)

    def _watch(self, config: pytest.Config) -> subprocess.Popen[bytes]:
        limits_s = (str(config.getoption(name)) for name in ("limit_grace", "run_limit"))
        return subprocess.Popen(
            [sys.executable, "-m", "tests.watcher", self._folder, str(os.getpid()), *limits_s],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=self._stderr,
            stderr=self._stderr,
            start_new_session=True,  # Ctrl-C is for the tests
        )

    def _write(self, test: str | None, limit_s: float | None) -> None:
        said = {
            "start": self._own.start,
            "name": self._name,
            "test": test,
            "since_s": time.monotonic(),
            "limit_s": limit_s,
        }
        new = self._folder / f"{os.getpid()}.new"
        new.write_text(json.dumps(said), encoding="utf-8")
        new.replace(self._folder / str(os.getpid()))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tells a worker of xdist which watcher there is."""
        node.workerinput[FOLDER] = str(self._folder)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Tells the watcher which test runs."""
        self._write(item.nodeid, None)
        try:
            return (yield)
        finally:
            self._write(None, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool:
        """Sets the limit of a test, in place of pytest-timeout, which knows it from the test's marker or the configuration.

        In a worker of xdist, pytest-timeout shows no stacks.
        """
        self._write(item.nodeid, settings.timeout)

        def end_test(*_: object) -> None:
            __tracebackhide__ = True
            if pytest_timeout.is_debugging():
                return
            item.stash[TIMED_OUT] = True
            pytest.fail(f"this test took longer than {settings.timeout:g} s. Its threads:\n{stacks()}")

        def cancel() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

        vars(item)["cancel_timeout"] = cancel  # pytest-timeout calls it
        signal.signal(signal.SIGALRM, end_test)
        signal.setitimer(signal.ITIMER_REAL, settings.timeout)
        return True

    def pytest_enter_pdb(self) -> None:
        """Lets a person look for as long as it takes."""
        self._write(None, None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Remembers when the test itself began; what its fixtures have started may be for later tests too."""
        item.stash[BEGAN] = time.clock_gettime(time.CLOCK_BOOTTIME)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Ends the processes that a test has left which took too long."""
        try:
            return (yield)
        finally:
            if TIMED_OUT in item.stash and BEGAN in item.stash:
                began = int(item.stash[BEGAN] * os.sysconf("SC_CLK_TCK"))
                since = {process for process in children.below() | marked(self._own) if int(process.start) >= began}
                if names := children.end(since):
                    sentence = f"The test has left these processes, which are ended: {', '.join(names)}.\n"
                    item.add_report_section("teardown", "left", sentence)

    def pytest_unconfigure(self) -> None:
        """Tells the watcher that this process ends as it should."""
        (self._folder / str(os.getpid())).unlink(missing_ok=True)
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.stdin.close()
            self._watcher.wait()  # it may still end what others have left, and that has limits


def stacks() -> str:
    """Returns the stacks of all threads of this process."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read().decode(errors="replace")
