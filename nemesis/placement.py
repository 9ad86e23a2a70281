"""Finds a place for a fault among the faults of a plan.

Two faults of one group (one process, disk, clock or device) never share a node, so that the healing of one is never taken for
that of the other. Faults of processes with different roles may share a node. A fault without a free node at its start tests
nothing, and its kind may have no effect in the whole run. So a plan keeps three rules:

- Other faults never affect all nodes of a fault, whichever node leads.
- A kind that chooses the number of its nodes leaves one node to the other kinds of its group.
- A kind that chooses its nodes includes the one that other kinds left alone for the longest time. On a busy machine, a process
may
  need much longer to start than planned.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nemesis import targets as tgt
from nemesis.fault import meet
from nemesis.grudges import has_quorum, union
from nemesis.options import ORDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value
    from nemesis.fault import Impact
    from nemesis.kinds import Choice
    from nemesis.targets import Layout

RECOVERY_S = 5.0  # a node that was down counts as down for so long after its fault
LET_GO_S = 3.0  # a fault holds its nodes for so long after its end: a process has to start again
WORN_S = 20.0  # for so long after it, a node may still be held where the machine is busy
SLACK_S = 0.002
MATTERS_S = max(RECOVERY_S, LET_GO_S, WORN_S) + SLACK_S  # no fault matters to others for longer than that after its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A fault with its place in a plan.

    Attributes:
        choice: The kind as it was asked for.
        start_s: When it begins.
        end_s: When it is healed.
        target: Names, or what depends on the leader.
        options: As in the plan.
    """

    choice: Choice
    start_s: float
    end_s: float
    target: str | tuple[str, ...]
    options: Mapping[str, Value] = field(default_factory=dict)

    def lasts(self, at_s: float, *, after_s: float) -> bool:
        """Says whether this fault, which began before, is on at a time or ended less than `after_s` before."""
        return self.start_s <= at_s < self.end_s + after_s - SLACK_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Which nodes a fault finds held, as far as names are known.

    Attributes:
        held: Those that other faults of its group hold.
        worn: Those that other kinds of its group hold or held lately, with the time at which they are to let go of them.
    """

    held: frozenset[str]
    worn: Mapping[str, float]


def rivals(one: Choice, other: Choice) -> bool:
    """Says whether faults of two kinds may not share a node."""
    return meet(one.kind.fault.GROUPS, one.role, other.kind.fault.GROUPS, other.role)


def has_rivals(choice: Choice, choices: Sequence[Choice]) -> bool:
    """Says whether another kind among those asked for may not share a node with this one."""
    return any(rivals(choice, other) for other in choices if other is not choice)


def occupancy(choice: Choice, at_s: float, placed: Sequence[Placed]) -> Occupancy:
    """Returns which nodes a fault that begins at `at_s` finds held."""
    others = [other for other in placed if rivals(choice, other.choice)]
    held = [other.target for other in others if other.lasts(at_s, after_s=LET_GO_S)]
    worn: dict[str, float] = {}
    for other in others:
        if other.choice is not choice and other.lasts(at_s, after_s=WORN_S):
            for node in _named([other.target]):
                worn[node] = max(other.end_s, worn.get(node, 0.0))
    return Occupancy(held=_named(held), worn=worn)


def must_wait(fault: Placed, placed: Sequence[Placed], where: Layout, *, keep_majority: bool) -> float | None:
    """Returns when to try again, where a fault cannot be placed beside those that are on at its start.

    Args:
        fault: The fault.
        placed: Those that have their place, none of which begins later.
        where: The nodes and their roles.
        keep_majority: Whether, of each role, some node must always be able to talk to a majority that is up, whoever leads.
    """
    holding = [
        other for other in placed if rivals(fault.choice, other.choice) and other.lasts(fault.start_s, after_s=LET_GO_S)
    ]
    if holding and not _go_together(fault, holding, where):
        return min(other.end_s for other in holding) + LET_GO_S
    if keep_majority:
        near = [other for other in placed if other.lasts(fault.start_s, after_s=RECOVERY_S)]
        if near and not keep_together([*near, fault], where):
            return min(other.end_s + RECOVERY_S for other in near)
    return None


def keep_together(faults: Sequence[Placed], where: Layout) -> bool:
    """Says whether faults that are on together leave, of each role, some node a majority to talk to, whoever leads then."""
    for role, members in where.counted():
        about = [fault for fault in faults if None in {role, fault.choice.role} or fault.choice.role == role]
        possible = [impacts(fault, where) for fault in about]
        if not all(_quorum(together, members) for together in itertools.product(*possible)):
            return False
    return True


def takes_majority(fault: Placed, where: Layout) -> bool:
    """Says whether a fault by itself leaves no node a majority to talk to, whoever leads at its start.

    Of a fault that is aimed at a role, the nodes of that role count; of another one, those of each role.
    """
    groups = [where.of(fault.choice.role)] if fault.choice.role else [members for _, members in where.counted()]
    return not any(_quorum([impact], members) for impact in impacts(fault, where) for members in groups)


def impacts(fault: Placed, where: Layout) -> list[Impact]:
    """Returns what a fault may take away: one possibility, or one for each node that may lead."""
    members = where.of(fault.choice.role)
    return [fault.choice.kind.fault.impact(members, targets, fault.options) for targets in _possible(fault, where)]


def _possible(fault: Placed, where: Layout) -> list[tuple[str, ...]]:
    members = where.of(fault.choice.role)
    order = fault.options.get(ORDER, members)
    leaders = members if tgt.by_leader(fault.target) else (None,)
    return [tgt.resolve(fault.target, members, order=order, leader=leader) for leader in leaders]


def _go_together(fault: Placed, holding: Sequence[Placed], where: Layout) -> bool:
    """Says whether a fault shares no named node with those that hold theirs, and is sure to find one that is free."""
    nodes = where.of(fault.choice.role)
    held = _named([other.target for other in holding]) & frozenset(nodes)
    if tgt.ALL in (fault.target, *(other.target for other in holding)):
        return False
    if not isinstance(fault.target, str) and held & set(fault.target):
        return False
    unnamed = sum(max(map(len, _possible(other, where))) for other in holding if isinstance(other.target, str))
    down = all(other.choice.kind.fault.DISABLES for other in holding)
    if fault.target in (tgt.LEADER, tgt.LEADER_MINORITY) and down and len(held) + unnamed < len(nodes):
        return True  # a node that is down does not lead
    return all(len(set(targets) - held) > unnamed for targets in _possible(fault, where))


def _named(targets: Sequence[str | tuple[str, ...]]) -> frozenset[str]:
    return frozenset(node for target in targets if not isinstance(target, str) for node in target)


def _quorum(together: Sequence[Impact], nodes: Sequence[str]) -> bool:
    """Says whether some of these nodes can talk to a majority of them that is up."""
    whole = union(nodes, [impact.grudge for impact in together])
    grudge = {node: whole[node] & frozenset(nodes) for node in nodes}
    return has_quorum(grudge, frozenset().union(*(impact.down for impact in together)))
