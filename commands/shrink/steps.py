"""Shrinks an invalid run: fewer and shorter faults, a shorter run, fewer targets, clients and keys.

Algorithm: greedy delta debugging (A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", 2002). It
tries the largest step first, keeps each step whose run is still invalid, and ends when no step is left. A simulated run always
has the same verdict, so no single step can make the result smaller. On real nodes, `commands.shrink.by_chance` runs a
candidate several times.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness.targets import AtTrigger, Named, names_of
from nemesis.errors import PlanError
from nemesis.kinds import find_kind
from nemesis.plan import number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from harness.faults import PlannedFault

MIN_FAULT_S = 0.2
MIN_RUN_S = 1.0
MIN_RATE = 0.5
MIN_QUIET_S = 0.5
AFTER_FAULTS_S = 0.5
DECIMALS = 3
FEW_IN_FLIGHT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A smaller or equal version of a run.

    Attributes:
        faults: The faults.
        time_limit_s: How long the workload runs.
        options: The options that can be made smaller, by parameter name; see `shrinkable`.
        goals: For those of the system and the workload, the value of the smallest run.
        seed: The seed; None: that of the original run.
    """

    faults: tuple[PlannedFault, ...]
    time_limit_s: float
    options: Mapping[str, Any] = field(default_factory=dict)
    goals: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None

    def describe(self) -> str:
        """Returns its size in words."""
        broken_s = sum(fault.lasts_s for fault in self.faults)
        options = "".join(f", {name.replace('_', '-')} {value:g}" for name, value in self.options.items())
        faults = f"{len(self.faults)} fault{'' if len(self.faults) == 1 else 's'}"
        return f"{faults} of {broken_s:.1f} s together, {self.time_limit_s:g} s of workload{options}"


def shrinkable(options: Mapping[str, Any], goals: Collection[str], *, workers: int) -> dict[str, Any]:
    """Returns the options of a run that can be made smaller: the load, and those of the system and the workload.

    Args:
        options: The settled options of `labrys test`.
        goals: The options that the system and the workload declare as such (`shrinks_to`).
        workers: The number of workers of a closed loop.
    """
    load = {"concurrency": workers}
    if options["load_kind"] == "open":
        load = {"rate": options["rate"], "max_in_flight": options["max_in_flight"]}
    return load | {name: options[name] for name in goals if options.get(name) is not None}


def shrink(
    whole: Candidate,
    has_finding: Callable[[Candidate], bool],
    *,
    enough: Callable[[Candidate], bool],
    seeds: Sequence[int] = (),
) -> Candidate:
    """Returns the smallest candidate that still has the finding.

    Args:
        whole: A candidate that has it.
        has_finding: Carries out a candidate, and returns whether it has the finding.
        enough: Returns whether the budget does not suffice for a candidate.
        seeds: Further seeds for the steps, once no step has the finding with the last seed.
    """
    tried: set[str] = set()

    def first_with_finding(versions: Iterator[Candidate]) -> Candidate | None:
        for version in versions:
            if repr(version) not in tried and not enough(version):
                tried.add(repr(version))
                if has_finding(version):
                    return version
        return None

    best: Candidate = whole
    smaller: Candidate | None = whole
    while smaller is not None:
        best = smaller
        smaller = first_with_finding(steps(best)) or first_with_finding(
            replace(step, seed=seed) for seed in seeds for step in steps(best)
        )
    return best


def steps(candidate: Candidate) -> Iterator[Candidate]:
    """Yields the candidates that are one step smaller, the largest step first."""
    yield from _without_faults(candidate)
    yield from _shorter_run(candidate)
    yield from _earlier_faults(candidate)
    yield from _smaller_options(candidate)
    for index, fault in enumerate(candidate.faults):
        for smaller in (*_shorter_fault(fault), *_fewer_targets(fault), *_smaller_options_of(fault)):
            yield replace(
                candidate, faults=number([*candidate.faults[:index], smaller, *candidate.faults[index + 1 :]])
            )


def _smaller_options(candidate: Candidate) -> Iterator[Candidate]:
    """Yields the candidate with fewer operations, fewer clients, or fewer keys."""
    for name, value in candidate.options.items():
        for smaller in _smaller(name, value, candidate.goals.get(name, 1)):
            yield replace(candidate, options={**candidate.options, name: smaller})


def _smaller(name: str, value: Any, goal: float) -> Iterator[Any]:
    """Yields values of an option that are nearer to that of the smallest run, the nearest first."""
    if name == "rate":
        if value / 2 >= MIN_RATE:
            yield value / 2
    elif value != goal and isinstance(value, float):
        yield float(goal)
    elif value > goal:
        yield goal
        if name == "max_in_flight" and value > FEW_IN_FLIGHT:  # a node uses more clients only if they are slow
            yield FEW_IN_FLIGHT
        elif value // 2 > goal:
            yield value // 2


def _without_faults(candidate: Candidate) -> Iterator[Candidate]:
    """Yields the candidate without all, without half, and so on, down to without one of its faults."""
    faults = candidate.faults
    size = len(faults)
    while size:
        for start in range(0, len(faults), size):
            yield replace(candidate, faults=number([*faults[:start], *faults[start + size :]]))
        size //= 2


def _shorter_run(candidate: Candidate) -> Iterator[Candidate]:
    """Yields the candidate with a run that ends soon after its last fault, or earlier than now."""
    shortest_s = max([MIN_RUN_S, *(fault.end_s + AFTER_FAULTS_S for fault in candidate.faults)])
    for part in (0.0, 0.5, 0.75):
        limit_s = round(max(shortest_s, candidate.time_limit_s * part), DECIMALS)
        if limit_s < candidate.time_limit_s:
            yield replace(candidate, time_limit_s=limit_s)


def _earlier_faults(candidate: Candidate) -> Iterator[Candidate]:
    """Yields the candidate with all faults earlier, and with a run that is shorter by the same time."""
    first_s = min((fault.start_s for fault in candidate.faults), default=0.0)
    for part in (1.0, 0.5):
        by_s = round(part * (first_s - MIN_QUIET_S), DECIMALS)
        if by_s < MIN_FAULT_S or candidate.time_limit_s - by_s < MIN_RUN_S:
            continue
        moved = [
            replace(fault, start_s=round(fault.start_s - by_s, DECIMALS), end_s=round(fault.end_s - by_s, DECIMALS))
            for fault in candidate.faults
        ]
        limit_s = round(candidate.time_limit_s - by_s, DECIMALS)
        yield replace(candidate, faults=number(moved), time_limit_s=limit_s)


def _shorter_fault(fault: PlannedFault) -> Iterator[PlannedFault]:
    """Yields the fault without its trigger, if its target does not need one, and with its first or its second half only."""
    if fault.trigger is not None and not isinstance(fault.target, AtTrigger):
        yield replace(fault, end_s=round(fault.end_s - fault.wait_s, DECIMALS), trigger=None)
    half_s = round((fault.end_s - fault.start_s) / 2, DECIMALS)
    wait_s = round(fault.wait_s / 2, DECIMALS)
    trigger = None if fault.trigger is None else replace(fault.trigger, limit_s=wait_s)
    if half_s - wait_s >= MIN_FAULT_S and (trigger is None or wait_s > 0):
        yield replace(fault, end_s=round(fault.start_s + half_s, DECIMALS), trigger=trigger)
        yield replace(fault, start_s=round(fault.end_s - half_s, DECIMALS), trigger=trigger)


def _fewer_targets(fault: PlannedFault) -> Iterator[PlannedFault]:
    """Yields the fault without one of its named targets, if its kind allows the other targets."""
    nodes = names_of(fault.target)
    for left_out in nodes if len(nodes) > 1 else ():
        target = Named(tuple(name for name in nodes if name != left_out))
        if _is_allowed(fault, target, nodes):
            yield replace(fault, target=target)


def _smaller_options_of(fault: PlannedFault) -> Iterator[PlannedFault]:
    """Yields the fault with a number among its options nearer to that of the smallest fault, which its kind declares."""
    for name, option in find_kind(fault.kind).fault.OPTIONS.items():
        value = fault.options.get(name)
        if option.shrinks_to is not None and value is not None:
            for nearer in _nearer(value, option.shrinks_to):
                yield replace(fault, options={**fault.options, name: nearer})


def _nearer(value: float, goal: float) -> Iterator[float]:
    """Yields a goal, and the number halfway to it, of the type of a value; nothing for the goal itself."""
    whole = isinstance(value, int)
    halfway = (value + int(goal)) // 2 if whole else round((value + goal) / 2, DECIMALS)
    for nearer in dict.fromkeys((int(goal) if whole else float(goal), halfway)):
        if nearer != value:
            yield nearer


def _is_allowed(fault: PlannedFault, target: Named, nodes: Sequence[str]) -> bool:
    kind = find_kind(fault.kind)
    try:
        kind.fault.check_target(kind.name, target, nodes)
    except PlanError:
        return False
    return True
