"""What can be chosen about the lock workload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOptions:
    """The options of the lock workload."""

    lease_s: float | None = option(
        None,
        "Seconds after which the system frees a lock by itself, counted from the request; without it, it never does so.",
        low=0,
        high=86_400,
        above=True,
        judges=True,
    )
    sessions: bool = option(
        default=True,
        help="Whether the system frees the locks of a client whose connection ends, so that a lock may be free though nobody "
        "released it.",
        judges=True,
    )
    locks: int = option(3, "Locks that are used at a time, each by all clients.", low=1, high=10_000)
    ops_per_lock: int | None = option(
        None,
        "About how often each lock is asked for before another takes its place; for systems that never free the lock of a "
        "client that is gone.",
        low=1,
        high=1_000_000_000,
    )
    hold_ms: float = option(20.0, "For how long a lock is held on average, in milliseconds.", low=0, high=3_600_000)
    stray_share: float = option(
        0.0,
        "The share of turns in which a client releases a lock that it does not hold, which must fail.",
        low=0,
        high=0.9,
    )

    def __post_init__(self) -> None:
        if self.locks < 1 or (self.ops_per_lock is not None and self.ops_per_lock < 1):
            raise InputError(
                f"expected one lock or more, asked for once or more, not {self.locks} and {self.ops_per_lock}"
            )
        if not self.hold_ms >= 0 or not 0 <= self.stray_share <= 0.9:
            raise InputError(
                f"expected a hold of 0 ms or more, and a share of stray releases from 0 to 0.9, not {self.hold_ms} and "
                f"{self.stray_share}"
            )
        if self.lease_s is not None and not self.lease_s > 0:
            raise InputError(f"expected a lease above 0 seconds, not {self.lease_s}")
