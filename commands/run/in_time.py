"""Ends a run when the time of a search is over, as Ctrl-C does: then it heals its nodes, and has no verdict."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from harness.errors import InterruptedEarly

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.outcome import RunOutcome


class Deadline:
    """The end of the time of a search with many runs.

    Attributes:
        until_s: The end, on the monotonic clock.
        interrupted: Whether a person ended a run.
        ended_early: Whether the end of the time ended a run, or left no time for one.
    """

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s
        self.interrupted = False
        self.ended_early = False

    def enough(self, length_s: float) -> bool:
        """Returns whether a person ended the search, or a run of this length cannot end in time."""
        late = time.monotonic() + length_s > self.until_s
        self.ended_early = self.ended_early or late
        return self.interrupted or late

    def carry_out(self, run: Callable[[], RunOutcome | None]) -> RunOutcome | None:
        """Carries out a run, and returns its outcome; None if it was ended before its verdict.

        Args:
            run: Carries out the run, and returns its outcome; None if it was interrupted.
        """
        over = threading.Event()

        def end() -> None:
            over.set()
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(max(0.0, self.until_s - time.monotonic()), end)
        timer.daemon = True
        timer.start()
        try:
            try:
                outcome = run()
            finally:
                timer.cancel()
                timer.join()
        except (InterruptedEarly, KeyboardInterrupt):
            outcome = None
        if outcome is None:
            self.ended_early = self.ended_early or over.is_set()
            self.interrupted = self.interrupted or not over.is_set()
        return outcome
