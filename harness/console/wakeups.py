"""Lets the main thread see a signal at once, whichever thread the kernel gives it to.

Python runs the handler of a signal in the main thread, between two of its own instructions. A system call there ends early only
if the kernel gives the signal to that thread. It may give it to another one: to any that wakes up first, if the process was
stopped (Ctrl-Z) when the signal came. Then a command would wait to the end of what it waits for, e.g. of a case of a suite. The
same happens if the signal comes right before the system call.

So a thread reads which signals came (`signal.set_wakeup_fd`), and then sends the main thread another signal, whose handler does
nothing. An event loop that handles signals has a descriptor of its own, and ends its waits by itself.

This module needs only the standard library; see `harness.console.process`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

_POKE: Final = signal.SIGURG  # nothing happens without a handler either
# The first one ends a wait. The others end one that began while the handler was about to run.
_PAUSES_S: Final = (0.0, 0.05, 0.5)


def wake_main_thread(numbers: Collection[int]) -> None:
    """Ends a system call of the main thread after each of these signals, from now on. The main thread calls this, once."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(_POKE, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    main = threading.get_ident()
    threading.Thread(target=_wake, args=(reader, main, frozenset(numbers)), name="wakeups", daemon=True).start()


def _wake(reader: int, main: int, numbers: frozenset[int]) -> None:
    while came := os.read(reader, 64):
        if not numbers.isdisjoint(came):
            for pause_s in _PAUSES_S:
                time.sleep(pause_s)
                signal.pthread_kill(main, _POKE)
