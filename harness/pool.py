"""A pool of processes for work that threads cannot share.

Ctrl-C reaches all processes of a terminal. The processes of the pool leave it to the process that made them, which ends the
pool. They also end when that process is killed: otherwise they would go on with work that nobody takes. For the same reason,
work that has begun does not delay the end of an interrupted command.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType

_MOST_PROCESSES = 4  # each holds its own copy of the libraries


def processes() -> int:
    """Returns how many processes share the work of a command: one for each processor that it may use, up to four."""
    return min(_MOST_PROCESSES, len(os.sched_getaffinity(0)))


class Pool(ProcessPoolExecutor):
    """Processes that start when there is work.

    At its end as a context, it waits for work that runs, and drops the rest. After Ctrl-C it ends the processes at once.
    """

    def __init__(self, processes: int, begin: Callable[..., object] | None = None, *arguments: object) -> None:
        """Makes a pool.

        Args:
            processes: The maximum number of processes.
            begin: Called once in each process, with `arguments`; all must be picklable. None: nothing is called.
            arguments: The arguments.
        """
        super().__init__(
            processes,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(begin, arguments),
        )

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Starts a process if it is needed, with Ctrl-C blocked, which the process inherits. For the rest, see the base."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Drops the work that has not begun, and waits for the rest, or ends it if the context was interrupted."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            for process in tuple(self._processes.values()):
                process.terminate()
        self.shutdown(wait=True, cancel_futures=True)


def _begin(begin: Callable[..., object] | None, arguments: tuple[object, ...]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if begin is not None:
        begin(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
