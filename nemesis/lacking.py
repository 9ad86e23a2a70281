"""What nodes lack for kinds of faults.

Labrys refuses a kind that a node does not support before the run, and names the node and what it lacks. `all` leaves such a
kind out, and the output names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.capabilities import LEADER, SIMULATED, SWITCH
from harness.targets import ByLeader
from nemesis import triggers
from nemesis.asked import Request
from nemesis.kinds import (
    NEVER_REAL,
    Kind,
    all_called,
    excluded,
    find_kind,
    of_all,
    too_few,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import PlannedFault
    from harness.node import Node
    from nemesis.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A kind that `all` left out of a plan.

    Attributes:
        kind: Its name.
        nodes: The nodes that lack a capability for it; empty if there is another reason.
        missing: What they lack, with the reason of each node; or another reason.
    """

    kind: str
    nodes: tuple[str, ...]
    missing: str

    @property
    def reason(self) -> str:
        """Returns why it was left out, as a text."""
        if not self.nodes:
            return self.missing
        return f"{', '.join(self.nodes)} {'lacks' if len(self.nodes) == 1 else 'lack'} {self.missing}"


def left_out(
    capabilities: Mapping[str, Capabilities], request: Request | None = None, nodes: Sequence[str] | None = None
) -> tuple[LeftOut, ...]:
    """Returns the kinds that `all` leaves out on these nodes, each with the nodes and what they lack.

    Args:
        capabilities: The capabilities of the nodes.
        request: The request; the result does not have the kinds that it leaves out itself.
        nodes: The names of all nodes; None: they are enough for each kind.
    """
    omissions = []
    without = excluded(request or Request(), of_all())
    for kind in of_all():
        few = "" if nodes is None or kind.name in without else too_few(kind, nodes)
        gaps = [] if few or kind.name in without else gaps_of(kind, capabilities)
        if few:
            omissions.append(LeftOut(kind=kind.name, nodes=(), missing=f"it {few}"))
        if gaps:
            lack = {gap.node for gap in gaps}
            lacking = tuple(node for node in capabilities if node in lack)
            omissions.append(LeftOut(kind=kind.name, nodes=lacking, missing=_missing(gaps)))
    return tuple(omissions)


def impossible(capabilities: Mapping[str, Capabilities]) -> frozenset[str]:
    """Returns the names of kinds and variants that some of these nodes do not support."""
    return frozenset(
        called.name for called in all_called().values() if gaps_of(called.kind, capabilities, target=called.target)
    )


def missing_capabilities(
    faults: Iterable[PlannedFault], capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = ()
) -> list[str]:
    """Returns what nodes lack for the faults of a run. If there is such a sentence, the run must not start.

    Args:
        faults: The faults.
        capabilities: The capabilities of each node, by its name.
        nodes: The nodes. If they have IPv6 addresses, packet faults need `ip6tables` too.

    Returns:
        A sentence for each kind that a node does not support, with the node and the missing capability.
    """
    faults = tuple(faults)
    needed = dict.fromkeys((fault.kind, fault.role is not None) for fault in faults)
    lines = [
        line for name, at_role in needed for line in _lacking(find_kind(name), capabilities, nodes, at_role=at_role)
    ]
    lines += [
        f"{node} lacks {SWITCH}, which {fault.kind} on single links needs: {can.missing.get(SWITCH, 'not found')}"
        for fault in faults
        for node, can in capabilities.items()
        if can.available.isdisjoint({SIMULATED, SWITCH}) and find_kind(fault.kind).fault.on_switch(fault.options)
    ]
    return list(dict.fromkeys([*lines, *triggers.lacking(faults, capabilities)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A capability that a kind needs and a node lacks, with the node's reason, and the same for the alternative."""

    capability: str
    node: str
    reason: str
    instead: str | None
    instead_reason: str


def gaps_of(
    kind: Kind,
    capabilities: Mapping[str, Capabilities],
    nodes: Sequence[Node] = (),
    *,
    at_role: bool = False,
    target: Target | None = None,
) -> list[Gap]:
    """Returns what nodes lack for a kind.

    Args:
        kind: The kind.
        capabilities: The capabilities of each node, by its name.
        nodes: The nodes; see `missing_capabilities`.
        at_role: Whether the target is a role.
        target: The target; None: the default one of the kind.
    """
    gaps = []
    needs = sorted(kind.fault.needs(nodes, at_role=at_role))
    simulated = [node for node, can in capabilities.items() if SIMULATED in can.available]
    if simulated and needs and kind.simulated is None:
        reason = (
            f"the kind {kind.name} has no effect in the simulator; docs/guide/new-fault.md describes how to add one"
        )
        gaps += [
            Gap(capability="a simulated effect", node=node, reason=reason, instead=None, instead_reason="")
            for node in simulated
        ]
    effect_needs = kind.simulated.NEEDS if simulated and kind.simulated is not None else frozenset()
    for capability in sorted(
        effect_needs | kind.fault.OF_SYSTEM | ({LEADER} if isinstance(target or kind.target, ByLeader) else set())
    ):
        gaps += [
            Gap(capability=capability, node=node, reason=can.missing[capability], instead=None, instead_reason="")
            for node, can in capabilities.items()
            if capability in can.missing
        ]
    for capability in needs:
        other = kind.fault.INSTEAD.get(capability)
        for node, can in capabilities.items():
            if SIMULATED not in can.available and can.available.isdisjoint({capability, other}):
                reason = can.missing.get(capability, NEVER_REAL.get(capability, "not found"))
                instead_reason = can.missing.get(other, "not found") if other else ""
                gaps.append(
                    Gap(capability=capability, node=node, reason=reason, instead=other, instead_reason=instead_reason)
                )
    return gaps


def _lacking(
    kind: Kind, capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = (), *, at_role: bool = False
) -> list[str]:
    return [
        f"{gap.node} lacks {gap.capability}, which {kind.name} needs: {gap.reason}"
        + (f"; it also lacks the alternative {gap.instead}: {gap.instead_reason}" if gap.instead else "")
        for gap in gaps_of(kind, capabilities, nodes, at_role=at_role)
    ]


def _missing(gaps: Sequence[Gap]) -> str:
    """Returns what nodes lack, with each reason once."""
    nodes_by_reason: dict[str, dict[str, list[str]]] = {}
    for gap in gaps:
        nodes_by_reason.setdefault(gap.capability, {}).setdefault(gap.reason, []).append(gap.node)
        if gap.instead:
            nodes_by_reason.setdefault(gap.instead, {}).setdefault(gap.instead_reason, []).append(gap.node)
    return " and ".join(f"{capability} ({_joined(reasons)})" for capability, reasons in nodes_by_reason.items())


def _joined(reasons: Mapping[str, Sequence[str]]) -> str:
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{', '.join(nodes)}: {reason}" for reason, nodes in reasons.items())
