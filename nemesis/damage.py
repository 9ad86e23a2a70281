"""How many nodes a plan may damage for good: a minority of each role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.grudges import minority

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from random import Random
    from typing import TypeVar

    from nemesis.targets import Layout

    T = TypeVar("T")


def damage_pool(where: Layout, role: str | None, rng: Random, named: Sequence[str]) -> tuple[str, ...]:
    """Draws the nodes that faults may damage permanently: the named nodes, and further ones up to the limit of `too_damaged`.

    Args:
        where: The nodes and their roles.
        role: The role of the damaged processes; None: all processes of a node.
        rng: The stream of random numbers.
        named: The nodes that the plan requests by name.

    Raises:
        PlanError: There is no minority, or the named nodes are more than a minority.
    """
    nodes = where.of(role)
    chosen: set[str] = set()
    order = [node for node in rng.sample(where.nodes, len(where.nodes)) if node in nodes]
    for node in [*named, *order]:
        if too_damaged(where, {role: chosen | {node}}) is None:
            chosen.add(node)
    refused = sorted(set(named) - chosen)
    if refused:
        raise PlanError(str(too_damaged(where, {role: {*named}})))
    if not chosen:
        raise PlanError(f"{tgt.no_minority(nodes)}, and only files of a minority may be damaged")
    return tuple(node for node in nodes if node in chosen)


def too_damaged(where: Layout, damaged: Mapping[str | None, AbstractSet[str]]) -> str | None:
    """Returns why files on these nodes must not be damaged. None if at most a minority of each role's nodes is damaged.

    Args:
        where: The nodes and their roles.
        damaged: For each role, the nodes with damaged files of its process; under None, the nodes with damage to all roles.
    """
    everywhere = damaged.get(None, frozenset())
    for role, nodes in where.counted():
        hit = {node for node in nodes if node in everywhere or node in damaged.get(role, ())}
        most = minority(len(nodes))
        if len(hit) > most:
            whose = f" of the role {role}" if len(where.roles) > 1 else ""
            return (
                f"the plan damages files on {', '.join(sorted(hit))}; at most {most} of {len(nodes)} nodes{whose} "
                "may be damaged"
            )
    return None
