"""The targets of planned faults: named nodes, or nodes that the start of a fault decides.

A target in a plan is one of these types. A plan has it as a word, or as a list of names; the record of a run has its members.
The room `nemesis` draws targets and finds their nodes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME_SEPARATOR: Final = "+"


class Lead(StrEnum):
    """The nodes of a target, by who leads."""

    LEADER = "leader"
    LEADER_MINORITY = "leader+minority"
    FOLLOWER = "follower"
    FOLLOWERS = "followers"


class Named(Struct, frozen=True, tag="named"):
    """Nodes with these names, in this order."""

    nodes: tuple[str, ...]

    def __str__(self) -> str:
        """Returns its form on the command line, e.g. `n1+n2`."""
        return NAME_SEPARATOR.join(self.nodes)


class AllNodes(Struct, frozen=True, tag="all"):
    """All candidate nodes."""

    def __str__(self) -> str:
        """Returns its word."""
        return "all"


class Helix(Struct, frozen=True, tag="helix"):
    """All candidate nodes, each with another part of its files; see `harness.damage`."""

    def __str__(self) -> str:
        """Returns its word."""
        return "helix"


class ByLeader(Struct, frozen=True, tag="by-leader"):
    """Nodes that depend on who leads when the fault begins."""

    lead: Lead

    def __str__(self) -> str:
        """Returns its word."""
        return str(self.lead)


class AtTrigger(Struct, frozen=True, tag="at-trigger"):
    """The node that fired the trigger of the fault."""

    def __str__(self) -> str:
        """Returns its word."""
        return "trigger"


PlanTarget: TypeAlias = Named | AllNodes | Helix | ByLeader | AtTrigger
EVERYWHERE: Final = (AllNodes(), Helix())  # the targets that are all candidate nodes

_OF_WORDS: Final[tuple[PlanTarget, ...]] = (*EVERYWHERE, *(ByLeader(lead) for lead in Lead), AtTrigger())
PLAN_WORDS: Final[Mapping[str, PlanTarget]] = {str(target): target for target in _OF_WORDS}


def names_of(target: PlanTarget) -> tuple[str, ...]:
    """Returns the nodes that a target names; none if it is a word."""
    match target:
        case Named(nodes):
            return nodes
        case AllNodes() | Helix() | ByLeader() | AtTrigger():
            return ()
        case _:
            assert_never(target)


def to_json(target: PlanTarget) -> str | list[str]:
    """Returns a target as files have it: a word, or a list of names."""
    return list(target.nodes) if isinstance(target, Named) else str(target)


def from_json(written: str | Sequence[str]) -> PlanTarget:
    """Returns the target that a file has as a word, or as a list of names.

    Raises:
        ValueError: The text is no word for a target.
    """
    if not isinstance(written, str):
        return Named(tuple(written))
    if written not in PLAN_WORDS:
        raise ValueError(f"expected a list of nodes, or one of {', '.join(PLAN_WORDS)}, found {written!r}")
    return PLAN_WORDS[written]
