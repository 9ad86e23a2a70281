"""The targets of faults: nodes by number, by leadership or by name, and processes by role.

A target that does not depend on the leader becomes names when the plan is drawn. A target that depends on the leader is
resolved when the fault begins. For it, the plan has an order of the nodes, drawn from the seed. So the same seed and the same
leader give the same nodes. Sizes are exact for even numbers of nodes too. With a role, only the nodes with a process of that
role count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.documents import shown
from harness.suggest import did_you_mean
from nemesis.errors import PlanError
from nemesis.grudges import majority, minority

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from random import Random

ALL = "all"
ONE = "one"
RANDOM = "random"
MINORITY = "minority"
MAJORITY = "majority"
LEADER = "leader"
LEADER_MINORITY = "leader+minority"
FOLLOWER = "follower"
FOLLOWERS = "followers"

COUNTED = (ALL, ONE, RANDOM, MINORITY, MAJORITY)
BY_LEADER = (LEADER, LEADER_MINORITY, FOLLOWER, FOLLOWERS)
NAME_SEPARATOR = "+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The nodes, and the roles of their processes.

    Attributes:
        nodes: The names of all nodes, in order.
        roles: Role to the names of its nodes, in their order; empty where the system's processes are not known.
    """

    nodes: tuple[str, ...]
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, role: str | None) -> tuple[str, ...]:
        """Returns the nodes that run a role; all nodes for None.

        Raises:
            PlanError: The role is unknown; the message names the known roles.
        """
        if role is None:
            return self.nodes
        if role not in self.roles:
            raise PlanError(f"unknown role {shown(role)}; {self.known()}")
        return self.roles[role]

    def known(self) -> str:
        """Returns the roles that there are, in words."""
        if not self.roles:
            return "the system names no roles"
        return "the roles are: " + "; ".join(f"{role} on {', '.join(names)}" for role, names in self.roles.items())

    def counted(self) -> Sequence[tuple[str | None, tuple[str, ...]]]:
        """Returns what majorities are counted of: each role with its nodes, or None with all nodes where there is no role."""
        return list(self.roles.items()) or [(None, self.nodes)]


def layout(nodes: Sequence[str], roles: Mapping[str, Sequence[str]] | None = None) -> Layout:
    """Returns the layout of nodes and roles."""
    named = {role: tuple(node for node in nodes if node in set(names)) for role, names in (roles or {}).items()}
    return Layout(nodes=tuple(nodes), roles=named)


def _plurals(role: str) -> tuple[str, ...]:
    """Returns the plurals by which a role is understood too."""
    return (f"{role}s", f"{role}es", f"{role[:-1]}ies") if role.endswith("y") else (f"{role}s", f"{role}es")


def parse_aim(text: str, where: Layout) -> tuple[str | None, str | tuple[str, ...] | None]:
    """Reads what follows a kind: a target, a role, or a role and a target among its nodes, joined by `+`.

    Returns:
        The role, None where none is named, and the target, None where only a role is named.

    Raises:
        PlanError: It is none of these, with a suggestion; or it is ambiguous.
    """
    first, separator, rest = text.partition(NAME_SEPARATOR)
    role = next((role for role in where.roles if first == role or first in _plurals(role)), None)
    if role is not None and (first in where.nodes or first in COUNTED or first in BY_LEADER):
        what = "the name of a node" if first in where.nodes else "a target"
        raise PlanError(f"{first!r} is {what}, and it means a role of the system too; rename one of them")
    if text in COUNTED or text in BY_LEADER:
        return None, text
    if role is None:
        return None, check_names(text.split(NAME_SEPARATOR), where.nodes, roles=where.roles)
    if not separator:
        return role, None
    for name in rest.split(NAME_SEPARATOR):
        if name in where.nodes and name not in where.roles[role]:
            raise PlanError(f"{name} runs no {role}; {', '.join(where.roles[role])} {_verb(where.roles[role])}")
    return role, parse_target(rest, where.roles[role])


def _verb(names: Sequence[str]) -> str:
    return "does" if len(names) == 1 else "do"


def parse_target(text: str, nodes: Sequence[str]) -> str | tuple[str, ...]:
    """Reads a target: a spec, or node names joined by `+`.

    Raises:
        PlanError: It is neither; with a suggestion.
    """
    if text in COUNTED or text in BY_LEADER:
        return text
    return check_names(text.split(NAME_SEPARATOR), nodes)


def check_names(names: Sequence[str], nodes: Sequence[str], *, roles: Iterable[str] = ()) -> tuple[str, ...]:
    """Returns the names as they are.

    Args:
        names: What was given.
        nodes: The nodes that may be named.
        roles: What else could have stood first, for the suggestion.

    Raises:
        PlanError: One is not a node, or comes twice, or there is none; with a suggestion.
    """
    roles = tuple(roles)
    if not names:
        raise PlanError("a target names no node")
    for name in names:
        if name not in nodes and (name in COUNTED or name in BY_LEADER):
            raise PlanError(
                f"{name!r} stands alone: a target is names of nodes ({', '.join(nodes)}), or {name!r} without any other"
            )
        if name not in nodes:
            raise PlanError(
                f"unknown target {shown(name)}. {did_you_mean(name, [*COUNTED, *BY_LEADER, *roles, *nodes])}"
            )
    if len(set(names)) != len(names):
        raise PlanError(f"a target names a node twice: {', '.join(names)}")
    return tuple(names)


def by_leader(target: str | Sequence[str]) -> bool:
    """Says whether a target needs a look at the cluster when its fault begins, since it depends on who leads."""
    return isinstance(target, str) and target in BY_LEADER


def draw(
    target: str | Sequence[str],
    nodes: Sequence[str],
    rng: Random,
    *,
    at_most: int | None = None,
    held: AbstractSet[str] = frozenset(),
    worn: Mapping[str, float] | None = None,
) -> tuple[str, ...]:
    """Turns a target that does not depend on the leader into names, in the nodes' order.

    Args:
        target: A counted spec, or names.
        nodes: All nodes, in order.
        rng: The fault's stream.
        at_most: A bound for the size of `random`.
        held: Nodes that are taken only where the others are not enough; `random` then takes fewer, but one at least.
        worn: Node to when it is free for certain; one of those that are so first is always taken, those not named before all.

    Raises:
        PlanError: The nodes are too few for it.
    """
    if not isinstance(target, str):
        return check_names(target, nodes)
    order = rng.sample(nodes, len(nodes))
    sizes = {ALL: len(nodes), ONE: 1, MINORITY: minority(len(nodes)), MAJORITY: majority(len(nodes))}
    size = sizes[target] if target in sizes else rng.randint(1, min(len(nodes), at_most or len(nodes)))
    if size == 0:
        raise PlanError(f"{len(nodes)} nodes have no minority; choose the target {ONE!r} or {ALL!r}")
    free = [node for node in order if node not in held]
    if target == RANDOM and free:
        size = min(size, len(free))
    chosen = [*free, *(node for node in order if node in held)][:size]
    since = {node: (worn or {}).get(node, 0.0) for node in order}
    freshest = min(free or order, key=since.__getitem__)
    if all(since[node] > since[freshest] for node in chosen):
        chosen[-1] = freshest
    return _in_order(chosen, nodes)


def resolve(
    target: str | Sequence[str], nodes: Sequence[str], *, order: Sequence[str], leader: str | None
) -> tuple[str, ...]:
    """Turns any target that a plan may hold into names: given names as they are, a leader first, others in order.

    Args:
        target: One that depends on the leader, `all`, or names.
        nodes: All nodes, in order.
        order: All nodes in the order that the plan drew.
        leader: Who leads now; needed where the target depends on it.

    Raises:
        PlanError: No leader for a target that depends on it, or a counted spec, which belongs to the drawing of a plan.
    """
    if not isinstance(target, str):
        return check_names(target, nodes)
    if target == ALL:
        return tuple(nodes)
    if target not in BY_LEADER:
        raise PlanError(
            f"the target {target!r} is drawn with the plan and cannot be in one. Name the nodes, or use one of "
            f"{', '.join(BY_LEADER)}."
        )
    if leader is None:
        raise PlanError(f"the target {target!r} needs a leader, and no leader is known")
    followers = [node for node in order if node != leader]
    if target == LEADER:
        return (leader,)
    if target == LEADER_MINORITY:
        return (leader, *_in_order(followers[: max(1, minority(len(nodes))) - 1], nodes))
    return tuple(followers[:1]) if target == FOLLOWER else _in_order(followers, nodes)


def _in_order(names: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
    return tuple(node for node in nodes if node in names)
