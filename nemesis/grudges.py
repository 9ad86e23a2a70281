"""Grudges: for each node, the nodes whose packets it drops.

A grudge maps every node to the set of nodes whose packets it drops on arrival. The functions here are pure: the caller makes
every choice, such as an order or a leader. So a partition follows from the plan, and tests can check its properties for any
number of nodes. The properties:

- every node is a key, and no node drops its own packets;
- all but `one_way` are symmetric, because a link that is cut in one direction isolates both ends over TCP;
- halves cover all nodes and are disjoint; in a bridge, exactly one node reaches both sides;
- in a majorities ring, every node reaches a majority, and no two nodes reach the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nemesis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Grudge: TypeAlias = "Mapping[str, frozenset[str]]"
Components: TypeAlias = "tuple[tuple[str, ...], tuple[str, ...]]"


def majority(count: int) -> int:
    """Returns the size of the smallest majority of `count` nodes."""
    return count // 2 + 1


def minority(count: int) -> int:
    """Returns the size of the largest minority of `count` nodes: 1 of 4, since 2 of 4 are not a minority."""
    return (count - 1) // 2


def halves(order: Sequence[str]) -> Components:
    """Splits `order` in the middle. The first half is the smaller one."""
    _at_least(order, 2, "halves")
    middle = len(order) // 2
    return tuple(order[:middle]), tuple(order[middle:])


def complete(components: Sequence[Sequence[str]]) -> Grudge:
    """Returns the grudge in which nodes talk only inside their component.

    Args:
        components: Disjoint groups of nodes, together all of them.
    """
    nodes = [node for component in components for node in component]
    _distinct(nodes)
    return {node: frozenset(nodes) - frozenset(component) for component in components for node in component}


def split(nodes: Sequence[str], side: Iterable[str]) -> Grudge:
    """Returns the grudge that cuts `side` from the rest, both ways."""
    inside = frozenset(side)
    unknown = inside - frozenset(nodes)
    if unknown:
        raise PlanError(f"a partition names nodes that are not in the cluster: {', '.join(sorted(unknown))}")
    if not inside or len(inside) == len(nodes):
        raise PlanError(f"a partition needs nodes on both sides; {len(inside)} of {len(nodes)} are on one")
    return complete([tuple(n for n in nodes if n in inside), tuple(n for n in nodes if n not in inside)])


def bridge(order: Sequence[str]) -> Grudge:
    """Returns two halves with a bridge: the first node of the second half reaches all, others only their half and it."""
    _at_least(order, 3, "a bridge")
    left, (middle, *right) = halves(order)
    _distinct(order)
    grudge = dict(complete([left, tuple(right)]))
    grudge[middle] = frozenset()
    return {node: grudge[node] for node in order}


def majorities_ring(order: Sequence[str]) -> Grudge:
    """Returns the symmetric grudge in which every node reaches a majority, and no two nodes reach the same one.

    Node i reaches its k neighbours on either side of the ring `order`: a circulant graph of degree 2k, so it reaches 2k + 1
    nodes. If a majority needs an odd number of neighbours, each node also has one chord. For even n, the chord leads to the
    opposite node. For odd n, the chords are every other step of the tour i, i + (n-1)/2, i + 2(n-1)/2, ..., and one node has
    two chords. Three nodes make the bridge.
    """
    _at_least(order, 3, "a majorities ring")
    _distinct(order)
    count = len(order)
    neighbours = majority(count) - 1
    reach, odd = divmod(neighbours, 2)
    links = {(i, (i + step) % count) for i in range(count) for step in range(1, reach + 1)}
    if odd and count % 2 == 0:
        links |= {(i, i + count // 2) for i in range(count // 2)}
    elif odd:
        tour = [step * (count // 2) % count for step in range(count + 1)]
        links |= {(tour[i], tour[i + 1]) for i in range(0, count, 2)}
    seen = {node: {node} for node in order}
    for i, j in links:
        seen[order[i]].add(order[j])
        seen[order[j]].add(order[i])
    return {node: frozenset(order) - seen[node] for node in order}


def one_way(nodes: Sequence[str], muted: Iterable[str]) -> Grudge:
    """Returns the grudge in which the rest drops the packets of the `muted` nodes; the muted nodes drop nothing."""
    symmetric = split(nodes, muted)
    inside = frozenset(muted)
    return {node: frozenset() if node in inside else symmetric[node] for node in nodes}


def union(nodes: Sequence[str], grudges: Iterable[Grudge]) -> Grudge:
    """Returns the union of several grudges."""
    together: dict[str, frozenset[str]] = {node: frozenset() for node in nodes}
    for grudge in grudges:
        for node, dropped in grudge.items():
            together[node] = together.get(node, frozenset()) | dropped
    return together


def hears(grudge: Grudge, node: str) -> frozenset[str]:
    """Returns the nodes whose packets reach `node`, itself included."""
    return frozenset(grudge) - grudge[node]


def talks(grudge: Grudge, node: str) -> frozenset[str]:
    """Returns the nodes that `node` can exchange packets with in both directions, itself included."""
    return frozenset(other for other in hears(grudge, node) if node not in grudge[other])


def has_quorum(grudge: Grudge, down: Iterable[str] = ()) -> bool:
    """Returns whether a running node can exchange packets with a majority of all nodes, itself included, that run."""
    up = frozenset(grudge) - frozenset(down)
    return any(len(talks(grudge, node) & up) >= majority(len(grudge)) for node in up)


def _at_least(nodes: Sequence[str], minimum: int, what: str) -> None:
    if len(nodes) < minimum:
        raise PlanError(f"{what} needs at least {minimum} nodes, and the cluster has {len(nodes)}")


def _distinct(nodes: Sequence[str]) -> None:
    if len(set(nodes)) != len(nodes):
        raise PlanError(f"a node is named twice: {', '.join(nodes)}")
