"""The options of the lock workload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOptions:
    """The options of the lock workload."""

    lease_s: float | None = option(
        None,
        "The lease of a lock in seconds, from the request on.  [default: locks have no lease]",
        low=0,
        high=86_400,
        above=True,
        judges=True,
    )
    sessions: bool = option(
        default=True,
        help="The system frees the locks of a client whose connection ends.",
        judges=True,
    )
    locks: int = option(
        3, "The number of locks in use at a time; all clients use each of them.", low=1, high=10_000, shrinks_to=1
    )
    ops_per_lock: int | None = option(
        None,
        "The approximate number of acquires of a lock before a new lock replaces it; for systems that never free the lock of "
        "a dead client.",
        low=1,
        high=1_000_000_000,
    )
    hold_ms: float = option(20.0, "The mean time in milliseconds that a client holds a lock.", low=0, high=3_600_000)
    stray_share: float = option(
        0.0,
        "The share of turns in which a client releases a lock that it does not hold; the release must fail.",
        low=0,
        high=0.9,
    )

    def __post_init__(self) -> None:
        if self.locks < 1 or (self.ops_per_lock is not None and self.ops_per_lock < 1):
            raise InputError(f"expected locks and ops-per-lock from 1, not {self.locks} and {self.ops_per_lock}")
        if not self.hold_ms >= 0 or not 0 <= self.stray_share <= 0.9:
            raise InputError(
                f"expected hold-ms from 0 and stray-share from 0 to 0.9, not {self.hold_ms} and {self.stray_share}"
            )
        if self.lease_s is not None and not self.lease_s > 0:
            raise InputError(f"expected a lease above 0 seconds, not {self.lease_s}")
