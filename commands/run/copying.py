"""Carries out simulated runs that share their start: the nodes start once, and each run goes on in a copy of them.

Such a run has the same history and the same verdict as `labrys test` with its --seed and its --start-seed, which starts the
nodes itself. The controller of programs in virtual time copies the nodes, and fork(2) copies this process: a process of its own
starts the nodes, and forks for each run.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import tempfile
import traceback
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from clusters.sim.linux.cluster import LinuxCluster
from commands.options.compose import composed, recomposed
from commands.run.trial import Unobserved, judged
from harness.clock import VirtualLoop, own_loop_after_fork
from harness.errors import InfrastructureError, InputError, LabrysError
from harness.history import MemoryHistory, pair
from harness.leftovers import own_folder
from harness.run import Continued, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from commands.options.compose import Settled
    from commands.run.trial import Trial
    from harness.test import Test

    Attempt = Callable[[], Trial]

T = TypeVar("T")

PREFIX: Final = "labrys-copies-"  # the id of the process follows
PR_SET_PDEATHSIG: Final = 1


def attempts(start: Settled, runs: Sequence[Settled], told: Callable[[int, Attempt], T]) -> Iterator[T]:
    """Carries out and judges runs that differ in their seeds and faults only. Yields what `told` returns for each, in order.

    A run whose process ended without a word, and each one after it, is told of with an error.

    Args:
        start: The options of the start, with `start_seed`.
        runs: The options of each run.
        told: Is called in the process of a run, with the place of the run and a function that returns its trial or raises its
            error. Returns what goes to this process.
    """
    folder = own_folder(PREFIX)
    try:
        reader, writer = Pipe(duplex=False)
        starter = os.fork()
        if starter == 0:
            reader.close()
            tempfile.tempdir = str(folder)  # so that nothing stays if it is ended
            _in_process(lambda: _Starter(start, runs, told, writer).carry_out())
        writer.close()
        count = 0
        try:
            with reader, contextlib.suppress(EOFError):
                while count < len(runs):
                    answer = reader.recv()
                    count += 1
                    yield answer
        finally:
            os.kill(starter, signal.SIGKILL)
            os.waitpid(starter, 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for number in range(count, len(runs)):
        yield told(number, _failing(InfrastructureError("the process that carries out copies of a start ended early")))


def _failing(error: LabrysError) -> Attempt:
    def fail() -> NoReturn:
        raise error

    return fail


def _end_with_parent() -> None:
    """Lets the kernel end this process when its parent ends; see prctl(2)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _in_process(act: Callable[[], object]) -> NoReturn:
    """Acts in a process that was forked, which ends then, or with the process that has forked it."""
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # it is for the process that has forked this one
        _end_with_parent()
        act()
        status = 0
    except BaseException:  # noqa: BLE001 - nobody above this process can tell of it
        traceback.print_exc()
    finally:
        os._exit(status)


class _Starter:
    """The process that starts the nodes."""

    def __init__(
        self, start: Settled, runs: Sequence[Settled], told: Callable[[int, Attempt], object], writer: Connection
    ) -> None:
        self._start = start
        self._runs = runs
        self._told = told
        self._writer = writer
        self._number: int | None = None  # of the run of this process; None: it starts the nodes

    def carry_out(self) -> None:
        """Starts the nodes, and carries out the runs. Returns if the start failed."""
        try:
            with composed(self._start) as (test, _):
                self._carry_out(test)
        except LabrysError as error:
            for number in range(len(self._runs)):
                self._writer.send(self._told(number, _failing(error)))

    def _carry_out(self, test: Test) -> None:
        """Carries out the runs. It never returns in the process of a run, as the nodes are those of the process above."""
        try:
            attempt = self._attempt(test)
        except BaseException as error:
            if self._number is None:
                raise
            if not isinstance(error, LabrysError):
                traceback.print_exc()
                os._exit(1)
            attempt = _failing(error)
        assert self._number is not None  # noqa: S101 - the process above ends in `_go_on`
        self._writer.send(self._told(self._number, attempt))
        os._exit(0)

    def _attempt(self, test: Test) -> Attempt:
        """Returns the trial of the run of this process."""
        cluster = test.cluster
        if not isinstance(cluster, LinuxCluster):
            raise InputError(f"copies need programs in virtual time; the cluster {cluster.name} has none")
        history, self._test = MemoryHistory(), test
        result = run(
            test,
            history=history,
            logs_dir=Path(tempfile.mkdtemp()),
            observer=Unobserved(),
            started=lambda: self._go_on(test, cluster, history),
        )
        trial = judged(self._test, result, pair(history.ops))
        return lambda: trial

    def _go_on(self, test: Test, cluster: LinuxCluster, history: MemoryHistory) -> Continued:
        """Carries out each run in a process of its own, in which this returns."""
        controller, loop = cluster.world.controller, asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - the programs are in virtual time
        controller.become_originals()
        for number, settled in enumerate(self._runs):
            controller.copy()
            process = os.fork()
            if process == 0:
                _end_with_parent()
                own_loop_after_fork(loop)
                self._number = number
                self._test = recomposed(settled, test)
                return Continued(test=self._test, history=history, logs_dir=Path(tempfile.mkdtemp()))
            _, status = os.waitpid(process, 0)
            if status != 0:
                break  # nobody knows what the controller has heard
            controller.back()
        cluster.close()
        os._exit(0)
