"""Signals to a run: the first one ends it in order, and the second one at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stopping(stop: asyncio.Event, on_first: Callable[[], None]) -> Iterator[None]:
    """Turns the first SIGINT, SIGTERM or SIGHUP into `stop`, and the second one into a cancellation of the current task.

    In a thread that is not the main one, signals do nothing.

    Args:
        stop: Is set by the first signal.
        on_first: Is called before.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
            return
        on_first()
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]  # under `nohup`, a run outlives its terminal
    wakeups = signal.set_wakeup_fd(-1)  # the loop has its own, and leaves none
    for number in before:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeups, warn_on_full_buffer=False)
