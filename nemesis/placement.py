"""Finds a place for a fault among the faults of a plan.

Two faults of one group (one process, disk, clock or device) never share a node, so that the healing of one cannot be mistaken
for the healing of the other. Faults of processes with different roles can share a node. A fault without a free node at its
start tests nothing, and its kind may have no effect in the whole run. So a plan keeps three rules:

- Other faults never affect all nodes of a fault, whichever node leads.
- A kind that chooses the number of its nodes leaves one node to the other kinds of its group.
- A kind that chooses its nodes includes the one that other kinds have not affected for the longest time. On a busy machine, a
  process can need much longer to start than planned.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.targets import EVERYWHERE, AtTrigger, ByLeader, names_of
from nemesis import targets as tgt
from nemesis.fault import Hit
from nemesis.grudges import has_quorum, union

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import Trigger
    from harness.targets import PlanTarget
    from nemesis.chosen import Choice
    from nemesis.fault import Drawn, Impact
    from nemesis.targets import Layout

RECOVERY_S = 5.0  # after a fault, a node counts as down for this time
LET_GO_S = 3.0  # after its end, a fault still affects its nodes for this time, since a process must start again
WORN_S = 20.0  # on a busy machine, a fault can still affect its nodes for this time
SLACK_S = 0.002
MATTERS_S = (
    max(RECOVERY_S, LET_GO_S, WORN_S) + SLACK_S
)  # after this time, a fault does not affect the placement of others


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A fault with its place in a plan.

    Attributes:
        choice: The requested kind.
        start_s: The time of its start.
        end_s: The time of its healing.
        drawn: Its target and its options.
        trigger: The condition with which it begins; None: it begins at `start_s`.
    """

    choice: Choice
    start_s: float
    end_s: float
    drawn: Drawn
    trigger: Trigger | None = None

    @property
    def target(self) -> PlanTarget:
        """Returns its target."""
        return self.drawn.target

    def lasts(self, at_s: float, *, after_s: float) -> bool:
        """Returns whether this fault is on at a time, or ended less than `after_s` before."""
        return self.start_s <= at_s < self.end_s + after_s - SLACK_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The nodes that other faults affect at the start of a fault, as far as their names are known.

    Attributes:
        held: The nodes that other faults of its group affect.
        worn: The nodes that other kinds of its group affect, or affected recently, with the end of the last fault.
    """

    held: frozenset[str]
    worn: Mapping[str, float]


def has_rivals(choice: Choice, choices: Sequence[Choice]) -> bool:
    """Returns whether another requested kind must not share a node with this one."""
    return any(choice.occupied.meets(other.occupied) for other in choices if other is not choice)


def occupancy(choice: Choice, at_s: float, placed: Sequence[Placed]) -> Occupancy:
    """Returns the nodes that other faults affect when a fault of this kind begins at `at_s`."""
    others = [other for other in placed if choice.occupied.meets(other.choice.occupied)]
    holding = [other.target for other in others if other.lasts(at_s, after_s=LET_GO_S)]
    ended_s: dict[str, float] = {}
    for other in others:
        if other.choice is not choice and other.lasts(at_s, after_s=WORN_S):
            for node in _named([other.target]):
                ended_s[node] = max(other.end_s, ended_s.get(node, 0.0))
    return Occupancy(held=_named(holding), worn=ended_s)


def must_wait(fault: Placed, placed: Sequence[Placed], where: Layout, *, keep_majority: bool) -> float | None:
    """Returns the time for the next try, if a fault cannot be on together with those at its start; None if it can.

    Args:
        fault: The fault.
        placed: The placed faults, none of which begins later.
        where: The nodes and their roles.
        keep_majority: Whether, for each role, a node must always reach a running majority, whichever node leads.
    """
    rivals = [other for other in placed if fault.choice.occupied.meets(other.choice.occupied)]
    holding = [other for other in rivals if other.lasts(fault.start_s, after_s=LET_GO_S)]
    if holding and not _go_together(fault, holding, where):
        return min(other.end_s for other in holding) + LET_GO_S
    if keep_majority:
        near = [other for other in placed if other.lasts(fault.start_s, after_s=RECOVERY_S)]
        if near and not keep_together([*near, fault], where):
            return min(other.end_s + RECOVERY_S for other in near)
    return None


def keep_together(faults: Sequence[Placed], where: Layout) -> bool:
    """Returns whether, with all these faults on, a node of each role reaches a running majority, whichever node leads."""
    for role, members in where.counted():
        relevant = [fault for fault in faults if None in {role, fault.choice.role} or fault.choice.role == role]
        possible = [impacts(fault, where) for fault in relevant]
        if not all(_quorum(together, members) for together in itertools.product(*possible)):
            return False
    return True


def takes_majority(fault: Placed, where: Layout) -> bool:
    """Returns whether a fault alone leaves no node a running majority to reach, whichever node leads at its start.

    For a fault with a role as its target, the nodes of that role count; for other faults, the nodes of each role.
    """
    groups = [where.of(fault.choice.role)] if fault.choice.role else [members for _, members in where.counted()]
    return not any(_quorum([impact], members) for impact in impacts(fault, where) for members in groups)


def impacts(fault: Placed, where: Layout) -> list[Impact]:
    """Returns the possible impacts of a fault: one, or one for each node that may lead or may be that of the trigger."""
    members = where.of(fault.choice.role)
    kind, drawn = fault.choice.kind.fault, fault.drawn
    return [
        kind.impact(Hit(nodes=members, targets=targets, order=drawn.order or members), drawn.options)
        for targets in _possible(fault, where)
    ]


def _possible(fault: Placed, where: Layout) -> list[tuple[str, ...]]:
    members = where.of(fault.choice.role)
    some = members if isinstance(fault.target, ByLeader | AtTrigger) else (None,)
    return [tgt.resolve(fault.target, members, order=fault.drawn.order, leader=node, fired_on=node) for node in some]


def _go_together(fault: Placed, holding: Sequence[Placed], where: Layout) -> bool:
    """Returns whether a fault shares no named node with the `holding` faults, and certainly finds a free node."""
    nodes = where.of(fault.choice.role)
    taken = _named([other.target for other in holding]) & frozenset(nodes)
    if any(other.target in EVERYWHERE for other in (fault, *holding)):
        return False
    if taken & set(names_of(fault.target)):
        return False
    unnamed = sum(max(map(len, _possible(other, where))) for other in holding if not names_of(other.target))
    down = all(other.choice.kind.fault.DISABLES and other.start_s < fault.start_s for other in holding)
    if fault.target in (tgt.LEADER, tgt.LEADER_MINORITY) and down and len(taken) + unnamed < len(nodes):
        return True  # a node that has been down is not the leader
    return all(len(set(targets) - taken) > unnamed for targets in _possible(fault, where))


def _named(targets: Sequence[PlanTarget]) -> frozenset[str]:
    return frozenset(node for target in targets for node in names_of(target))


def _quorum(together: Sequence[Impact], nodes: Sequence[str]) -> bool:
    """Returns whether one of these nodes reaches a running majority of them."""
    whole = union(nodes, [impact.grudge for impact in together])
    grudge = {node: whole[node] & frozenset(nodes) for node in nodes}
    return has_quorum(grudge, frozenset().union(*(impact.down for impact in together)))
