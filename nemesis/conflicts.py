"""Refuses plans whose faults contradict each other.

Two faults of one group must not share a node, because the healing of one would be mistaken for the healing of the other. A
fault that waits for a start of its node is apart from the others: a process that starts is no longer killed.
Permanent damage can affect at most a minority of the nodes. Faults in turn must not overlap. The check looks at each fault
once, so that a plan with very many faults takes no long time.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.targets import EVERYWHERE, names_of
from nemesis.damage import too_damaged
from nemesis.errors import PlanError
from nemesis.fault import Occupied
from nemesis.kinds import find_kind
from nemesis.triggers import find_trigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults import PlannedFault
    from nemesis import targets as tgt


@dataclass(slots=True, kw_only=True)
class _Holders:
    """The faults of one group and one role with the latest end: of each named node, of all nodes, and of any nodes."""

    of_node: dict[str, PlannedFault] = field(default_factory=dict)
    of_all: PlannedFault | None = None
    of_any: PlannedFault | None = None

    def rivals(self, later: PlannedFault) -> list[PlannedFault]:
        """Returns the faults that may hold a node of a later one."""
        if later.target in EVERYWHERE:
            faults = [self.of_any]
        else:
            faults = [self.of_all, *(self.of_node.get(name) for name in names_of(later.target))]
        return [fault for fault in faults if fault is not None]

    def add(self, fault: PlannedFault) -> None:
        """Takes note of a fault."""
        self.of_any = _later(fault, self.of_any)
        if fault.target in EVERYWHERE:
            self.of_all = _later(fault, self.of_all)
        for name in names_of(fault.target):
            self.of_node[name] = _later(fault, self.of_node.get(name))


def _later(fault: PlannedFault, other: PlannedFault | None) -> PlannedFault:
    """Returns the fault with the later end."""
    return fault if other is None or other.end_s < fault.end_s else other


def check_together(faults: Sequence[PlannedFault], where: tgt.Layout) -> None:
    """Refuses faults of one group that share a node, and damage to more than a minority.

    Args:
        faults: The faults, in the order of their start.
        where: The nodes and their roles.

    Raises:
        PlanError: There are such faults.
    """
    holders: defaultdict[tuple[str, str | None], _Holders] = defaultdict(_Holders)
    damaged: defaultdict[str | None, set[str]] = defaultdict(set)
    for later in faults:
        kind = find_kind(later.kind).fault
        roles = {None, later.role} if later.role else {None, *where.roles}
        rivals = [
            fault
            for key in itertools.product(kind.GROUPS, roles)
            if key in holders
            for fault in holders[key].rivals(later)
        ]
        for fault in rivals:
            apart = later.start_s >= fault.end_s or _follows(fault) or _follows(later)
            shared = [] if apart else _shared(fault, later, where)
            if shared:
                raise PlanError(
                    f"{fault.kind} from {fault.start_s:g} to {fault.end_s:g} s and {later.kind} from "
                    f"{later.start_s:g} s both hold {', '.join(shared)}; let one end before the other begins"
                )
        for group in kind.GROUPS:
            holders[group, later.role].add(later)
        if kind.DAMAGES:
            damaged[later.role].update(names_of(later.target))
    refusal = too_damaged(where, damaged)
    if refusal:
        raise PlanError(refusal)


def check_turns(faults: Sequence[PlannedFault]) -> None:
    """Refuses faults that overlap, except those with the same times.

    Raises:
        PlanError: There are such faults.
    """
    for fault, later in itertools.pairwise(faults):
        if later.start_s < fault.end_s and not later.goes_with(fault):
            raise PlanError(
                f"{fault.kind} ends at {fault.end_s:g} s and {later.kind} begins at {later.start_s:g} s, but the "
                "plan has in_turn; let one end before the other begins, or remove in_turn"
            )


def _follows(fault: PlannedFault) -> bool:
    """Returns whether a fault begins only after a start of its node."""
    return fault.trigger is not None and find_trigger(fault.trigger.name).condition.after_start(fault.trigger)


def _shared(one: PlannedFault, other: PlannedFault, where: tgt.Layout) -> list[str]:
    own, others = _occupied(one, where), _occupied(other, where)
    if {one.target, other.target}.intersection(EVERYWHERE) and own.role == others.role and own.meets(others):
        return ["all nodes"]
    return sorted(own.shared(others))


def _occupied(fault: PlannedFault, where: tgt.Layout) -> Occupied:
    names = where.of(fault.role) if fault.target in EVERYWHERE else names_of(fault.target)
    return Occupied(groups=find_kind(fault.kind).fault.GROUPS, role=fault.role, nodes=frozenset(names))
