"""Draws a plan: which faults, when, where, from the seed.

Every kind has a stream of its own and its own rhythm of on and off, so that adding a kind never shifts the draws of
another. A fault waits its turn where it would share a node with another fault of its group (two faults of one process), or
where the majority must be kept and it would take it away together with what else is broken then, whoever leads. What can be
resolved without looking at the cluster is resolved here; roles stay roles.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.faults import PlannedFault
from harness.randomness import stream
from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.fault import Drawing, Impact, damage_pool
from nemesis.grudges import has_quorum, minority, union
from nemesis.options import ORDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random

    from harness.op import Value
    from nemesis.kinds import Choice

RECOVERY_S = 5.0  # a node that was down counts as down for so long after its fault
LET_GO_S = 3.0  # a fault holds its nodes for so long after its end: a process has to start again
REDRAWS = 200
DECIMALS = 3  # times are whole milliseconds
SLACK_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How long faults of a kind are on and off.

    The defaults fit a Raft group with a heartbeat of about half a second: an isolated leader is replaced after 4 to 6 s, and
    a healed node has caught up after 3 to 6 s.

    Attributes:
        on_s: The range of a fault's duration.
        off_s: The range of the pause after it.
        quiet_s: Before the first fault.
        tail_s: After the last one, so that its consequences are observed.
    """

    on_s: tuple[float, float] = (6.0, 15.0)
    off_s: tuple[float, float] = (4.0, 12.0)
    quiet_s: float = 5.0
    tail_s: float = 10.0

    def __post_init__(self) -> None:
        for name, (low, high) in (("on", self.on_s), ("off", self.off_s)):
            if not 0 < low <= high:
                raise PlanError(
                    f"the range of {name} times must go from a positive number up, not from {low:g} to {high:g}"
                )
        if self.quiet_s < 0 or self.tail_s < 0:
            raise PlanError("the quiet times before the first and after the last fault cannot be negative")

    @property
    def least_s(self) -> float:
        """Returns the shortest time limit that has room for one fault."""
        return self.quiet_s + self.on_s[0] + self.tail_s


@dataclass(slots=True, kw_only=True)
class _Candidate:
    """The next fault of a kind: drawn, but not yet placed."""

    choice: Choice
    rhythm: Rhythm
    rng: Random
    start_s: float
    on_s: float
    target: str | tuple[str, ...]
    options: Mapping[str, Value]
    placed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    choice: Choice
    start_s: float
    end_s: float
    target: str | tuple[str, ...]
    options: Mapping[str, Value] = field(default_factory=dict)


def draw_plan(
    choices: Sequence[Choice],
    nodes: Sequence[str],
    *,
    seed: int,
    time_limit_s: float,
    rhythm: Rhythm | None = None,
    rhythms: Mapping[str, Rhythm] | None = None,
    keep_majority: bool = False,
    each_at_least_once: bool = True,
) -> tuple[PlannedFault, ...]:
    """Draws the faults of a run.

    Args:
        choices: The kinds that were asked for; see `kinds.choose_all`.
        nodes: The names of all nodes, in order.
        seed: The run's root seed.
        time_limit_s: How long the workload runs.
        rhythm: The rhythm of every kind.
        rhythms: Rhythms of some kinds, by kind name, instead.
        keep_majority: Whether some node must always be able to talk to a majority that is up, whoever leads.
        each_at_least_once: Whether a kind that gets no turn is an error; else it is just not in the plan.

    Raises:
        PlanError: A kind has no room in the time, or cannot be had with these nodes or with the majority kept.
    """
    nodes = tuple(nodes)
    pool = _pool(choices, nodes, seed)
    heap: list[tuple[float, int, _Candidate]] = []
    for index, choice in enumerate(choices):
        candidate = _first(choice, (rhythms or {}).get(choice.kind.name, rhythm or Rhythm()), seed, time_limit_s)
        _draw_fault(candidate, nodes, pool, keep_majority=keep_majority)
        heapq.heappush(heap, (candidate.start_s, index, candidate))
    placed: list[_Placed] = []
    while heap:
        _, index, candidate = heapq.heappop(heap)
        limit_s = time_limit_s - candidate.rhythm.tail_s
        candidate.start_s = round(candidate.start_s, DECIMALS)
        end_s = round(min(candidate.start_s + candidate.on_s, limit_s), DECIMALS)
        if end_s - candidate.start_s < candidate.rhythm.on_s[0] - SLACK_S:
            if each_at_least_once and not candidate.placed:
                raise PlanError(
                    f"{candidate.choice.label} finds no room in {time_limit_s:g} s beside the other faults; give more time, "
                    "shorter on and off times, or fewer faults"
                )
            continue
        fault = _Placed(
            choice=candidate.choice,
            start_s=candidate.start_s,
            end_s=end_s,
            target=candidate.target,
            options=candidate.options,
        )
        wait_s = _must_wait(fault, placed, nodes, keep_majority=keep_majority)
        if wait_s is not None:
            candidate.start_s = wait_s
        else:
            placed.append(fault)
            candidate.placed += 1
            candidate.start_s = end_s + candidate.rng.uniform(*candidate.rhythm.off_s)
            _draw_fault(candidate, nodes, pool, keep_majority=keep_majority)
        heapq.heappush(heap, (candidate.start_s, index, candidate))
    return number(_entry(fault) for fault in placed)


def number(faults: Iterable[PlannedFault]) -> tuple[PlannedFault, ...]:
    """Returns the faults in the order of their start, with dense ids from 0."""
    ordered = sorted(faults, key=lambda fault: (fault.start_s, fault.end_s, fault.kind))
    return tuple(
        PlannedFault(
            id=index,
            kind=fault.kind,
            target=fault.target,
            start_s=fault.start_s,
            end_s=fault.end_s,
            options=fault.options,
        )
        for index, fault in enumerate(ordered)
    )


def _entry(fault: _Placed) -> PlannedFault:
    """Returns the plan's entry."""
    return PlannedFault(
        id=0,
        kind=fault.choice.kind.name,
        target=fault.target,
        start_s=fault.start_s,
        end_s=fault.end_s,
        options=fault.options,
    )


def impacts(
    choice: Choice, target: str | tuple[str, ...], options: Mapping[str, Value], nodes: Sequence[str]
) -> list[Impact]:
    """Returns what a fault may take away: one possibility, or one for each node that may lead."""
    order = options.get(ORDER, nodes)
    leaders = nodes if tgt.is_role(target) else (None,)
    return [
        choice.kind.fault.impact(nodes, tgt.resolve(target, nodes, order=order, leader=leader), options)
        for leader in leaders
    ]


def _pool(choices: Sequence[Choice], nodes: tuple[str, ...], seed: int) -> tuple[str, ...]:
    damaging = [choice for choice in choices if choice.kind.fault.DAMAGES]
    if not damaging:
        return nodes
    named = [node for choice in damaging if not isinstance(choice.target, str) for node in choice.target]
    return damage_pool(nodes, stream(seed, "nemesis/damage"), named)


def _first(choice: Choice, rhythm: Rhythm, seed: int, time_limit_s: float) -> _Candidate:
    room_s = time_limit_s - rhythm.least_s
    if room_s < 0:
        raise PlanError(
            f"{choice.label} has no room in {time_limit_s:g} s: {rhythm.quiet_s:g} s of quiet, at least {rhythm.on_s[0]:g} s "
            f"on, and {rhythm.tail_s:g} s of quiet at the end need {rhythm.least_s:g} s"
        )
    rng = stream(seed, f"nemesis/{choice.label}")
    start_s = rhythm.quiet_s + rng.uniform(0.0, min(room_s, rhythm.off_s[1]))
    return _Candidate(choice=choice, rhythm=rhythm, rng=rng, start_s=start_s, on_s=0.0, target=(), options={})


def _draw_fault(candidate: _Candidate, nodes: tuple[str, ...], pool: tuple[str, ...], *, keep_majority: bool) -> None:
    """Draws duration, target and options; again where the fault alone would take away a majority that must be kept."""
    fault = candidate.choice.kind.fault
    candidate.on_s = candidate.rng.uniform(*candidate.rhythm.on_s)
    at_most = len(nodes)
    if keep_majority and fault.DISABLES:
        at_most = max(1, minority(len(nodes)))
    drawing = Drawing(
        nodes=nodes,
        rng=candidate.rng,
        target=candidate.choice.target,
        options=candidate.choice.options,
        at_most=at_most,
        pool=pool if fault.DAMAGES else nodes,
    )
    for _ in range(REDRAWS):
        candidate.target, candidate.options = fault.draw(drawing)
        possible = impacts(candidate.choice, candidate.target, candidate.options, nodes)
        if not keep_majority or all(_quorum([impact], nodes) for impact in possible):
            return
    raise PlanError(
        f"{candidate.choice.label} always takes the majority away from {len(nodes)} nodes, and it must be kept"
    )


def _must_wait(
    fault: _Placed, placed: Sequence[_Placed], nodes: tuple[str, ...], *, keep_majority: bool
) -> float | None:
    """Returns when to try again, where the fault cannot be placed beside those that are on at its start."""
    clashing = [
        other
        for other in placed
        if other.start_s <= fault.start_s < other.end_s + LET_GO_S - SLACK_S and _share_a_node(fault, other)
    ]
    if clashing:
        return min(other.end_s for other in clashing) + LET_GO_S
    if keep_majority:
        near = [other for other in placed if other.start_s <= fault.start_s < other.end_s + RECOVERY_S - SLACK_S]
        if near and not _keep_together([*near, fault], nodes):
            return min(other.end_s + RECOVERY_S for other in near)
    return None


def _share_a_node(one: _Placed, other: _Placed) -> bool:
    """Says whether two faults that are on together hold the same thing on the same node, as far as names are known."""
    if not one.choice.kind.fault.GROUPS & other.choice.kind.fault.GROUPS:
        return False
    if isinstance(one.target, str) or isinstance(other.target, str):
        return tgt.ALL in (one.target, other.target)
    return bool(set(one.target) & set(other.target))


def _keep_together(faults: Sequence[_Placed], nodes: tuple[str, ...]) -> bool:
    possible = [impacts(fault.choice, fault.target, fault.options, nodes) for fault in faults]
    return all(_quorum(together, nodes) for together in itertools.product(*possible))


def _quorum(together: Sequence[Impact], nodes: tuple[str, ...]) -> bool:
    grudge = union(nodes, [impact.grudge for impact in together])
    return has_quorum(grudge, frozenset().union(*(impact.down for impact in together)))
