"""The budget of work in one thread: processor time, so that a busy machine changes no answer, and the limits of the caller."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from checker.search.solving import AUTO, LEAST_S, Limits

if TYPE_CHECKING:
    from checker._kernel import Cancellation


@dataclass(frozen=True, slots=True)
class Allowance:
    """A budget for this thread, from now on.

    Attributes:
        processor_end_s: The end by the clock of this thread.
        wall_end_s: The end by the monotonic clock.
        cancellation: Ends it from another thread.
    """

    processor_end_s: float = math.inf
    wall_end_s: float = math.inf
    cancellation: Cancellation | None = None

    @classmethod
    def of(cls, limit_s: float, wall_end_s: float = math.inf, cancellation: Cancellation | None = None) -> Self:
        """Returns a budget of so many seconds of processor time from now on."""
        return cls(time.thread_time() + limit_s, wall_end_s, cancellation)

    @classmethod
    def within(cls, limits: Limits) -> Self:
        """Returns the budget that the limits of a check leave from now on."""
        return cls(
            math.inf if limits.processor_limit_s is None else time.thread_time() + limits.processor_limit_s,
            math.inf if limits.time_limit_s is None else time.monotonic() + limits.time_limit_s,
            limits.cancellation,
        )

    @property
    def left_s(self) -> float:
        """The remaining processor time in seconds."""
        return max(self.processor_end_s - time.thread_time(), 0.0)

    def part(self, share: float) -> Allowance:
        """Returns a share of the remaining processor time."""
        return self.most(self.left_s * share)

    def most(self, limit_s: float) -> Allowance:
        """Returns the budget with at most so many more seconds of processor time."""
        end_s = min(time.thread_time() + limit_s, self.processor_end_s)
        return Allowance(end_s, self.wall_end_s, self.cancellation)

    def is_over(self) -> bool:
        """Returns whether nothing is left."""
        if self.cancellation is not None and self.cancellation.is_cancelled():
            return True
        return time.thread_time() > self.processor_end_s or time.monotonic() > self.wall_end_s

    def limits(self, algorithm: str = AUTO) -> Limits:
        """Returns what is left as the limits of a search for one history in this thread."""
        return Limits(
            algorithm=algorithm,
            time_limit_s=None if self.wall_end_s == math.inf else max(self.wall_end_s - time.monotonic(), LEAST_S),
            processor_limit_s=None if self.processor_end_s == math.inf else max(self.left_s, LEAST_S),
            threads=1,
            cancellation=self.cancellation,
        )


UNLIMITED: Final = Allowance()
