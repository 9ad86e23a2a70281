"""Draws a plan from the seed: the faults, with their times and targets.

Every kind has its own streams, one for its rhythm and one for each of its faults. So another kind never changes its draws. If a
fault would share a node with a fault of its group (two faults of one process), it takes free nodes instead, or waits if there
are not enough. With `keep_majority`, it also waits if it would take the majority away together with the other faults. The
placement makes sure that each kind finds a node. If a kind waits until the end because others take turns, the plan is drawn
again, and the others wait for its first fault. Drawing resolves the targets that do not depend on the leader.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.console.documents import shown
from harness.faults import PlannedFault
from harness.randomness import stream
from harness.targets import Named
from nemesis.damage import damage_pool
from nemesis.errors import PlanError
from nemesis.fault import Drawing, Drawn
from nemesis.grudges import minority
from nemesis.placement import (
    MATTERS_S,
    SLACK_S,
    Placed,
    has_rivals,
    keep_together,
    must_wait,
    occupancy,
    takes_majority,
)
from nemesis.rhythm import Rhythm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random

    from nemesis.chosen import Choice
    from nemesis.targets import Layout

REDRAWS = 200
MAX_FAULTS = 100_000  # the same limit as in a plan file
DECIMALS = 3  # times are whole milliseconds


class _NoPlaceError(PlanError):
    """A kind has no fault, because it never found a place among the others.

    Attributes:
        label: The kind's label.
    """

    def __init__(self, label: str, time_limit_s: float) -> None:
        super().__init__(
            f"{label} does not fit into {time_limit_s:g} s with the other faults; give more time, shorter on and off times, "
            "or fewer faults"
        )
        self.label = label


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A kind at one role, or at whole nodes.

    Attributes:
        choice: The kind, with its role.
        at_most: The maximum number of targets, if the kind chooses it.
        pool: The only nodes that it may affect.
    """

    choice: Choice
    at_most: int
    pool: tuple[str, ...]


class _Candidate:
    """The next fault of a kind, or the next ones at several roles together. Their times are drawn before their targets."""

    def __init__(self, parts: Sequence[_Part], rhythm: Rhythm, *, seed: int) -> None:
        self.parts = parts
        self.choice = parts[0].choice
        self.rhythm = rhythm
        self.placed = 0
        self.has_waited = False
        self.start_s = 0.0
        self._seed = seed
        self._rhythm_rng = self._stream("rhythm")
        self.takes_s = self._planned_s()

    def first(self, time_limit_s: float, *, at_once: bool) -> None:
        """Draws the start of the first fault; with `at_once` it starts as early as possible.

        Raises:
            PlanError: The time limit is too short for the fault.
        """
        rhythm = self.rhythm
        room_s = time_limit_s - rhythm.least_s
        if room_s < 0:
            wait = f"up to {rhythm.wait_s:g} s of wait, " if rhythm.wait_s else ""
            raise PlanError(
                f"{self.choice.label} does not fit into {time_limit_s:g} s: {rhythm.quiet_s:g} s of quiet, {wait}at least "
                f"{rhythm.on_s[0]:g} s on, and {rhythm.tail_s:g} s of quiet at the end need {rhythm.least_s:g} s"
            )
        later_s = self._rhythm_rng.uniform(0.0, min(room_s, rhythm.off_s[1]))
        self.start_s = rhythm.quiet_s + (0.0 if at_once else later_s)

    def is_first(self, ahead: frozenset[str]) -> bool:
        """Returns whether its next fault is its first one, for which the other kinds wait."""
        return not self.placed and self.choice.label in ahead

    def next(self, end_s: float) -> None:
        """Draws the start and the duration of the next fault, after one that ends at `end_s`."""
        self.placed += 1
        self.start_s = end_s + self._rhythm_rng.uniform(*self.rhythm.off_s)
        self.takes_s = self._planned_s()

    def _planned_s(self) -> float:
        """Draws the planned time of a fault, its wait included."""
        return self.rhythm.wait_s + self._rhythm_rng.uniform(*self.rhythm.on_s)

    def faults(
        self, end_s: float, placed: Sequence[Placed], where: Layout, *, keep_majority: bool, take_majority: bool
    ) -> list[Placed]:
        """Draws the target and the options at each role; see `_fault`."""
        return [
            self._fault(part, end_s, placed, where, keep_majority=keep_majority, take_majority=take_majority)
            for part in self.parts
        ]

    def _fault(
        self,
        part: _Part,
        end_s: float,
        placed: Sequence[Placed],
        where: Layout,
        *,
        keep_majority: bool,
        take_majority: bool,
    ) -> Placed:
        """Draws the target and the options. It draws again if the fault alone violates the rule about the majority.

        Each call restarts the stream, so that waiting does not change the draws.
        """
        choice = part.choice
        nodes = where.of(choice.role)
        room = occupancy(choice, self.start_s, placed)
        count = str(self.placed)
        drawing = Drawing(
            nodes=nodes,
            rng=self._stream(f"{choice.role}/{count}" if len(self.parts) > 1 else count),
            target=choice.target,
            options=choice.options,
            at_most=part.at_most,
            pool=part.pool,
            # With `take_majority`, the free nodes are usually too few. The fault then waits.
            held=frozenset() if take_majority else room.held,
            worn=room.worn,
        )
        for _ in range(REDRAWS):
            fault = Placed(
                choice=choice,
                start_s=self.start_s,
                end_s=end_s,
                trigger=self.rhythm.trigger,
                drawn=_drawn(choice, drawing),
            )
            kept = not keep_majority or keep_together([fault], where)
            if kept and (not take_majority or takes_majority(fault, where)):
                return fault
        if keep_majority:
            raise PlanError(
                f"{choice.label} always takes the majority away from {len(nodes)} nodes, and it must be kept"
            )
        raise PlanError(f"{choice.label} never takes the majority away from {len(nodes)} nodes, and it must")

    def _stream(self, name: str) -> Random:
        return stream(self._seed, f"nemesis/{self.choice.label}/{name}")


def draw_plan(
    choices: Sequence[Choice],
    where: Layout,
    *,
    seed: int,
    time_limit_s: float,
    rhythms: Mapping[str, Rhythm] | None = None,
    keep_majority: bool = False,
    take_majority: bool = False,
    each_at_least_once: bool = True,
    in_turn: bool = False,
    most: int = MAX_FAULTS,
) -> tuple[PlannedFault, ...]:
    """Draws the faults of a run.

    Args:
        choices: The requested kinds; see `chosen.choose_all`.
        where: The nodes and their roles.
        seed: The run's root seed.
        time_limit_s: The duration of the workload.
        rhythms: Rhythms by the names of the choices; others have the default one.
        keep_majority: Whether, for each role, a node must always reach a running majority, whichever node leads.
        take_majority: Whether each fault alone must leave no node such a majority.
        each_at_least_once: Whether a kind without a fault in the plan is an error. A kind that only `all` requests is never an
            error.
        in_turn: Whether each kind has one fault, in the order of `choices`, one after the other.
        most: The maximum number of faults.

    Raises:
        PlanError: A kind does not fit into the time, or is impossible with these nodes or these rules about the majority.
    """
    if keep_majority and take_majority:
        raise PlanError("the majority cannot be both kept and taken away")
    ahead: frozenset[str] = frozenset()
    while True:
        try:
            placed = _place(
                choices,
                where,
                seed=seed,
                time_limit_s=time_limit_s,
                rhythms=rhythms or {},
                keep_majority=keep_majority,
                take_majority=take_majority,
                each_at_least_once=each_at_least_once,
                in_turn=in_turn,
                most=most,
                ahead=ahead,
            )
        except _NoPlaceError as error:
            if in_turn or error.label in ahead:
                raise
            ahead |= {error.label}
        else:
            return number(_entry(fault) for fault in placed)


def _place(
    choices: Sequence[Choice],
    where: Layout,
    *,
    seed: int,
    time_limit_s: float,
    rhythms: Mapping[str, Rhythm],
    keep_majority: bool,
    take_majority: bool,
    each_at_least_once: bool,
    in_turn: bool,
    most: int,
    ahead: frozenset[str],
) -> list[Placed]:
    """Draws the faults; see `draw_plan`. If a kind of `ahead` waits for its first fault, the others wait for it.

    Raises:
        PlanError: See `draw_plan`.
    """
    heap: list[tuple[float, bool, int, _Candidate]] = []
    every = [part for choice in choices for part in choice.parts]
    for index, choice in enumerate(choices):
        parts = [
            _Part(
                choice=part,
                at_most=_at_most(part, every, where.of(part.role), keep_majority=keep_majority),
                pool=_pool(part, every, where, seed),
            )
            for part in choice.parts
        ]
        candidate = _Candidate(parts, rhythms.get(choice.name, Rhythm()), seed=seed)
        candidate.first(time_limit_s, at_once=in_turn)
        heapq.heappush(heap, (candidate.start_s, not candidate.is_first(ahead), index, candidate))
    placed: list[Placed] = []
    recent: list[Placed] = []  # the faults that can still affect the placement of later ones
    while heap:
        if len(placed) > most:
            raise PlanError(
                f"{time_limit_s:g} s have room for more than {most} faults; give less time, longer on and off times, "
                "or fewer faults"
            )
        _, _, index, candidate = heapq.heappop(heap)
        limit_s = time_limit_s - candidate.rhythm.tail_s
        candidate.start_s = round(candidate.start_s, DECIMALS)
        end_s = round(min(candidate.start_s + candidate.takes_s, limit_s), DECIMALS)
        if end_s - candidate.start_s < candidate.rhythm.wait_s + candidate.rhythm.on_s[0] - SLACK_S:
            needed = each_at_least_once and (in_turn or not candidate.choice.by_all)
            if needed and not candidate.placed:
                raise _NoPlaceError(candidate.choice.label, time_limit_s)
            continue
        recent = [other for other in recent if other.end_s + MATTERS_S > candidate.start_s]
        faults = candidate.faults(end_s, recent, where, keep_majority=keep_majority, take_majority=take_majority)
        waits = [must_wait(fault, recent, where, keep_majority=keep_majority) for fault in faults]
        if not candidate.is_first(ahead):
            waits.extend(other.start_s for *_, other in heap if other.is_first(ahead) and other.has_waited)
        wait_s = max((wait for wait in waits if wait is not None), default=None)
        if in_turn and placed:
            free_s = placed[-1].end_s + candidate.rhythm.off_s[0]
            wait_s = free_s if candidate.start_s < free_s - SLACK_S else wait_s
        if wait_s is not None:
            candidate.start_s = wait_s
            candidate.has_waited = True
        else:
            placed.extend(faults)
            recent.extend(faults)
            if in_turn:
                continue
            candidate.next(end_s)
        heapq.heappush(heap, (candidate.start_s, not candidate.is_first(ahead), index, candidate))
    return placed


def number(faults: Iterable[PlannedFault]) -> tuple[PlannedFault, ...]:
    """Returns the faults in the order of their start, with dense ids from 0."""
    ordered = sorted(faults, key=lambda fault: (fault.start_s, fault.end_s, fault.kind))
    return tuple(replace(fault, id=index) for index, fault in enumerate(ordered))


def _entry(fault: Placed) -> PlannedFault:
    """Returns the fault as an entry of a plan."""
    return PlannedFault(
        id=0,
        kind=fault.choice.kind.name,
        target=fault.target,
        start_s=fault.start_s,
        end_s=fault.end_s,
        trigger=fault.trigger,
        role=fault.choice.role,
        order=fault.drawn.order,
        options=fault.drawn.options,
    )


def _drawn(choice: Choice, drawing: Drawing) -> Drawn:
    """Draws the target and the options of a fault of a kind, which may be a plug-in's.

    Raises:
        PlanError: The kind draws something else.
    """
    drawn: object = choice.kind.fault.draw(drawing)
    if not isinstance(drawn, Drawn):
        raise PlanError(
            f"the kind {choice.kind.name} drew {shown(repr(drawn))}; its method draw must return nemesis.fault.Drawn"
        )
    return drawn


def _at_most(choice: Choice, choices: Sequence[Choice], nodes: tuple[str, ...], *, keep_majority: bool) -> int:
    """Returns the maximum number of targets, if the kind chooses it. It leaves one node to other kinds of its group."""
    at_most = len(nodes)
    if has_rivals(choice, choices):
        at_most = max(1, at_most - 1)
    if keep_majority and choice.kind.fault.DISABLES:
        at_most = min(at_most, max(1, minority(len(nodes))))
    return at_most


def _pool(choice: Choice, choices: Sequence[Choice], where: Layout, seed: int) -> tuple[str, ...]:
    """Returns the nodes that a kind may affect: all, or for permanent damage, the nodes that all such kinds share."""
    if not choice.kind.fault.DAMAGES:
        return where.of(choice.role)
    damaging = [other for other in choices if other.kind.fault.DAMAGES and choice.occupied.meets(other.occupied)]
    named = [node for other in damaging if isinstance(other.target, Named) for node in other.target.nodes]
    return damage_pool(where, choice.role, stream(seed, "nemesis/damage"), named)
