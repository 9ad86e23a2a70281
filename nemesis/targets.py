"""Targets: which nodes a fault hits, said by number, by role or by name.

A spec that needs no look at the cluster becomes names when the plan is drawn. A role (`leader`, ...) stays a role, because
who leads is known only when the fault begins; the plan then carries an order of all nodes, drawn from the seed, so that the
only thing left open is the leader: same seed and same leader, same nodes. Sizes are exact for even numbers of nodes too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.documents import shown
from harness.suggest import did_you_mean
from nemesis.errors import PlanError
from nemesis.grudges import majority, minority

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
ROLES = (LEADER, LEADER_MINORITY, FOLLOWER, FOLLOWERS)
NAME_SEPARATOR = "+"


def parse_target(text: str, nodes: Sequence[str]) -> str | tuple[str, ...]:
    """Reads a target: a spec, or node names joined by `+`.

    Raises:
        PlanError: It is neither; with a suggestion.
    """
    if text in COUNTED or text in ROLES:
        return text
    return check_names(text.split(NAME_SEPARATOR), nodes)


def check_names(names: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
    """Returns the names as they are.

    Raises:
        PlanError: One is not a node, or comes twice, or there is none; with a suggestion.
    """
    if not names:
        raise PlanError("a target names no node")
    for name in names:
        if name not in nodes and (name in COUNTED or name in ROLES):
            raise PlanError(
                f"{name!r} stands alone: a target is names of nodes ({', '.join(nodes)}), or {name!r} without any other"
            )
        if name not in nodes:
            raise PlanError(f"unknown target {shown(name)}. {did_you_mean(name, [*COUNTED, *ROLES, *nodes])}")
    if len(set(names)) != len(names):
        raise PlanError(f"a target names a node twice: {', '.join(names)}")
    return tuple(names)


def is_role(target: str | Sequence[str]) -> bool:
    """Says whether a target needs a look at the cluster when its fault begins."""
    return isinstance(target, str) and target in ROLES


def draw(
    target: str | Sequence[str],
    nodes: Sequence[str],
    rng: Random,
    *,
    at_most: int | None = None,
    held: AbstractSet[str] = frozenset(),
    worn: Mapping[str, float] | None = None,
) -> tuple[str, ...]:
    """Turns a target that is no role into names, in the nodes' order.

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
        target: A role, `all`, or names.
        nodes: All nodes, in order.
        order: All nodes in the order that the plan drew.
        leader: Who leads now; only roles need it.

    Raises:
        PlanError: A role without a leader, or a counted spec, which belongs to the drawing of a plan.
    """
    if not isinstance(target, str):
        return check_names(target, nodes)
    if target == ALL:
        return tuple(nodes)
    if target not in ROLES:
        raise PlanError(
            f"the target {target!r} is drawn with the plan and cannot be in one. Name the nodes, or use a role."
        )
    if leader is None:
        raise PlanError(f"the target {target!r} needs a leader, and none is known")
    followers = [node for node in order if node != leader]
    if target == LEADER:
        return (leader,)
    if target == LEADER_MINORITY:
        return (leader, *_in_order(followers[: max(1, minority(len(nodes))) - 1], nodes))
    return tuple(followers[:1]) if target == FOLLOWER else _in_order(followers, nodes)


def _in_order(names: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
    return tuple(node for node in nodes if node in names)
