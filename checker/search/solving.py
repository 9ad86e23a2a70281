"""Calls the kernel, with limits, typed outcomes, and errors of the checker."""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker import _kernel
from checker.errors import KernelError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

AUTO: Final = "auto"
LEAST_S: Final = 1e-3  # a limit of time of which nothing is left, because a limit has to be positive
# The user's name of an algorithm, and the kernel's.
ALGORITHMS: Final[Mapping[str, str]] = {
    AUTO: "auto",
    "zones": "near",
    "search": "search",
    "linear": "linear",
    "wgl": "wgl",
    "competition": "competition",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a check.

    Attributes:
        algorithm: One of `ALGORITHMS`.
        time_limit_s: Wall time of all histories together; None for no limit.
        processor_limit_s: Processor time of the search of one history; None for no limit. A busy machine does not change what
            is found within it.
        memory_limit: Bytes for the searches; None for half of the available memory.
        threads: None for all cores.
        cancellation: Ends the check from another thread.
    """

    algorithm: str = AUTO
    time_limit_s: float | None = None
    processor_limit_s: float | None = None
    memory_limit: int | None = None
    threads: int | None = None
    cancellation: _kernel.Cancellation | None = None

    def __post_init__(self) -> None:
        """Checks the limits.

        Raises:
            ModelError: There is no such algorithm, or a limit is not positive.
        """
        if self.algorithm not in ALGORITHMS:
            raise ModelError(f"expected one of the algorithms {', '.join(ALGORITHMS)}, found {self.algorithm!r}")
        for name, value in (
            ("time limit", self.time_limit_s),
            ("limit of processor time", self.processor_limit_s),
            ("memory limit", self.memory_limit),
        ):
            if value is not None and not value > 0:
                raise ModelError(f"expected a positive {name}, found {value}")


def solve(
    problems: Sequence[_kernel.Problem], limits: Limits, *, want_order: bool = False, fail_fast: bool = False
) -> list[_kernel.Outcome]:
    """Decides problems without the interpreter lock; Ctrl-C ends it at once.

    Raises:
        KernelError: The kernel failed.
    """
    try:
        return _kernel.solve(
            problems,
            algorithm=ALGORITHMS[limits.algorithm],
            time_limit_s=limits.time_limit_s,
            processor_limit_s=limits.processor_limit_s,
            memory_limit=limits.memory_limit,
            threads=limits.threads if limits.threads is not None else len(os.sched_getaffinity(0)),
            want_order=want_order,
            fail_fast=fail_fast,
            cancellation=limits.cancellation,
        )
    except RuntimeError as error:
        raise KernelError(f"the kernel failed: {error}. This is a bug: please report it with the history.") from error


def outcome(
    verdict: _kernel.Verdict,
    analyzer: str,
    *,
    cause: str | None = None,
    op: int | None = None,
    kind: str | None = None,
    core: Iterable[int] = (),
    unsuited: str | None = None,
    order: Iterable[int] | None = None,
    steps: int = 0,
    seconds: float = 0.0,
    configs: Sequence[_kernel.Config] = (),
    has_all_configs: bool = False,
    counts: _kernel.Counts | None = None,
) -> _kernel.Outcome:
    """Returns the verdict of a Python algorithm as an outcome of the kernel.

    Args:
        verdict: The verdict.
        analyzer: The analyzer that decided.
        cause: Unknown: why.
        op: Invalid: the position of the operation at whose return no linearization is left.
        kind: Invalid: the kind of contradiction.
        core: Invalid: the positions of operations that contradict each other.
        unsuited: Why the algorithm does not apply.
        order: Valid: the positions in the order of a linearization.
        steps: Steps of a search.
        seconds: Wall time.
        configs: The states before `op` returns.
        has_all_configs: Whether these are all.
        counts: How often each reduction applied.
    """
    return _kernel.Outcome(
        verdict=verdict,
        analyzer=analyzer,
        cause=cause,
        op=op,
        kind=kind,
        core=list(core),
        unsuited=unsuited,
        steps=steps,
        seconds=seconds,
        order=None if order is None else array("I", order).tobytes(),
        configs=list(configs),
        has_all_configs=has_all_configs,
        counts=counts,
    )


def positions(order: bytes) -> array[int]:
    """Returns the kernel's order of operations as positions."""
    numbers = array("I")
    numbers.frombytes(order)
    return numbers
