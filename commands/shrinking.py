"""Shrinks an invalid run: fewer faults, shorter faults, fewer targets, a shorter run, fewer operations.

The algorithm is greedy, as in delta debugging (A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing
input", 2002). It tries the largest step first and keeps each step whose run is still invalid. It ends when no step is left. A
simulated run always gives the same verdict, so no single step can make the result smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nemesis.errors import PlanError
from nemesis.kinds import find_kind
from nemesis.plan import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.faults import PlannedFault

LEAST_FAULT_S = 0.2
LEAST_RUN_S = 1.0
LEAST_RATE = 0.5
AFTER_FAULTS_S = 0.5
DECIMALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run that can be made smaller.

    Attributes:
        faults: The faults.
        time_limit_s: How long the workload runs.
        rate: Operations a second at each node; None in a closed loop.
    """

    faults: tuple[PlannedFault, ...]
    time_limit_s: float
    rate: float | None

    def describe(self) -> str:
        """Returns its size in words."""
        broken_s = sum(fault.end_s - fault.start_s for fault in self.faults)
        rate = "" if self.rate is None else f", {self.rate:g} operations per second and node"
        return f"{len(self.faults)} faults, {broken_s:.1f} s in total; {self.time_limit_s:g} s of workload{rate}"


def shrink(whole: Candidate, has_finding: Callable[[Candidate], bool], *, enough: Callable[[], bool]) -> Candidate:
    """Returns the smallest candidate that has the finding.

    Args:
        whole: A candidate that has it.
        has_finding: Carries out a candidate.
        enough: Says whether the budget is used up.
    """
    tried: set[str] = set()
    best = whole
    while True:
        for smaller in steps(best):
            if enough():
                return best
            if repr(smaller) in tried:
                continue
            tried.add(repr(smaller))
            if has_finding(smaller):
                best = smaller
                break
        else:
            return best


def steps(candidate: Candidate) -> Iterator[Candidate]:
    """Yields what is one step smaller, the largest steps first."""
    yield from _without_faults(candidate)
    yield from _shorter_run(candidate)
    for place, fault in enumerate(candidate.faults):
        for smaller in (*_shorter_fault(fault), *_fewer_targets(fault)):
            yield replace(
                candidate, faults=number([*candidate.faults[:place], smaller, *candidate.faults[place + 1 :]])
            )
    if candidate.rate is not None and candidate.rate / 2 >= LEAST_RATE:
        yield replace(candidate, rate=candidate.rate / 2)


def _without_faults(candidate: Candidate) -> Iterator[Candidate]:
    """Yields the candidate without all of its faults, then without a half, a quarter, and so on down to one fault."""
    faults = candidate.faults
    size = len(faults)
    while size:
        for start in range(0, len(faults), size):
            yield replace(candidate, faults=number([*faults[:start], *faults[start + size :]]))
        size //= 2


def _shorter_run(candidate: Candidate) -> Iterator[Candidate]:
    """Yields the candidate with a run that ends soon after its last fault, or earlier than now."""
    least_s = max([LEAST_RUN_S, *(fault.end_s + AFTER_FAULTS_S for fault in candidate.faults)])
    for part in (0.0, 0.5, 0.75):
        limit_s = round(max(least_s, candidate.time_limit_s * part), DECIMALS)
        if limit_s < candidate.time_limit_s:
            yield replace(candidate, time_limit_s=limit_s)


def _shorter_fault(fault: PlannedFault) -> Iterator[PlannedFault]:
    half_s = round((fault.end_s - fault.start_s) / 2, DECIMALS)
    if half_s >= LEAST_FAULT_S:
        yield replace(fault, end_s=round(fault.start_s + half_s, DECIMALS))
        yield replace(fault, start_s=round(fault.end_s - half_s, DECIMALS))


def _fewer_targets(fault: PlannedFault) -> Iterator[PlannedFault]:
    """Yields the fault without one of its named targets, if its kind can have these targets."""
    if isinstance(fault.target, str) or len(fault.target) < 2:
        return
    for left_out in fault.target:
        names = tuple(name for name in fault.target if name != left_out)
        if _can_be_aimed(fault, names):
            yield replace(fault, target=names)


def _can_be_aimed(fault: PlannedFault, names: Sequence[str]) -> bool:
    kind = find_kind(fault.kind)
    try:
        kind.fault.check_target(kind.name, names, tuple(fault.target))
    except PlanError:
        return False
    return True
