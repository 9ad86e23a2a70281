"""Grudges: which node drops whose packets.

A grudge maps every node to the set of nodes whose packets it drops on arrival. The functions here are pure: the caller makes
every choice, such as an order or a leader. So a partition follows from the plan, and tests can check its properties for any
number of nodes. The properties:

- every node is a key, and no node drops its own packets;
- all but `one_way` are symmetric, because a link that is cut in one direction isolates both ends over TCP;
- halves cover all nodes and are disjoint; a bridge keeps exactly one node in touch with both sides;
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
    """Returns the size of the largest minority of `count` nodes: 1 of 4, for 2 of 4 are no minority."""
    return (count - 1) // 2


def halves(order: Sequence[str]) -> Components:
    """Cuts `order` in the middle, the smaller half first."""
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
    """Returns two halves joined by one node: the first of the second half talks to all, the others to their side and it."""
    _at_least(order, 3, "a bridge")
    left, (middle, *right) = halves(order)
    _distinct(order)
    grudge = dict(complete([left, tuple(right)]))
    grudge[middle] = frozenset()
    return {node: grudge[node] for node in order}


def majorities_ring(order: Sequence[str]) -> Grudge:
    """Returns the symmetric grudge in which every node sees a majority and no two nodes the same one.

    Node i keeps its k neighbours on either side of the ring `order`, a circulant graph of degree 2k, with 2k + 1 nodes in
    view. Where a majority needs an odd number of neighbours, each node also keeps one chord: to the node across where n is
    even, and where it is odd along every other step of the tour i, i + (n-1)/2, i + 2(n-1)/2, ... (one node then has two
    chords). Three nodes make the bridge.
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
    """Returns the grudge in which the rest drops what the `muted` nodes send, while the muted ones still hear the rest."""
    symmetric = split(nodes, muted)
    silent = frozenset(muted)
    return {node: frozenset() if node in silent else symmetric[node] for node in nodes}


def union(nodes: Sequence[str], grudges: Iterable[Grudge]) -> Grudge:
    """Returns what several grudges do together."""
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
    """Says whether some node that is up can talk to a majority of all nodes, itself included, that are up."""
    up = frozenset(grudge) - frozenset(down)
    return any(len(talks(grudge, node) & up) >= majority(len(grudge)) for node in up)


def _at_least(nodes: Sequence[str], least: int, what: str) -> None:
    if len(nodes) < least:
        raise PlanError(f"{what} needs at least {least} nodes, and the cluster has {len(nodes)}")


def _distinct(nodes: Sequence[str]) -> None:
    if len(set(nodes)) != len(nodes):
        raise PlanError(f"a node is named twice: {', '.join(nodes)}")
